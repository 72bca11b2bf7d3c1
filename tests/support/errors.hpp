// What an operation that must fail says.
#pragma once

#include <string>

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

}  // namespace cleave::testing
