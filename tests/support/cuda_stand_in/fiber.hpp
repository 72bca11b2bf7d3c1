// A flow of control with a stack of its own, which stops in the middle and goes on later.
//
// Switching costs a few nanoseconds on x86-64, where it saves what a function must preserve, and a
// system call elsewhere (ucontext). AddressSanitizer and ThreadSanitizer are told of each switch.
#pragma once

#include <cstddef>

namespace cuda_stand_in {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;  // its stack holds pointers to it

  /// Makes the next `resume` call `entry(argument)`; whatever the fiber was doing is abandoned, and
  /// destructors on its stack do not run.
  void prepare(void (*entry)(void*), void* argument);

  /// Runs the fiber until it suspends itself or `entry` returns. Called from outside.
  void resume();

  /// Goes back to the caller of `resume`. Called by the fiber's own code.
  void suspend();

  /// Whether `entry` has returned.
  bool finished() const { return finished_; }

 private:
  struct Switch;
  [[noreturn]] static void run();

  std::byte* stack_;        ///< its lowest page is a guard
  std::byte* top_;          ///< where the frames begin
  void* inside_ = nullptr;  ///< where the fiber goes on
  void* outside_ = nullptr;
  bool started_ = false;  ///< `run` has a frame on the stack
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool finished_ = true;

  // For the sanitizers: the fake stack and the handle of either side, the outer stack's bounds.
  void* inside_frames_ = nullptr;
  void* outside_frames_ = nullptr;
  const void* outer_stack_ = nullptr;
  std::size_t outer_bytes_ = 0;
  void* tsan_inside_ = nullptr;
  void* tsan_outside_ = nullptr;
};

}  // namespace cuda_stand_in
