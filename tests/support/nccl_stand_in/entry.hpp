// Work common to all entry points, and the group that a thread has begun.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "communicator.hpp"
#include "cuda_stand_in/entry.hpp"

namespace nccl_stand_in {

/// The arguments of a call that a recording shows.
struct Details {
  std::optional<cudaStream_t> stream{};
  std::function<std::string()> text{};  ///< called under the lock
};

/// The state passed to the work of an entry point.
struct Context {
  Machine& machine;
  Lock& lock;
  Library& library;
  const char* function;

  /// The communicator of a handle, for calls that are always allowed.
  /// @return ncclInvalidArgument, with a fault, if the handle is invalid
  ncclResult_t find(ncclComm_t handle, std::shared_ptr<ncclComm>& comm) const;
  /// The communicator, which must be neither busy nor failed.
  ncclResult_t find_ready(ncclComm_t handle, std::shared_ptr<ncclComm>& comm) const;
  /// Sets an error message that names the function. @return `result`
  ncclResult_t refuse(ncclResult_t result, const std::string& text) const {
    return library.refuse(result, std::string(function) + ": " + text);
  }
  ncclResult_t fault(ncclResult_t result, const std::string& text) const {
    library.fault(std::string(function) + ": " + text);
    return result;
  }
};

/// The calls of a thread since ncclGroupStart: transfers of one communicator on one stream (all
/// that the project needs), or aborts.
struct Group {
  bool begun = false;
  ncclResult_t error = ncclSuccess;
  std::shared_ptr<ncclComm> comm{};
  std::vector<TransferCall> calls{};
  std::vector<std::shared_ptr<ncclComm>> aborted{};

  static Group& get();
  /// Ends the group: performs its calls, or begins to.
  ncclResult_t end(const Context& context);
};

/// Frees the resources of an aborted communicator. Waits like the real one: for the operations
/// enqueued on the device's other communicators, and for the graphs that contain its calls. A hang
/// is a fault.
void reclaim(const Context& context, ncclComm& comm);
/// Waits until no graph contains calls on the communicator. A hang is a fault.
void wait_for_graphs(const Context& context, const ncclComm& comm);

/// The communicator's name for recordings, such as "world".
std::string label(ncclComm_t handle);
/// ", in a group"; empty outside of groups.
std::string group_label();

/// Runs the work of an entry point.
/// @param work  (const Context&) -> ncclResult_t
template <class Work>
ncclResult_t entry(const char* function, const Details& details, Work&& work) {
  const auto& thread = cuda_stand_in::ThreadState::get();
  Machine& machine = Machine::get();
  Lock lock = machine.lock();
  Library& library = Library::get();
  if (thread.recording != nullptr)
    cuda_stand_in::record_call(function, {.stream = details.stream,
                                          .detail = details.text ? details.text() : std::string()});
  const Context context{machine, lock, library, function};
  Group& group = Group::get();
  ncclResult_t result = library.planted_call(function, thread.device);
  if (result != ncclSuccess) {
    context.refuse(result, "a planted error");
  } else {
    result = work(context);
  }
  if (group.begun && result != ncclSuccess && result != ncclInProgress) group.error = result;
  return result;
}

}  // namespace nccl_stand_in
