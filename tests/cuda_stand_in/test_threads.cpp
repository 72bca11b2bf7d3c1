// Several host threads on one machine: their streams, devices and waits.
#include <array>
#include <thread>

#include "cuda_stand_in/machine.hpp"
#include "device.hpp"

using namespace cuda_stand_in;

namespace {

template <class F>
void on_threads(int count, F&& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("threads use streams of their own at the same time") {
  const Fresh fresh;
  std::array<int, 4> results{};
  on_threads(4, [&](int rank) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int round = 0; round < 20; ++round) {
      void* data = nullptr;
      cudaMallocAsync(&data, 64 * sizeof(int), stream);
      launch_on(stream, 2, 32, assign, static_cast<int*>(data), 64, rank * 100);
      for (int i = 0; i <= round; ++i)
        launch_on(stream, 2, 32, increment, static_cast<int*>(data), 64);
      cudaMemcpyAsync(&results[std::size_t(rank)], static_cast<int*>(data) + 63, sizeof(int),
                      cudaMemcpyDeviceToHost, stream);
      cudaFreeAsync(data, stream);
    }
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  });
  CHECK(results == std::array{20, 120, 220, 320});
}

TEST_CASE("a thread's current device is its own") {
  const Fresh fresh(4);
  std::array<int, 4> devices{};
  on_threads(4, [&](int rank) {
    cudaSetDevice(rank);
    cudaGetDevice(&devices[std::size_t(rank)]);
  });
  CHECK(devices == std::array{0, 1, 2, 3});
}

TEST_CASE("a stream runs work that another thread's event orders before its own") {
  const Fresh fresh;
  const Stream producer, consumer;
  const Event event;
  const Array<int> array(std::vector<int>{0});
  std::thread([&] {
    launch_on(producer, 1, 1, assign, array.data, 1, 5);
    cudaEventRecord(event, producer);
  }).join();
  CHECK_CUDA(cudaStreamWaitEvent(consumer, event, 0));
  CHECK(array.read(consumer) == std::vector{5});
}

TEST_CASE("an operation with a latch runs once another thread has opened it, after its points") {
  const Fresh fresh;
  for (const Order order : {Order::lazy, Order::eager}) {
    set_order(order);
    const Stream first, second;
    const Array<int> array(std::vector<int>{0});
    Machine& machine = Machine::get();
    const auto latch = std::make_shared<Latch>();
    {
      Lock lock = machine.lock();
      machine.enqueue(*machine.stream(first, 0),
                      {.name = "a collective",
                       .body = [data = array.data] { *data = *data * 10; },
                       .latch = latch});
    }
    std::thread opener([&] {
      launch_on(second, 1, 1, assign, array.data, 1, 4);
      Lock lock = machine.lock();
      machine.open(*latch, {machine.stream(second, 0)->end()});
    });
    CHECK(array.read(first) == std::vector{40});
    opener.join();
  }
}

TEST_CASE("a latch that is never opened times out with an error that names the operation") {
  const Fresh fresh;
  const Stream stream;
  Machine& machine = Machine::get();
  {
    Lock lock = machine.lock();
    machine.settings.timeout = std::chrono::seconds(0);
    machine.enqueue(*machine.stream(stream, 0),
                    {.name = "a collective of 4", .latch = std::make_shared<Latch>()});
  }
  CHECK_ERROR(cudaStreamQuery(stream), cudaErrorNotReady);
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorLaunchTimeout);
  CHECK(take_faults() == "timed out waiting for work that was never enqueued: a collective of 4\n");
  machine.settings.timeout = std::chrono::seconds(60);
  reset();
}

TEST_CASE("collectives that wait for each other are an error, not a hang") {
  const Fresh fresh;
  const Stream first, second;
  Machine& machine = Machine::get();
  {
    Lock lock = machine.lock();
    CUstream_st& one = *machine.stream(first, 0);
    CUstream_st& two = *machine.stream(second, 0);
    const auto a = std::make_shared<Latch>(), b = std::make_shared<Latch>();
    const auto add = [&](CUstream_st& stream, const char* name,
                         const std::shared_ptr<Latch>& latch) {
      const Point before = stream.end();
      machine.enqueue(stream, {.name = name, .latch = latch});
      return before;
    };
    // The streams have the two operations in opposite orders.
    const Point a_first = add(one, "a", a), b_first = add(one, "b", b);
    const Point b_second = add(two, "b", b), a_second = add(two, "a", a);
    machine.open(*a, {a_first, a_second});
    machine.open(*b, {b_first, b_second});
  }
  CHECK_ERROR(cudaStreamSynchronize(first), cudaErrorLaunchTimeout);
  CHECK(take_faults().find("streams wait for each other") == 0);
  reset();
}
