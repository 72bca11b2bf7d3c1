#include "fiber.hpp"

#include <atomic>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "sanitizer_fiber.hpp"

#if !defined(__x86_64__) || defined(CUDA_STAND_IN_UCONTEXT)
#define CUDA_STAND_IN_UCONTEXT 1
#include <ucontext.h>
#endif

namespace cuda_stand_in {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t stack_bytes = std::size_t(256) << 10;

thread_local Fiber* starting = nullptr;

}  // namespace

#if !defined(CUDA_STAND_IN_UCONTEXT)

extern "C" void cuda_stand_in_switch(void** save, void* load);

// Saves the callee-saved registers and the stack pointer, and loads those of the other side.
asm(R"(
.text
.globl cuda_stand_in_switch
.hidden cuda_stand_in_switch
.type cuda_stand_in_switch, @function
cuda_stand_in_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_stand_in_switch, .-cuda_stand_in_switch
)");

struct Fiber::Switch {
  static void create(Fiber&) {}
  static void destroy(Fiber&) {}

  // Lays out the stack that the switch pops: six registers and the address of `run`, as after a
  // call.
  static void prepare(Fiber& fiber) {
    auto** top = reinterpret_cast<void**>(fiber.top_);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&Fiber::run);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    fiber.inside_ = top;
  }
  static void enter(Fiber& fiber) { cuda_stand_in_switch(&fiber.outside_, fiber.inside_); }
  static void leave(Fiber& fiber) { cuda_stand_in_switch(&fiber.inside_, fiber.outside_); }
};

#else

struct Fiber::Switch {
  static ucontext_t& context(void* side) { return *static_cast<ucontext_t*>(side); }

  static void create(Fiber& fiber) {
    fiber.inside_ = new ucontext_t;
    fiber.outside_ = new ucontext_t;
  }
  static void destroy(Fiber& fiber) {
    delete &context(fiber.inside_);
    delete &context(fiber.outside_);
  }
  static void prepare(Fiber& fiber) {
    ucontext_t& inside = context(fiber.inside_);
    getcontext(&inside);
    inside.uc_stack.ss_sp = fiber.stack_ + page;
    inside.uc_stack.ss_size = std::size_t(fiber.top_ - fiber.stack_) - page;
    inside.uc_link = nullptr;
    makecontext(&inside, &Fiber::run, 0);
  }
  static void enter(Fiber& fiber) {
    swapcontext(&context(fiber.outside_), &context(fiber.inside_));
  }
  static void leave(Fiber& fiber) {
    swapcontext(&context(fiber.inside_), &context(fiber.outside_));
  }
};

#endif

Fiber::Fiber() {
  void* range = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw std::bad_alloc();
  mprotect(range, page, PROT_NONE);
  stack_ = static_cast<std::byte*>(range);
  // Frames of different fibers at the same page offset would compete for the same cache sets.
  static std::atomic<std::size_t> fibers = 0;
  top_ = stack_ + stack_bytes - fibers++ % 13 * 320;
  Switch::create(*this);
}

Fiber::~Fiber() {
  if (tsan_inside_ != nullptr) tsan_destroy_fiber(tsan_inside_);
  Switch::destroy(*this);
  munmap(stack_, stack_bytes);
}

void Fiber::prepare(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  const bool idle = std::exchange(finished_, false);
  if (idle && started_) return;  // the fiber waits in `run` for the next entry
  started_ = true;
  inside_frames_ = nullptr;
  asan_clear_stack(stack_ + page, stack_bytes - page);
  if (tsan_inside_ != nullptr) tsan_destroy_fiber(tsan_inside_);
  tsan_inside_ = tsan_create_fiber();
  Switch::prepare(*this);
}

void Fiber::resume() {
  starting = this;
  tsan_outside_ = tsan_current_fiber();
  asan_start_switch(&outside_frames_, stack_ + page, stack_bytes - page);
  tsan_switch_to(tsan_inside_);
  Switch::enter(*this);
  asan_finish_switch(outside_frames_, nullptr, nullptr);
}

void Fiber::suspend() {
  asan_start_switch(&inside_frames_, outer_stack_, outer_bytes_);
  tsan_switch_to(tsan_outside_);
  Switch::leave(*this);
  asan_finish_switch(inside_frames_, &outer_stack_, &outer_bytes_);
}

void Fiber::run() {
  Fiber& fiber = *starting;
  asan_finish_switch(nullptr, &fiber.outer_stack_, &fiber.outer_bytes_);
  for (;;) {
    fiber.entry_(fiber.argument_);
    fiber.finished_ = true;
    fiber.suspend();
  }
}

}  // namespace cuda_stand_in
