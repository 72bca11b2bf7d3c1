// The command line of data_parallel.
#pragma once

#include <string>

#include <cleave/parallel.hpp>

#include "../command_line.hpp"

namespace data_parallel {

using command_line::UsageError;

struct Options {
  cleave::index_t steps = 200;
  cleave::index_t parts = 2;  ///< per step, whose gradients are accumulated before they are sent
  std::string hook = "all_reduce";
};

/// The hook that sums gradients. @throws UsageError if there is no hook of this name
inline cleave::CommHook hook_named(const std::string& name) {
  if (name == "all_reduce") return cleave::AllReduce{};
  if (name == "bf16") return cleave::Bf16Compress{};
  if (name == "power_sgd") return cleave::PowerSgd({.rank = 4});
  if (name == "top_k") return cleave::TopK(0.1);
  throw UsageError("--hook: unknown hook '" + name +
                   "'; it must be all_reduce, bf16, power_sgd or top_k");
}

/// @throws UsageError for an unknown option, or a value that the option does not accept
inline Options parse(int argc, char** argv) {
  Options options;
  command_line::parse(argc, argv, [&](const std::string& option, const std::string& value) {
    if (option == "--steps") options.steps = command_line::positive(option, value);
    else if (option == "--parts") options.parts = command_line::positive(option, value);
    else if (option == "--hook") options.hook = value;
    else if (option != "--ranks")  // read by cleave::run
      throw UsageError("unknown option '" + option +
                       "'; the options are --hook NAME, --steps N, --parts N, --ranks N");
  });
  static_cast<void>(hook_named(options.hook));
  return options;
}

}  // namespace data_parallel
