// The words of PTX text (section 4).
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ptx_code.hpp"

namespace ptx {

/// The line of a position in a text, from 1.
inline std::size_t line_of(std::string_view text, std::size_t position) {
  return 1 + std::size_t(std::count(text.begin(), text.begin() + std::ptrdiff_t(position), '\n'));
}

/// The size of a type such as ".f32" (section 5.2); 0 if it has none.
inline std::uint32_t bits_of(std::string_view type) {
  std::uint32_t bits = 0;
  if (type.size() > 2) std::from_chars(type.data() + 2, type.data() + type.size(), bits);
  return bits;
}

/// Reads PTX word by word: names, numbers (with their sign), or single characters.
class Tokens {
 public:
  Tokens(std::string_view text, std::size_t position) : text_(text), at_(position) { advance(); }

  std::string_view peek() const { return word_; }
  bool done() const { return word_.empty(); }
  std::size_t position() const { return std::size_t(word_.data() - text_.data()); }

  std::string_view take() {
    const std::string_view word = word_;
    if (word.empty()) fail("the text ends");
    advance();
    return word;
  }
  bool accept(std::string_view word) {
    if (word_ != word) return false;
    advance();
    return true;
  }
  void expect(std::string_view word) {
    if (!accept(word))
      fail("expected '" + std::string(word) + "', found '" + std::string(word_) + "'");
  }
  bool at_number() const { return word_.find_first_of("-0123456789") == 0; }

  /// The bits of a literal: an integer, 0f or 0d with hexadecimal digits (section 4.5).
  std::uint64_t number() {
    std::string_view digits = word_;
    const bool negative = digits.starts_with('-');
    if (negative) digits.remove_prefix(1);
    const bool prefixed =
        digits.size() > 1 && (digits[1] == 'x' || digits[1] == 'f' || digits[1] == 'd');
    if (prefixed) digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto read =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, prefixed ? 16 : 10);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
      fail("'" + std::string(word_) + "' is not a number");
    advance();
    return negative ? ~value + 1 : value;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Fault("PTX line " + std::to_string(line_of(text_, position())) + ": " + what);
  }
  [[noreturn]] void refuse(std::string_view what) const {
    fail(std::string(what) + " is outside the interpreted subset of PTX");
  }

 private:
  static bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
  }

  void advance() {
    const auto skip = [this](std::size_t to) { at_ = std::min(to, text_.size()); };
    skip(text_.find_first_not_of(" \t\r\n", at_));
    while (text_.substr(at_, 2) == "//") {
      skip(text_.find('\n', at_));
      skip(text_.find_first_not_of(" \t\r\n", at_));
    }
    std::size_t end = std::min(at_ + 1, text_.size());
    if (end > at_ && (in_name(text_[at_]) || text_[at_] == '-'))
      while (end < text_.size() && in_name(text_[end])) ++end;
    word_ = text_.substr(at_, end - at_);
    at_ = end;
  }

  std::string_view text_;
  std::size_t at_;
  std::string_view word_;
};

}  // namespace ptx
