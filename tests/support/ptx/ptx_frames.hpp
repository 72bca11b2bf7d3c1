// Frames of functions on a thread's stack.
#pragma once

#include "ptx_code.hpp"

namespace ptx {

/// Fills a new frame at `t.slots` for `function` and makes its first instruction the next.
void begin_function(Thread& t, const Function& function);

/// Writes special registers and addresses, which differ between threads.
void set_specials(Thread& t, const Function& function);

/// Calls a function. @throws Fault if the stack is full
void enter_function(Thread& t, const Call& called);

/// Returns to the caller; ends the thread if there is none.
void leave_function(Thread& t);

}  // namespace ptx
