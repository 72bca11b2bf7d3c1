// Where a program made a call: the file and the line, for errors about calls of several ranks.
#pragma once

#include <string>
#include <utility>

namespace cleave::inline v0 {

/// A place in the source of the program. As the last parameter of a function, `CallSite where =
/// CallSite::here()` is the place of the call. (`std::source_location` is missing in clang 14.)
struct CallSite {
  const char* file = nullptr;  ///< null: not known
  int line = 0;

  static constexpr CallSite here(const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// " at heat.cpp:41"; empty if the place is not known.
inline std::string to_string(const CallSite& site) {
  if (site.file == nullptr) return {};
  return std::string(" at ") + site.file + ":" + std::to_string(site.line);
}

namespace detail {

/// The text of a caller, as `Signature` has it, to follow the name of a collective.
inline std::string caller_to_string(const char* caller) {
  if (*caller == '\0' || *caller == ' ') return caller;
  return std::string(" for ") + caller;
}

}  // namespace detail

}  // namespace cleave::inline v0
