// Counts calls of the runtime, for tests that certain calls are not made.
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

}  // namespace cleave::testing
