// How often the runtime has been called, for tests of what must not be.
#pragma once

#include <string_view>

#include "cuda_stand_in/recorder.hpp"

namespace cleave::testing {

/// Calls of the functions whose names end so.
inline int calls_of(const cuda_stand_in::Recording& recording, std::string_view name) {
  int found = 0;
  for (const cuda_stand_in::Call& call : recording.calls()) found += call.function.ends_with(name);
  return found;
}

}  // namespace cleave::testing
