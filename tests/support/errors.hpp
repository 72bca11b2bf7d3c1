// What an operation that must fail says.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include <cleave/core/error.hpp>

namespace cleave::testing {

/// What the Error says that `f()` throws; empty if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Whether a text contains another one; says so if not.
inline bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("'", text, "' does not contain '", part, "'");
  return found;
}

}  // namespace cleave::testing
