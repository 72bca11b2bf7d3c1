#include "entry.hpp"

#include <condition_variable>
#include <list>

#include "stand_in.hpp"

namespace cuda_stand_in {
namespace {

struct Planted {
  std::string function;
  int calls_left;
  int error;
  int device;
};

std::list<Planted>& planted_errors() {
  static auto* list = new std::list<Planted>;  // under the machine's lock
  return *list;
}

struct Held {
  std::string function{};
  std::condition_variable changed{};
};

Held& held() {
  static auto* held = new Held;  // under the machine's lock
  return *held;
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
  planted_errors().push_back({std::string(function), nth, error, device});
}

int planted_error(std::string_view function) {
  const int device = ThreadState::get().device;
  int error = 0;
  for (Planted& planted : planted_errors())
    if (planted.function == function && (planted.device < 0 || planted.device == device) &&
        --planted.calls_left == 0)
      error = planted.error;
  planted_errors().remove_if([](const Planted& planted) { return planted.calls_left == 0; });
  return error;
}

void hold_call(std::string_view function) {
  const Lock lock = Machine::get().lock();
  held().function = function;
  held().changed.notify_all();
}

bool is_held(std::string_view function) { return held().function == function; }

void wait_while_held(Lock& lock, std::string_view function) {
  held().changed.wait(lock, [&] { return !is_held(function); });
}

void set_memory(std::size_t bytes) {
  Machine& machine = Machine::get();
  const Lock lock = machine.lock();
  machine.memory.bytes_per_device = bytes != 0 ? bytes : machine.settings.memory;
}

void set_devices(int count) {
  const Lock lock = Machine::get().lock();
  Machine::get().settings.devices = count;
}

void set_peer_access(bool possible) {
  const Lock lock = Machine::get().lock();
  Machine::get().settings.peers = possible;
}

void set_thread_order(ThreadOrder order) {
  const Lock lock = Machine::get().lock();
  Machine::get().settings.threads = order;
}

void fail_call(std::string_view function, int nth, cudaError_t error) {
  plant_error(function, nth, error);
}

void fail_operation(cudaStream_t stream, cudaError_t error) {
  Machine& machine = Machine::get();
  const Lock lock = machine.lock();
  if (CUstream_st* found = machine.stream(stream, ThreadState::get().device))
    found->planted = error;
}

std::string take_faults() {
  Machine& machine = Machine::get();
  const Lock lock = machine.lock();
  return machine.take_faults();
}

void reset() {
  Machine& machine = Machine::get();
  Lock lock = machine.lock();
  planted_errors().clear();
  held().function.clear();
  machine.reset(lock);
  ThreadState::get().last_error = cudaSuccess;
}

std::size_t pending_operations() {
  Machine& machine = Machine::get();
  const Lock lock = machine.lock();
  std::size_t pending = 0;
  for (const CUstream_st& stream : machine.streams()) pending += stream.queue.size();
  return pending;
}

}  // namespace cuda_stand_in
