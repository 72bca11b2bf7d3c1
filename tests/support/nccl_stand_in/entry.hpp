// Work common to all entry points, and the group that a thread has begun.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "communicator.hpp"
#include "cuda_stand_in/entry.hpp"
#include "stand_in.hpp"

namespace nccl_stand_in {

/// Thrown by the work of an entry point, which then returns the result.
struct Refusal {
  ncclResult_t result;
};

/// The state passed to the work of an entry point.
struct Context {
  Machine& machine;
  Lock& lock;
  Library& library;
  const char* function;

  /// The communicator of a handle, for calls that are always allowed.
  /// @throws Refusal with ncclInvalidArgument, after a fault, if the handle is invalid
  std::shared_ptr<ncclComm> find(ncclComm_t handle) const;
  /// The communicator, which must be neither busy nor failed.
  std::shared_ptr<ncclComm> find_ready(ncclComm_t handle) const;
  /// Sets an error message that names the function. @throws Refusal
  [[noreturn]] void refuse(ncclResult_t result, const std::string& text) const;
  /// Reports an error in the use of the library. The call goes on.
  void report(const std::string& text) const { library.fault(std::string(function) + ": " + text); }
  /// Reports an error in the use of the library. @throws Refusal
  [[noreturn]] void fault(ncclResult_t result, const std::string& text) const {
    report(text);
    throw Refusal{result};
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

/// Runs the work of an entry point.
/// @param arguments  what a recording shows
/// @param work       (const Context&) -> ncclResult_t
template <class Work>
ncclResult_t entry(const char* function, const cuda_stand_in::Arguments& arguments, Work&& work) {
  Machine& machine = Machine::get();
  Lock lock = machine.lock();
  cuda_stand_in::record_call(function, arguments);
  const Context context{machine, lock, Library::get(), function};
  ncclResult_t result = ncclSuccess;
  try {
    if (const int planted = cuda_stand_in::planted_error(function))
      context.refuse(ncclResult_t(planted), "a planted error");
    result = work(context);
  } catch (const Refusal& refusal) {
    result = refusal.result;
  }
  Group& group = Group::get();
  if (group.begun && result != ncclSuccess && result != ncclInProgress) group.error = result;
  return result;
}

}  // namespace nccl_stand_in
