// The one exception type of the library, and the context it carries.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace cleave {

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
  Error(std::string operation, std::string message, ErrorContext context = {})
      : std::runtime_error(text(operation, message, context)),
        operation_(std::move(operation)),
        message_(std::move(message)),
        context_(std::move(context)) {}

  /// The function that the user called.
  const std::string& operation() const noexcept { return operation_; }
  /// What went wrong, without the context.
  const std::string& message() const noexcept { return message_; }
  const ErrorContext& context() const noexcept { return context_; }

 private:
  static std::string text(const std::string& operation, const std::string& message,
                          const ErrorContext& context) {
    std::string details;
    const auto add = [&](const char* name, const std::string& value) {
      if (value.empty()) return;
      details += details.empty() ? " [" : "; ";
      details += name;
      details += ' ';
      details += value;
    };
    add("shapes", context.shapes);
    add("placements", context.placements);
    add("mesh", context.mesh);
    add("rank", context.rank < 0 ? std::string{} : std::to_string(context.rank));
    if (!details.empty()) details += ']';
    return operation + ": " + message + details;
  }

  std::string operation_;
  std::string message_;
  ErrorContext context_;
};

}  // namespace cleave
