#include "grid.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fiber.hpp"
#include "include/cuda_runtime.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace cuda_stand_in {
namespace {

/// The numbers 0 .. count-1 in the order that the test has set.
class Permutation {
 public:
  Permutation(std::size_t count, ThreadOrder order, std::mt19937& random)
      : count_(count), order_(order), random_(random) {}

  /// Draws a new shuffle.
  void renew() {
    if (order_ != ThreadOrder::shuffled) return;
    numbers_.resize(count_);
    std::iota(numbers_.begin(), numbers_.end(), std::size_t(0));
    std::shuffle(numbers_.begin(), numbers_.end(), random_);
  }
  std::size_t operator[](std::size_t i) const {
    if (order_ == ThreadOrder::forward) return i;
    return order_ == ThreadOrder::reversed ? count_ - 1 - i : numbers_[i];
  }

 private:
  std::size_t count_;
  ThreadOrder order_;
  std::mt19937& random_;
  std::vector<std::size_t> numbers_;
};

uint3 index_in(dim3 extents, std::size_t number) {
  const std::size_t row = number / extents.x;
  return {unsigned(number % extents.x), unsigned(row % extents.y), unsigned(row / extents.y)};
}

/// A thread waiting at a barrier. It occupies its fiber.
struct Waiting {
  Fiber* fiber;
  uint3 thread;
  const char* file;
  unsigned line;
};

/// Runs the blocks of one launch. Barriers in device code find the runner through `current`.
class BlockRunner {
 public:
  BlockRunner(dim3 block, ThreadOrder order, const std::function<void()>& thread)
      : thread_(thread),
        count_(std::size_t(block.x) * block.y * block.z),
        order_(count_, order, random_) {
    for (std::size_t i = 0; i < count_; ++i) indices_.push_back(index_in(block, i));
    current = this;
  }
  ~BlockRunner() { current = nullptr; }
  BlockRunner(const BlockRunner&) = delete;  // fibers point to it

  std::string run();
  void wait(const char* file, unsigned line);

  static inline BlockRunner* current = nullptr;

 private:
  // A fiber's entry: runs threads in turn until one stops at a barrier; that thread keeps the
  // fiber.
  static void start_threads(void* runner) {
    auto& self = *static_cast<BlockRunner*>(runner);
    while (self.started_ < self.count_) {
      threadIdx = self.indices_[self.order_[self.started_++]];
      self.thread_();
      ++self.ended_;
    }
  }
  void resume(Fiber& fiber);
  std::string parted(const std::vector<Waiting>& waiting) const;

  const std::function<void()>& thread_;
  std::size_t count_;
  std::vector<uint3> indices_;
  std::mt19937 random_{20};
  Permutation order_;
  std::size_t started_ = 0;
  std::size_t ended_ = 0;
  Fiber* running_ = nullptr;
  std::vector<Waiting> waiting_;
};

/// Fibers that no thread occupies; they are reused across launches.
std::vector<Fiber*>& idle_fibers() {
  static auto* fibers = new std::vector<Fiber*>;  // under the machine's lock
  return *fibers;
}

void BlockRunner::resume(Fiber& fiber) {
  running_ = &fiber;
  fiber.resume();
  running_ = nullptr;
  if (fiber.finished()) idle_fibers().push_back(&fiber);
}

std::string BlockRunner::run() {
  started_ = ended_ = 0;
  order_.renew();
  while (started_ < count_) {
    if (idle_fibers().empty()) idle_fibers().push_back(new Fiber);
    Fiber& fiber = *idle_fibers().back();
    idle_fibers().pop_back();
    fiber.prepare(start_threads, this);
    resume(fiber);
  }
  while (!waiting_.empty()) {
    const std::vector<Waiting> released = std::exchange(waiting_, {});
    if (std::string fault = parted(released); !fault.empty()) {
      for (const Waiting& one : released) idle_fibers().push_back(one.fiber);
      return fault;
    }
    order_.renew();
    std::vector<const Waiting*> by_number(count_);
    for (const Waiting& one : released)
      by_number[one.thread.x +
                blockDim.x * (one.thread.y + std::size_t(blockDim.y) * one.thread.z)] = &one;
    for (std::size_t i = 0; i < count_; ++i) {
      const Waiting& one = *by_number[order_[i]];
      threadIdx = one.thread;
      resume(*one.fiber);
    }
  }
  return {};
}

std::string BlockRunner::parted(const std::vector<Waiting>& waiting) const {
  const auto place = [](const Waiting& one) {
    return std::string(one.file) + ":" + std::to_string(one.line);
  };
  if (ended_ > 0)
    return std::to_string(waiting.size()) + " threads of a block wait at a barrier (" +
           place(waiting.front()) + ") that " + std::to_string(ended_) + " of its threads skipped";
  for (const Waiting& one : waiting)
    if (one.line != waiting.front().line || std::string_view(one.file) != waiting.front().file)
      return "threads of a block wait at different barriers: " + place(waiting.front()) + " and " +
             place(one);
  return {};
}

void BlockRunner::wait(const char* file, unsigned line) {
  Fiber& fiber = *running_;
  const uint3 thread = threadIdx;
  waiting_.push_back({&fiber, thread, file, line});
  fiber.suspend();
}

}  // namespace

std::string run_grid(dim3 grid, dim3 block, ThreadOrder order,
                     const std::function<void()>& thread) {
  std::mt19937 random(10);
  const std::size_t blocks = std::size_t(grid.x) * grid.y * grid.z;
  Permutation block_order(blocks, order, random);
  block_order.renew();
  gridDim = grid;
  blockDim = block;
  BlockRunner runner(block, order, thread);
  for (std::size_t i = 0; i < blocks; ++i) {
    blockIdx = index_in(grid, block_order[i]);
    if (std::string fault = runner.run(); !fault.empty()) return fault;
  }
  return {};
}

void barrier(const char* file, unsigned line) { BlockRunner::current->wait(file, line); }

}  // namespace cuda_stand_in
