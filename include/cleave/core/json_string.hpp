// Text as a string of JSON.
#pragma once

#include <cstdio>
#include <string>

namespace cleave::inline v0::detail {

/// In quotes, with quotes, backslashes and control characters escaped.
inline std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", unsigned(c));
      quoted += code;
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace cleave::inline v0::detail
