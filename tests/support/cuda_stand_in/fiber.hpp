// A flow of control with its own stack, which can be suspended and resumed.
//
// A switch costs a few nanoseconds on x86-64, where it saves only the callee-saved registers, and a
// system call elsewhere (ucontext). AddressSanitizer and ThreadSanitizer are told of each switch.
#pragma once

#include <cstddef>

namespace cuda_stand_in {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;  // its stack holds pointers to it

  /// Makes the next `resume` call `entry(argument)`. Work in progress on the fiber is abandoned,
  /// and destructors on its stack do not run.
  void prepare(void (*entry)(void*), void* argument);

  /// Runs the fiber until it suspends itself or `entry` returns. Called from outside the fiber.
  void resume();

  /// Returns to the caller of `resume`. Called by code running on the fiber.
  void suspend();

  /// Whether `entry` has returned.
  bool finished() const { return finished_; }

 private:
  struct Switch;
  [[noreturn]] static void run();

  std::byte* stack_;        ///< the lowest page is a guard page
  std::byte* top_;          ///< where the frames begin
  void* inside_ = nullptr;  ///< where the fiber resumes
  void* outside_ = nullptr;
  bool started_ = false;  ///< `run` has a frame on the stack
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool finished_ = true;

  // For the sanitizers: the fake stack and handle of each side, and the bounds of the outer stack.
  void* inside_frames_ = nullptr;
  void* outside_frames_ = nullptr;
  const void* outer_stack_ = nullptr;
  std::size_t outer_bytes_ = 0;
  void* tsan_inside_ = nullptr;
  void* tsan_outside_ = nullptr;
};

}  // namespace cuda_stand_in
