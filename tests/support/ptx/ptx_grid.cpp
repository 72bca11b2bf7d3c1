#include "ptx_grid.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ptx_tokens.hpp"

namespace ptx {
namespace {

/// A thread that has executed so many instructions waits for something that never happens.
constexpr std::uint64_t most_instructions = 2'000'000'000;

std::string text(const Extents& e) {
  return '(' + std::to_string(e[0]) + ", " + std::to_string(e[1]) + ", " + std::to_string(e[2]) +
         ')';
}

Extents index_in(const Extents& extents, std::uint32_t number) {
  const std::uint32_t row = number / extents[0];
  return {number % extents[0], row % extents[1], row / extents[1]};
}

std::uint32_t volume(const Extents& e) { return e[0] * e[1] * e[2]; }

class Runner {
 public:
  explicit Runner(const Launch& launch)
      : launch_(launch), block_{.launch = launch, .threads = volume(launch.block)} {
    const Kernel& kernel = *launch.kernel;
    threads_.resize(kernel.stops ? block_.threads : 1);
    const std::size_t slots = (launch.frame.size() + 1) / 2 * 2;  // aligned to 16 bytes
    frames_.resize(slots * threads_.size());
    for (Thread& thread : threads_) {
      thread.block = &block_;
      thread.slots = frames_.data() + slots * std::size_t(&thread - threads_.data());
      std::copy(launch.frame.begin(), launch.frame.end(), thread.slots);
      for (const FrameAddress& each : kernel.addresses)
        thread.slots[each.slot] = reinterpret_cast<std::uintptr_t>(thread.slots) + each.offset;
    }
    block_.shared.resize((kernel.shared_bytes + 15) / 8);
    block_.accesses.resize(kernel.shared_bytes);
  }

  void run() {
    std::vector<std::uint32_t> order(volume(launch_.grid));
    std::iota(order.begin(), order.end(), 0u);
    reorder(order);
    for (const std::uint32_t number : order) {
      block_.index = index_in(launch_.grid, number);
      run_block();
    }
  }

 private:
  void reorder(std::vector<std::uint32_t>& numbers) const {
    if (launch_.reorder) launch_.reorder(numbers);
  }

  // What earlier threads left in registers cannot be told from a pattern.
  void start(Thread& t, std::uint32_t number) {
    const Extents tid = index_in(launch_.block, number), ntid = launch_.block;
    const Extents ctaid = block_.index, nctaid = launch_.grid;
    const std::uint32_t lane = number % 32;
    const std::array<std::uint32_t, special_registers.size()> values = {
        tid[0],   tid[1],   tid[2],    ntid[0],   ntid[1],   ntid[2], ctaid[0],
        ctaid[1], ctaid[2], nctaid[0], nctaid[1], nctaid[2], lane,    (2u << lane) - 1};
    for (const SpecialSlot& each : launch_.kernel->specials)
      t.slots[each.slot] = values[each.which];
    t.number = number;
    t.next = launch_.kernel->code.data();
    t.state = State::running;
    t.budget = most_instructions;
  }

  void proceed(Thread& t) {
    try {
      while (t.state == State::running) {
        if (t.budget-- == 0) throw Fault("the thread does not end");
        const Instruction& i = *t.next++;
        if (i.guard >= 0 && t.predicate(std::uint32_t(i.guard)) == i.negated) continue;
        i.run(t, i);
      }
    } catch (const Fault& fault) {
      throw located(fault.what(), t);
    }
  }

  std::string line(const Thread& thread) const {
    return std::to_string(line_of(launch_.kernel->text, thread.next[-1].position));
  }

  Fault located(const std::string& what, const Thread& thread) const {
    return Fault(launch_.kernel->name + ": block " + text(block_.index) + ", thread " +
                 text(index_in(launch_.block, thread.number)) + ", line " + line(thread) +
                 " of the PTX: " + what);
  }

  void run_block() {
    ++block_.epoch;
    std::fill(block_.shared.begin(), block_.shared.end(), never_written);
    std::vector<std::uint32_t> order(block_.threads);
    std::iota(order.begin(), order.end(), 0u);
    reorder(order);
    for (const std::uint32_t number : order) {
      Thread& thread = threads_[threads_.size() == 1 ? 0 : number];
      start(thread, number);
      proceed(thread);
    }
    while (release()) {
      reorder(order);
      for (const std::uint32_t number : order)
        if (threads_[number].state == State::running) proceed(threads_[number]);
    }
  }

  /// Lets threads that wait continue. @return false if all have ended
  bool release() {
    if (threads_.size() == 1 && threads_[0].state == State::ended) return false;
    bool exchanged = false;
    for (std::size_t first = 0; first < threads_.size(); first += 32) {
      const std::span<Thread> warp(threads_.data() + first,
                                   std::min<std::size_t>(32, threads_.size() - first));
      for (const Thread& thread : warp) {
        if (thread.state != State::at_warp) continue;
        try {
          exchange(warp);
        } catch (const Fault& fault) {
          throw located(fault.what(), thread);
        }
        exchanged = true;
        break;
      }
    }
    return exchanged || pass_barrier();
  }

  bool pass_barrier() {
    const Thread* waiting = nullptr;
    std::size_t ended = 0;
    for (const Thread& thread : threads_) {
      if (thread.state == State::ended) ++ended;
      else if (waiting == nullptr) waiting = &thread;
    }
    if (waiting == nullptr) return false;
    if (ended > 0)
      throw located(std::to_string(threads_.size() - ended) +
                        " threads of a block wait at a "
                        "barrier that " +
                        std::to_string(ended) + " of its threads skipped",
                    *waiting);
    for (Thread& thread : threads_) {
      if (thread.next != waiting->next)
        throw located("threads of a block wait at different barriers: thread " +
                          text(index_in(launch_.block, thread.number)) + " at line " + line(thread),
                      *waiting);
      thread.state = State::running;
    }
    finish_barrier(threads_);
    ++block_.epoch;
    return true;
  }

  const Launch& launch_;
  Block block_;
  std::vector<Thread> threads_;
  std::vector<std::uint64_t> frames_;
};

}  // namespace

std::vector<std::uint64_t> frame_of(const Kernel& kernel, void* const* arguments) {
  std::vector<std::uint64_t> frame = kernel.image;
  for (const Parameter& each : kernel.parameters)
    std::memcpy(reinterpret_cast<std::byte*>(frame.data()) + each.offset, *arguments++, each.bytes);
  return frame;
}

void run(const Launch& launch) { Runner(launch).run(); }

}  // namespace ptx
