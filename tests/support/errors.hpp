// The messages of operations that must fail.
#pragma once

#include <exception>
#include <string>

#include <doctest/doctest.h>

namespace cleave::testing {

/// The message of the exception that `f()` throws; empty if it does not throw.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

/// Whether a text contains another; prints both if not.
inline bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("'", text, "' does not contain '", part, "'");
  return found;
}

}  // namespace cleave::testing
