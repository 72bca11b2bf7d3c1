// The PTX text of a compiled source: its kernels, functions and variables. Functions are decoded
// when they are first used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx_code.hpp"
#include "ptx_tokens.hpp"

namespace ptx {

/// A variable of a module (section 5.4).
struct Variable {
  Space space = Space::global;
  std::uint32_t bytes = 0;
  std::uint32_t align = 1;
  std::unique_ptr<std::uint64_t[]> contents{};  ///< null for shared variables
};

class Module;

/// A kernel with the functions that it calls, and the layout of its shared memory.
struct Program {
  Module* module = nullptr;
  const Function* kernel = nullptr;
  std::unordered_map<std::string, std::unique_ptr<Function>> functions{};
  std::unordered_map<std::string, std::uint32_t> shared_offsets{};
  std::uint32_t shared_bytes = 0;
  bool stops = false;  ///< whether threads wait for one another

  /// The function of that name, decoded. @throws Fault if there is none, or it cannot be decoded
  const Function& function(std::string_view name);
  std::uint32_t shared_offset(std::string_view name, const Variable& variable);
};

class Module {
 public:
  /// @param text  kept by the module @throws Fault if it is not PTX, naming the line
  explicit Module(std::string text);
  Module(const Module&) = delete;  // programs point to it

  /// @throws Fault if there is no such kernel, or it cannot be decoded
  const Program& program(std::string_view kernel);
  std::vector<std::string> kernels() const;
  /// The architecture for which it was compiled: 80.
  int target() const { return target_; }

  /// The variable of that name; null if there is none.
  const Variable* variable(std::string_view name) const;
  const std::unordered_map<std::string, Variable>& variables() const { return variables_; }

  struct Text {
    std::string_view text;  ///< from .entry or .func to the end of the body
    std::uint32_t line;
  };
  /// @throws Fault if there is no such function
  const Text& text(std::string_view function) const;

 private:
  void scan();

  std::string text_;
  int target_ = 0;
  std::unordered_map<std::string, Text> texts_;
  std::unordered_map<std::string, Variable> variables_;
  std::unordered_map<std::string, std::unique_ptr<Program>> programs_;
};

/// Reads the declaration of a variable up to its semicolon. @return its name
std::string read_variable(Tokens& tokens, Variable& variable);

/// Decodes one function from its text.
void parse_function(Program& program, const Module::Text& text, Function& function);

}  // namespace ptx
