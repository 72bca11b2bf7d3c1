#include "ptx_grid.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "ptx_decode.hpp"
#include "ptx_frames.hpp"

namespace ptx {
namespace {

/// A thread that has executed so many instructions waits for something that never happens.
constexpr std::uint64_t most_instructions = 2'000'000'000;

/// Slots of a stack beyond the frame of a kernel that calls functions.
constexpr std::size_t spare_slots = 16384;

constexpr std::uint64_t never_written = 0xa5a5'a5a5'a5a5'a5a5;

std::string text(const Extents& e) {
  return '(' + std::to_string(e[0]) + ", " + std::to_string(e[1]) + ", " + std::to_string(e[2]) +
         ')';
}

Extents index_in(const Extents& extents, std::uint32_t number) {
  const std::uint32_t row = number / extents[0];
  return {number % extents[0], row % extents[1], row / extents[1]};
}

std::uint32_t volume(const Extents& e) { return e[0] * e[1] * e[2]; }

std::uint32_t line_of(const Thread& thread) { return thread.next[-1].line; }

void advance(Thread& t) {
  std::uint64_t budget = most_instructions - std::min(most_instructions, t.executed);
  const std::uint64_t before = budget;
  while (t.state == State::running && budget > 0) {
    const Instruction& i = *t.next++;
    --budget;
    if (i.guard >= 0 && t.predicate(std::uint32_t(i.guard)) == i.negated) continue;
    i.run(t, i);
  }
  t.executed += before - budget;
  if (budget == 0) throw Fault("the thread does not end");
}

class Runner {
 public:
  explicit Runner(const Launch& launch)
      : launch_(launch), block_{.launch = launch, .threads = volume(launch.block)} {
    const Program& program = *launch.program;
    threads_.resize(program.stops ? block_.threads : 1);
    const std::size_t slots =
        program.kernel->image.size() + (program.functions.size() > 1 ? spare_slots : 0);
    for (Thread& thread : threads_) {
      thread.block = &block_;
      thread.stack = std::make_unique_for_overwrite<std::uint64_t[]>(slots);
      thread.stack_end = thread.stack.get() + slots;
    }
    block_.shared.resize((program.shared_bytes + 15) / 8);
    block_.accesses.resize(program.shared_bytes);
  }

  std::uint64_t run() {
    std::vector<std::uint32_t> order(volume(launch_.grid));
    std::iota(order.begin(), order.end(), 0u);
    reorder(order);
    for (const std::uint32_t number : order) {
      block_.index = index_in(launch_.grid, number);
      run_block();
    }
    return executed_;
  }

 private:
  void reorder(std::vector<std::uint32_t>& numbers) const {
    if (launch_.reorder) launch_.reorder(numbers);
  }

  void start(Thread& thread, std::uint32_t number) {
    const Function& kernel = *launch_.program->kernel;
    thread.number = number;
    thread.slots = thread.stack.get();
    thread.callers.clear();
    if (thread.function == &kernel) {  // what earlier threads left cannot be told from a pattern
      thread.next = kernel.code.data();
      set_specials(thread, kernel);
    } else {
      begin_function(thread, kernel);
    }
    thread.state = State::running;
    thread.executed = 0;
  }

  void proceed(Thread& thread) {
    try {
      advance(thread);
    } catch (const Fault& fault) {
      throw located(fault.what(), thread);
    }
    if (thread.state == State::ended) executed_ += thread.executed;
  }

  Fault located(const std::string& what, const Thread& thread) const {
    return Fault(
        launch_.program->kernel->name + ": block " + text(block_.index) + ", thread " +
        text(index_in(launch_.block, thread.number)) + ", line " + std::to_string(line_of(thread)) +
        " of the PTX" +
        (thread.function == launch_.program->kernel ? "" : ", in " + thread.function->name) + ": " +
        what);
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
                          text(index_in(launch_.block, thread.number)) + " at line " +
                          std::to_string(line_of(thread)),
                      *waiting);
      thread.state = State::running;
    }
    if (waiting->next[-1].mode != 0) reduce_at_barrier(threads_);
    ++block_.epoch;
    return true;
  }

  const Launch& launch_;
  Block block_;
  std::vector<Thread> threads_;
  std::uint64_t executed_ = 0;
};

std::uint64_t special(const Thread& t, Special which) {
  const Launch& launch = t.block->launch;
  const auto at = [](const Extents& e, Special x, Special w) {
    return e[std::size_t(w) - std::size_t(x)];
  };
  if (which <= Special::tid_z) return at(index_in(launch.block, t.number), Special::tid_x, which);
  if (which <= Special::ntid_z) return at(launch.block, Special::ntid_x, which);
  if (which <= Special::ctaid_z) return at(t.block->index, Special::ctaid_x, which);
  if (which <= Special::nctaid_z) return at(launch.grid, Special::nctaid_x, which);
  const std::uint32_t lane = t.number % 32, below = (1u << lane) - 1, own = 1u << lane;
  switch (which) {
    case Special::laneid: return lane;
    case Special::lanemask_eq: return own;
    case Special::lanemask_lt: return below;
    case Special::lanemask_le: return below | own;
    case Special::lanemask_gt: return ~(below | own);
    case Special::lanemask_ge: return ~below;
    default: return t.number / 32;
  }
}

}  // namespace

void begin_function(Thread& t, const Function& function) {
  std::memcpy(t.slots, function.image.data(), function.image.size() * sizeof(std::uint64_t));
  for (const FrameAddress& address : function.frame_addresses)
    t.slots[address.slot] = reinterpret_cast<std::uintptr_t>(t.slots + address.of_slot);
  for (const ParameterAddress& address : function.parameter_addresses)
    t.slots[address.slot] =
        reinterpret_cast<std::uintptr_t>(t.block->launch.parameters.data() + address.offset);
  set_specials(t, function);
  t.function = &function;
  t.next = function.code.data();
}

void set_specials(Thread& t, const Function& function) {
  for (const SpecialSlot& each : function.specials) t.slots[each.slot] = special(t, each.which);
}

void enter_function(Thread& t, const Call& called) {
  const Function& callee = *called.callee;
  std::uint64_t* const frame = t.slots + (t.function->image.size() + 1) / 2 * 2;
  if (frame + callee.image.size() > t.stack_end) throw Fault("the stack of the thread is full");
  if (called.arguments.size() != callee.parameters.size())
    throw Fault("the call of " + callee.name + " passes another number of arguments");
  std::uint64_t* const caller = t.slots;
  t.callers.push_back({t.function, t.next, caller, called.result});
  t.slots = frame;
  begin_function(t, callee);
  for (std::size_t k = 0; k < called.arguments.size(); ++k)
    std::memcpy(frame + callee.parameters[k].slot, caller + called.arguments[k].slot,
                called.arguments[k].bytes);
}

void leave_function(Thread& t) {
  if (t.callers.empty()) {
    t.state = State::ended;
    return;
  }
  const Frame back = t.callers.back();
  t.callers.pop_back();
  std::memcpy(back.slots + back.result.slot, t.slots + t.function->result.slot, back.result.bytes);
  t.slots = back.slots;
  t.function = back.function;
  t.next = back.next;
}

std::vector<std::byte> pack_parameters(const Function& kernel, void* const* arguments) {
  std::vector<std::byte> bytes;
  for (const ParameterBytes& each : kernel.kernel_parameters) {
    bytes.resize(each.offset + each.bytes);
    std::memcpy(bytes.data() + each.offset, *arguments++, each.bytes);
  }
  return bytes;
}

std::uint64_t run(const Launch& launch) { return Runner(launch).run(); }

}  // namespace ptx
