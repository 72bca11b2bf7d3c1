// One rank's communicators, their operations in progress, and the library's other state.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
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
  std::shared_ptr<ncclComm> comm;
  std::function<bool()> ready;
  std::function<ncclResult_t()> finish;
  std::string_view function;
};

}  // namespace nccl_stand_in

/// One rank's handle. Kept until `reset`, so that use after destruction is detected.
struct ncclComm {
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
    nccl_stand_in::Point end;
    std::shared_ptr<nccl_stand_in::Shipment> shipment;
    bool ended() const { return nccl_stand_in::Machine::reached(end); }
  };
  std::vector<Pending> pending{};  ///< operations in progress, and some that have ended
  /// Shared with captured calls, as long as their graph exists.
  std::shared_ptr<int> captured = std::make_shared<int>(0);
  std::uint64_t splits = 0;
  std::map<void*, nccl_stand_in::Range> registrations{};  ///< by handle

  /// Whether a graph contains calls on this communicator.
  bool in_a_graph() const { return captured.use_count() > 1; }
  /// Whether an operation has not completed.
  bool at_work() const;

  int size() const { return clique->size; }
  const std::string& name() const { return clique->name; }
  /// Sets the asynchronous error; the first error stays.
  void fail(ncclResult_t result) {
    if (async_error == ncclSuccess) async_error = result;
  }
  /// Leaves the clique and drops pending operations.
  void retire();
};

namespace nccl_stand_in {

/// The library's state. Protected by the machine's lock.
class Library {
 public:
  static Library& get();

  bool connect_on_use = false;
  int version = NCCL_VERSION_CODE;
  int serials = 0;  ///< for unique ids, registrations
  int worlds = 0;
  std::map<std::string, std::shared_ptr<Clique>> cliques{};  ///< by unique id, while ranks join
  std::map<ncclComm_t, std::shared_ptr<ncclComm>> communicators{};  ///< also dead ones

  std::shared_ptr<ncclComm> create(int device, bool blocking);
  /// Null if the handle is invalid or the communicator no longer alive.
  std::shared_ptr<ncclComm> find(ncclComm_t handle) const;
  void clear();

  /// Sets the message for ncclGetLastError.
  void set_last_error(const std::string& text) { last_error_ = texts_.insert(text).first->c_str(); }
  const char* last_error() const { return last_error_; }
  /// Records and reports an error in the use of the library.
  void fault(const std::string& text);

  /// Finishes the job, or leaves it to the polls of its communicator.
  ncclResult_t begin(Lock& lock, const Job& job);
  /// The state of a communicator, for a poll.
  ncclResult_t poll(ncclComm& comm);
  /// Wakes calls that wait for other ranks.
  void notify() { changed_.notify_all(); }

 private:
  std::set<std::string> texts_;  ///< callers keep pointers to these texts
  const char* last_error_ = "";
  std::condition_variable changed_;
};

/// What `fail_operation` calls an operation of the rank.
inline std::string operation_of(int rank) { return "an operation of rank " + std::to_string(rank); }

/// Enqueues the calls, which have the same stream, as one operation. In flight.cpp.
void launch(const std::shared_ptr<ncclComm>& comm, const std::vector<TransferCall>& calls);

}  // namespace nccl_stand_in
