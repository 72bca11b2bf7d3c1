// Entry points of NCCL: versions, errors, properties of communicators and registered memory.
#include "entry.hpp"

using namespace nccl_stand_in;

ncclResult_t ncclGetVersion(int* version) {
  return entry("ncclGetVersion", {}, [&](const Context& context) {
    *version = context.library.version;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return entry("ncclCommCount", {.detail = name_of(comm)}, [&](const Context& context) {
    *count = context.find_ready(comm)->size();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return entry("ncclCommUserRank", {.detail = name_of(comm)}, [&](const Context& context) {
    *rank = context.find_ready(comm)->rank;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  return entry("ncclCommGetAsyncError", {.detail = name_of(handle)}, [&](const Context& context) {
    const auto& communicators = context.library.communicators;
    const auto found = communicators.find(handle);
    const bool ending =
        found != communicators.end() && !found->second->alive && !found->second->freed;
    *error = ending ? ncclInternalError : context.library.poll(*context.find(handle));
    return ncclSuccess;
  });
}

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr const char* texts[] = {// in the order of ncclResult_t
                                   "no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error",
                                   "NCCL operation in progress"};
  return std::size_t(result) < std::size(texts) ? texts[result] : "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) {
  const Lock lock = Machine::get().lock();
  return Library::get().last_error();
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* address, std::size_t bytes,
                              void** registration) {
  const std::string text = std::to_string(bytes) + " bytes on " + name_of(handle);
  return entry("ncclCommRegister", {.detail = text}, [&](const Context& context) {
    const auto comm = context.find_ready(handle);
    const cuda_stand_in::Place place = context.machine.memory.place(address, bytes);
    if (!place.whole() || place.device() != comm->device)
      context.fault(ncclInvalidArgument, std::to_string(bytes) +
                                             " bytes that are not in one allocation on device " +
                                             std::to_string(comm->device));
    // The handle is a number; nothing is stored at its address.
    *registration = reinterpret_cast<void*>(std::uintptr_t(++context.library.serials));
    comm->registrations[*registration] = {static_cast<const std::byte*>(address), bytes};
    return ncclSuccess;
  });
}

// The real function unmaps the memory from ranks that are still using it.
ncclResult_t ncclCommDeregister(const ncclComm_t handle, void* registration) {
  const std::string text = "on " + name_of(handle);
  return entry("ncclCommDeregister", {.detail = text}, [&](const Context& context) {
    const auto comm = context.find(handle);
    if (comm->at_work()) context.report("what is enqueued on " + comm->name() + " has not ended");
    if (comm->registrations.erase(registration) == 0)
      context.fault(ncclInvalidUsage, "the handle is none of this communicator");
    return ncclSuccess;
  });
}
