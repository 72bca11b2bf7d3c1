#include "stand_in.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <list>

#include "entry.hpp"

namespace cuda_stand_in {
namespace {

struct Planted {
  std::string function;
  int calls_left;
  int error;
  int device;
};

/// What tests do to calls. Protected by the machine's lock.
struct Interference {
  std::list<Planted> errors{};
  std::string held{};  ///< a function
  std::condition_variable released{};

  static Interference& get() {
    static auto* one = new Interference;
    return *one;
  }
};

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

long number(const char* name, long otherwise) {
  const std::string_view value = variable(name);
  return value.empty() ? otherwise : std::strtol(value.data(), nullptr, 10);
}

/// Calls f(machine, lock) under the lock.
template <class F>
auto locked(F f) {
  Lock lock = Machine::get().lock();
  return f(Machine::get(), lock);
}

}  // namespace

void record_call(const char* function, const Arguments& arguments) {
  Recording* recording = ThreadState::get().recording;
  if (recording == nullptr) return;
  Call call{
      .function = function, .bytes = arguments.bytes, .detail = std::string(arguments.detail)};
  if (arguments.stream) call.stream = recording->number_of(*arguments.stream);
  if (arguments.event) call.event = recording->number_of(*arguments.event);
  recording->add(std::move(call));
}

void plant_error(std::string_view function, int nth, int error, int device) {
  const Lock lock = Machine::get().lock();
  Interference::get().errors.push_back({std::string(function), nth, error, device});
}

int planted_error(std::string_view function) {
  const int device = ThreadState::get().device;
  std::list<Planted>& errors = Interference::get().errors;
  int error = 0;
  for (Planted& planted : errors)
    if (planted.function == function && (planted.device < 0 || planted.device == device) &&
        --planted.calls_left == 0)
      error = planted.error;
  errors.remove_if([](const Planted& planted) { return planted.calls_left == 0; });
  return error;
}

void hold_call(std::string_view function) {
  const Lock lock = Machine::get().lock();
  Interference::get().held = function;
  Interference::get().released.notify_all();
}

bool is_held(std::string_view function) { return Interference::get().held == function; }

void wait_while_held(Lock& lock, std::string_view function) {
  Interference::get().released.wait(lock, [&] { return !is_held(function); });
}

Settings Settings::from_environment() {
  Settings settings;
  settings.devices = int(std::clamp(number("CLEAVE_STAND_IN_DEVICES", 1), 0L, long(max_devices)));
  settings.memory = std::size_t(number("CLEAVE_STAND_IN_MEMORY_MB", 16384)) << 20;
  const std::string_view threads = variable("CLEAVE_STAND_IN_THREADS");
  if (threads == "reversed") settings.threads = ThreadOrder::reversed;
  if (threads == "shuffled") settings.threads = ThreadOrder::shuffled;
  return settings;
}

void set_memory(std::size_t bytes) {
  locked([&](Machine& machine, Lock&) {
    machine.memory.bytes_per_device = bytes != 0 ? bytes : machine.settings.memory;
  });
}

void set_devices(int count) {
  locked([&](Machine& machine, Lock&) { machine.settings.devices = count; });
}

void set_peer_access(bool possible) {
  locked([&](Machine& machine, Lock&) { machine.settings.peers = possible; });
}

void set_thread_order(ThreadOrder order) {
  locked([&](Machine& machine, Lock&) { machine.settings.threads = order; });
}

void fail_call(std::string_view function, int nth, cudaError_t error) {
  plant_error(function, nth, error);
}

void fail_operation(cudaStream_t handle, cudaError_t error) {
  locked([&](Machine& machine, Lock&) {
    machine.stream(handle, ThreadState::get().device)->planted = error;
  });
}

std::string take_faults() {
  return locked([](Machine& machine, Lock&) { return machine.take_faults(); });
}

void reset() {
  locked([](Machine& machine, Lock& lock) {
    Interference::get().errors.clear();
    Interference::get().held.clear();
    machine.reset(lock);
  });
  ThreadState::get().last_error = cudaSuccess;
}

std::size_t pending_operations() {
  return locked([](Machine& machine, Lock&) {
    std::size_t pending = 0;
    for (const CUstream_st& stream : machine.streams()) pending += stream.queue.size();
    return pending;
  });
}

}  // namespace cuda_stand_in
