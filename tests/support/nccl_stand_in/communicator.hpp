// One rank's communicators, their operations in progress, and the library's other state.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nccl.h>

#include "clique.hpp"

namespace nccl_stand_in {

/// Work to finish once it becomes possible: within a blocking call, or in the polls of a
/// non-blocking communicator.
struct Job {
  std::shared_ptr<ncclComm> comm{};
  std::function<bool()> ready{};
  std::function<ncclResult_t()> finish{};
  std::string_view function{};
};

}  // namespace nccl_stand_in

/// One rank's handle. Kept until `reset`, so that use after destruction is detected.
struct ncclComm : std::enable_shared_from_this<ncclComm> {
  std::shared_ptr<nccl_stand_in::Clique> clique{};
  int rank = -1;
  int device = 0;
  bool blocking = true;
  bool alive = true;
  bool freed = false;  ///< in a group, later than aborted
  bool finalized = false;
  bool connected = false;
  int inside = 0;  ///< threads that wait in a call
  ncclResult_t async_error = ncclSuccess;
  std::shared_ptr<nccl_stand_in::Job> job{};

  struct Pending {
    nccl_stand_in::Point end{};
    std::shared_ptr<nccl_stand_in::Shipment> shipment{};
  };
  std::vector<Pending> pending{};  ///< operations in progress
  /// Shared with captured calls, as long as their graph exists.
  std::shared_ptr<int> captured = std::make_shared<int>(0);
  std::uint64_t splits = 0;
  std::map<void*, nccl_stand_in::Range> registrations{};  ///< by handle

  /// Whether a graph contains calls on this communicator.
  bool in_a_graph() const { return captured.use_count() > 1; }
  /// An operation that has not completed; null if there is none.
  const Pending* under_way() const;
  /// Whether the whole range is in one registration.
  bool registered(nccl_stand_in::Range range) const;

  int size() const { return clique->size; }
  const std::string& name() const { return clique->name; }
  /// Sets the asynchronous error; the first error stays.
  void fail(ncclResult_t result) {
    if (async_error == ncclSuccess) async_error = result;
  }
  void add_pending(nccl_stand_in::Point end, std::shared_ptr<nccl_stand_in::Shipment> shipment);
  /// Leaves the clique and drops pending operations.
  void retire();
};

namespace nccl_stand_in {

/// The library's state. Protected by the machine's lock.
class Library {
 public:
  static Library& get();

  std::string held{};  ///< a function whose calls block until they are aborted
  bool connect_on_use = false;
  int version = NCCL_VERSION_CODE;
  int serials = 0;  ///< for unique ids, reductions, registrations
  int worlds = 0;
  std::map<std::string, std::shared_ptr<Clique>> cliques{};  ///< by unique id, while ranks join
  std::set<void*> memory{};                                  ///< allocated by ncclMemAlloc

  std::shared_ptr<ncclComm> create();
  /// Null if the handle is invalid or the communicator no longer alive.
  std::shared_ptr<ncclComm> find(ncclComm_t handle) const;
  /// Whether the communicator was aborted in a group that has not ended: its state may still be
  /// queried.
  bool ending(ncclComm_t handle) const;
  int live() const;
  /// The communicators of all ranks that use the device.
  std::vector<std::shared_ptr<ncclComm>> on_device(int device) const;
  /// Whether a registration begins at the address.
  bool registered(const void* address) const;
  void clear();

  /// Sets the message for ncclGetLastError. @return `result`
  ncclResult_t refuse(ncclResult_t result, const std::string& text);
  const char* last_error() const { return last_error_; }
  /// Records and reports an error in the use of the library.
  void fault(const std::string& text);

  /// Finishes the job, or leaves it to the polls of its communicator.
  ncclResult_t begin(Lock& lock, const Job& job);
  bool ready(const Job& job);
  /// The state of a communicator, for a poll.
  ncclResult_t poll(ncclComm& comm);
  /// Wakes calls that wait for other ranks.
  void notify() { changed_.notify_all(); }

  struct PlantedCall {
    std::string function;
    int calls_left;
    ncclResult_t result;
    int device;
  };
  struct PlantedOperation {
    int rank;
    int operations_left;
    ncclResult_t result;
  };
  std::list<PlantedCall> planted_calls{};
  std::list<PlantedOperation> planted_operations{};
  ncclResult_t planted_call(std::string_view function, int device);
  ncclResult_t planted_operation(const ncclComm& comm);

 private:
  std::map<ncclComm_t, std::shared_ptr<ncclComm>> comms_;
  std::set<std::string> texts_;  ///< callers keep pointers to these texts
  const char* last_error_ = "";
  std::condition_variable changed_;
};

}  // namespace nccl_stand_in
