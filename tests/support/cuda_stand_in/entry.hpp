// Work common to all entry points: takes the lock, returns planted errors and the failure of the
// device first, records the call, and remembers the thread's last error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "machine.hpp"
#include "recorder.hpp"

namespace cuda_stand_in {

/// The runtime's state per host thread.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  Recording* recording = nullptr;

  static ThreadState& get() {
    thread_local ThreadState state;
    return state;
  }
};

/// The arguments of a call that a recording shows.
struct Arguments {
  std::optional<cudaStream_t> stream{};
  std::optional<cudaEvent_t> event{};
  std::size_t bytes = 0;
  std::string_view detail{};
};

/// The state passed to the work of an entry point.
struct Context {
  Machine& machine;
  Lock& lock;
  Device& device;  ///< the calling thread's current device

  /// The stream of a handle; null if the handle is invalid.
  CUstream_st* stream(cudaStream_t handle) const { return machine.stream(handle, device.index); }
  bool has_device(int index) const { return index >= 0 && index < machine.settings.devices; }
};

/// Adds the call to the thread's recording, if there is one.
void record_call(const char* function, const Arguments& arguments);

/// Makes the `nth` call of the function, which may be one of another library, return the error.
/// @param device  counts only calls of threads with this current device; all calls if negative
void plant_error(std::string_view function, int nth, int error, int device = -1);

/// The error that was planted for this call of the function, or 0. Counts the call.
int planted_error(std::string_view function);

/// Whether `hold_call` holds this function, which may be one of another library.
bool is_held(std::string_view function);

/// Waits while `hold_call` holds this function.
void wait_while_held(Lock& lock, std::string_view function);

/// Remembers the returned error, including "not ready", as the runtime does.
inline cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) ThreadState::get().last_error = error;
  return error;
}

/// Runs the work of an entry point.
/// @param work  (Context&) -> cudaError_t
template <class Work>
cudaError_t entry(const char* function, const Arguments& arguments, Work&& work) {
  ThreadState& thread = ThreadState::get();
  Machine& machine = Machine::get();
  Lock lock = machine.lock();
  record_call(function, arguments);
  wait_while_held(lock, function);
  if (const int planted = planted_error(function)) return remember(cudaError_t(planted));
  if (machine.settings.devices == 0) return remember(cudaErrorNoDevice);
  if (thread.device >= machine.settings.devices) return remember(cudaErrorInvalidDevice);
  Device& device = machine.device(thread.device);
  if (device.failure != cudaSuccess) return remember(device.failure);
  Context context{machine, lock, device};
  return remember(work(context));
}

}  // namespace cuda_stand_in
