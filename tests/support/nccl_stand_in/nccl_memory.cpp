// Entry points of NCCL: memory and its registration with communicators.
#include <utility>

#include <cuda_runtime_api.h>

#include "cuda_stand_in/thread_state.hpp"
#include "entry.hpp"

using namespace nccl_stand_in;

namespace {

/// Calls of the runtime made by NCCL itself are not recorded. The lock is not held.
template <class Call>
cudaError_t unrecorded(const Context& context, Call call) {
  auto& thread = cuda_stand_in::ThreadState::get();
  const auto recording = std::exchange(thread.recording, nullptr);
  context.lock.unlock();
  const cudaError_t error = call();
  context.lock.lock();
  thread.recording = recording;
  return error;
}

ncclResult_t add_registration(const Context& context, ncclComm& comm, void* address,
                              std::size_t bytes, void** handle) {
  const cuda_stand_in::Place place = context.machine.memory.place(address, bytes);
  if (!place.on_device() || !place.whole || place.arena->device() != comm.device)
    return context.fault(ncclInvalidArgument,
                         std::to_string(bytes) +
                             " bytes that are not in one allocation on device " +
                             std::to_string(comm.device));
  // The handle is a number; nothing is stored at its address.
  *handle = reinterpret_cast<void*>(std::uintptr_t(++context.library.serials));
  comm.registrations[*handle] = {static_cast<const std::byte*>(address), bytes};
  return ncclSuccess;
}

// The real function unmaps the memory from ranks that are still using it.
ncclResult_t remove_registration(const Context& context, ncclComm& comm, void* handle) {
  if (comm.under_way() != nullptr)
    context.fault(ncclSuccess, "what is enqueued on " + comm.name() + " has not ended");
  if (comm.registrations.erase(handle) == 0)
    return context.fault(ncclInvalidUsage, "the handle is none of this communicator");
  return ncclSuccess;
}

auto bytes_text(std::size_t bytes, ncclComm_t comm) {
  return [=] { return std::to_string(bytes) + " bytes on " + label(comm); };
}

}  // namespace

ncclResult_t ncclMemAlloc(void** result, std::size_t bytes) {
  const auto text = [&] { return std::to_string(bytes) + " bytes"; };
  return entry("ncclMemAlloc", {.text = text}, [&](const Context& context) {
    if (result == nullptr || bytes == 0)
      return context.refuse(ncclInvalidArgument, "no bytes, or no place for the result");
    const cudaError_t error = unrecorded(context, [&] { return cudaMalloc(result, bytes); });
    if (error != cudaSuccess)
      return context.refuse(ncclUnhandledCudaError, cudaGetErrorString(error));
    context.library.memory.insert(*result);
    return ncclSuccess;
  });
}

ncclResult_t ncclMemFree(void* address) {
  return entry("ncclMemFree", {}, [&](const Context& context) {
    if (address == nullptr) return ncclSuccess;
    if (context.library.memory.erase(address) == 0)
      return context.fault(ncclInvalidArgument, "the memory is not of ncclMemAlloc");
    if (context.library.registered(address))
      context.fault(ncclSuccess, "the memory is registered with a communicator");
    const cudaError_t error = unrecorded(context, [&] { return cudaFree(address); });
    return error == cudaSuccess ? ncclSuccess
                                : context.refuse(ncclUnhandledCudaError, cudaGetErrorString(error));
  });
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* address, std::size_t bytes,
                              void** registration) {
  return entry("ncclCommRegister", {.text = bytes_text(bytes, handle)},
               [&](const Context& context) {
                 std::shared_ptr<ncclComm> comm;
                 if (const ncclResult_t refused = context.find_ready(handle, comm)) return refused;
                 return add_registration(context, *comm, address, bytes, registration);
               });
}

ncclResult_t ncclCommDeregister(const ncclComm_t handle, void* registration) {
  const auto text = [&] { return "on " + label(handle); };
  return entry("ncclCommDeregister", {.text = text}, [&](const Context& context) {
    std::shared_ptr<ncclComm> comm;
    if (const ncclResult_t refused = context.find(handle, comm)) return refused;
    return remove_registration(context, *comm, registration);
  });
}
