// The words of PTX text (section 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ptx_code.hpp"

namespace ptx {

/// Reads PTX word by word: names, numbers (with their sign), or single characters.
class Tokens {
 public:
  explicit Tokens(std::string_view text, std::uint32_t line = 1) : text_(text), line_(line) {
    advance();
  }

  std::string_view peek() const { return word_; }
  std::uint32_t line() const { return word_line_; }
  bool done() const { return word_.empty(); }
  std::size_t begin() const { return std::size_t(word_.data() - text_.data()); }

  std::string_view take() {
    const std::string_view word = word_;
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
  std::uint64_t integer();
  void skip_line();
  /// Continues at a later position of the text.
  void jump(std::size_t position);

  [[noreturn]] void fail(const std::string& what) const {
    throw Fault("PTX line " + std::to_string(word_line_) + ": " + what);
  }

 private:
  void advance();

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_;
  std::string_view word_;
  std::uint32_t word_line_ = 1;
};

inline bool is_number(std::string_view word) {
  return !word.empty() && ((word[0] >= '0' && word[0] <= '9') || word[0] == '-');
}

/// The bits of a literal: an integer, 0f or 0d with hexadecimal digits (section 4.5).
std::uint64_t literal(std::string_view word);

/// The size of a fundamental type such as ".f32" (section 5.2), in bytes; 0 if it is none.
std::uint32_t type_bytes(std::string_view type);

}  // namespace ptx
