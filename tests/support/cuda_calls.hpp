// Counts calls of the runtime, for tests of how many are made.
#pragma once

#include <string_view>

#include "cuda_stand_in/recorder.hpp"

namespace cleave::testing {

/// The number of recorded calls of functions whose names end in `name`.
inline int calls_of(const cuda_stand_in::Recording& recording, std::string_view name) {
  int found = 0;
  for (const cuda_stand_in::Call& call : recording.calls()) found += call.function.ends_with(name);
  return found;
}

/// The number of kernels that f() launches.
template <class F>
int launches_of(const F& f) {
  const cuda_stand_in::Recording recording;
  f();
  return calls_of(recording, "cudaLaunchKernelEx");
}

}  // namespace cleave::testing
