// What each rank of a group does on its own, e.g. with files, and that may fail on some of them.
#pragma once

#include <cstdint>
#include <string>

#include <cleave/comm/exchange_values.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::detail {

/// Calls f(), if this rank takes part, and then compares the outcomes of all ranks.
///
/// @param elsewhere  the message on ranks on which f did not fail: "another rank could not .."
/// @collective       every rank of the group
/// @throws Error     on all ranks if f throws one on any
template <class F>
void together(Communicator& group, const char* operation, const std::string& elsewhere,
              bool takes_part, const F& f, const ErrorContext& context = {}) {
  std::string problem;
  bool failed = false;
  try {
    if (takes_part) f();
  } catch (const Error& error) {
    problem = error.message();
    failed = true;
  }
  const std::int64_t any = reduce_values(group, ReduceOp::max, std::int64_t(failed), operation);
  if (failed) throw Error(operation, problem, context);
  if (any != 0) throw Error(operation, elsewhere, context);
}

}  // namespace cleave::inline v0::detail
