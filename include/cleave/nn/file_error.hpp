// The error of a file of a checkpoint.
#pragma once

#include <string>

#include <cleave/core/error.hpp>

namespace cleave::inline v0::nn::detail {

[[noreturn]] inline void file_error(const std::string& path, const std::string& message) {
  throw Error("checkpoint", path + " " + message);
}

}  // namespace cleave::inline v0::nn::detail
