// The text of an error.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <cleave/core/error.hpp>

namespace cleave::inline v0 {

namespace detail {

CLEAVE_INLINE std::string error_text(const std::string& operation, const std::string& message,
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

}  // namespace detail

CLEAVE_INLINE Error::Error(std::string operation, std::string message, ErrorContext context)
    : std::runtime_error(detail::error_text(operation, message, context)),
      operation_(std::move(operation)),
      message_(std::move(message)),
      context_(std::move(context)) {}

}  // namespace cleave::inline v0
