// The PTX text of a compiled source. Kernels are decoded when they are first used.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "ptx_code.hpp"

namespace ptx {

class Module {
 public:
  explicit Module(std::string text) : text_(std::move(text)) {}
  Module(const Module&) = delete;  // kernels refer to its text

  /// @throws Fault if there is no such kernel, or it cannot be decoded
  const Kernel& kernel(const std::string& name);
  /// The architecture for which it was compiled: 80.
  int target() const;

 private:
  std::string text_;
  std::unordered_map<std::string, std::unique_ptr<Kernel>> kernels_;
};

}  // namespace ptx
