// The one exception type of the library, and the context it carries.
#pragma once

#include <stdexcept>
#include <string>

#include <cleave/core/config.hpp>

namespace cleave::inline v0 {

/// What an error was about; empty members and a negative rank are left out of the text.
struct ErrorContext {
  std::string shapes{};      ///< e.g. "[5, 6] and [6, 7]"
  std::string placements{};  ///< e.g. "(Shard(0), Replicate)"
  std::string mesh{};        ///< e.g. "dp=2 x tp=2"
  int rank = -1;             ///< world rank that reports the error
};

/// Reports every error that types cannot rule out.
///
/// `what()` reads `operation: message [shapes ..; placements ..; mesh ..; rank ..]`.
class Error : public std::runtime_error {
 public:
  [[gnu::cold]] Error(std::string operation, std::string message, ErrorContext context = {});

  /// The function that the user called.
  const std::string& operation() const noexcept { return operation_; }
  /// What went wrong, without the context.
  const std::string& message() const noexcept { return message_; }
  const ErrorContext& context() const noexcept { return context_; }

 private:
  std::string operation_;
  std::string message_;
  ErrorContext context_;
};

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/core/error_body.hpp>
#endif
