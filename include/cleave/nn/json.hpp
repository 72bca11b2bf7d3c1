// Reads JSON, as far as headers of safetensors need it: what is not JSON is an error.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/nn/file_error.hpp>

namespace cleave::inline v0::nn::detail {

/// The whole number, not negative, that the text writes in the given base; none if it is another.
template <class T>
std::optional<T> whole_number(const std::string& text, int base = 10) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc{} || stop != end || text[0] == '-') return std::nullopt;
  return number;
}

/// A value of JSON.
struct Json {
  enum class Kind { string, number, literal, array, object };
  Kind kind{};
  std::string text{};                                   ///< of a string, number or literal
  std::vector<std::pair<std::string, Json>> members{};  ///< of an array, with empty keys

  /// The member of an object with the given key, or null.
  const Json* find(const std::string& key) const {
    for (const auto& [name, value] : members)
      if (name == key && kind == Kind::object) return &value;
    return nullptr;
  }
  /// The same, null also if it is not of the given kind.
  const Json* find(const std::string& key, Kind of) const {
    const Json* const value = find(key);
    return value != nullptr && value->kind == of ? value : nullptr;
  }
  /// The elements of an array of whole numbers that are not negative; none if it is another.
  std::optional<std::vector<index_t>> numbers() const {
    std::vector<index_t> list;
    for (const auto& [key, value] : members) {
      const auto number =
          value.kind == Kind::number ? whole_number<index_t>(value.text) : std::nullopt;
      if (!number) return std::nullopt;
      list.push_back(*number);
    }
    return list;
  }
};

/// Reads one value. @throws Error, with the path, if the text is another or nested too deeply
class JsonReader {
 public:
  /// @param path  of the file that has the text
  JsonReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Json read() {
    Json value = read_value(1);
    skip();
    if (at_ != text_.size()) fail("there is text after the value");
    return value;
  }

 private:
  static constexpr int most_levels = 8;

  [[noreturn]] void fail(const std::string& reason) const {
    file_error(path_, "has a corrupt header, or is not a safetensors file: " + reason +
                          ", at byte " + std::to_string(at_) + " of its JSON");
  }
  /// The next character; '\0' at the end.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void require(char c) {
    if (!take(c)) fail(std::string("'") + c + "' is missing");
  }

  Json read_value(int level) {
    skip();
    switch (peek()) {
      case '{': return read_members(Json::Kind::object, '}', level);
      case '[': return read_members(Json::Kind::array, ']', level);
      case '"': return {Json::Kind::string, read_string()};
      default: break;
    }
    for (const std::string_view literal : {"true", "false", "null"})
      if (text_.substr(at_, literal.size()) == literal) {
        at_ += literal.size();
        return {Json::Kind::literal, std::string(literal)};
      }
    return {Json::Kind::number, read_number()};
  }

  Json read_members(Json::Kind kind, char end, int level) {
    if (level > most_levels)
      fail("values are nested in more than " + std::to_string(most_levels) + " levels");
    Json value{kind};
    ++at_;
    skip();
    if (take(end)) return value;
    do {
      std::string key;
      if (kind == Json::Kind::object) {
        skip();
        key = read_string();
        skip();
        require(':');
      }
      value.members.emplace_back(std::move(key), read_value(level + 1));
      skip();
    } while (take(','));
    require(end);
    if (kind == Json::Kind::object) require_distinct_keys(value);
    return value;
  }

  void require_distinct_keys(const Json& object) const {
    std::vector<std::string_view> keys;
    for (const auto& member : object.members) keys.push_back(member.first);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) fail("'" + std::string(*twice) + "' is twice in an object");
  }

  bool take_digits() {
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > begin;
  }
  std::string read_number() {
    const std::size_t begin = at_;
    take('-');
    bool is_valid = take('0') || take_digits();
    if (take('.')) is_valid &= take_digits();
    if (take('e') || take('E')) {
      static_cast<void>(take('+') || take('-'));
      is_valid &= take_digits();
    }
    if (!is_valid) fail(at_ > begin ? "a number is incomplete" : "a value is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string read_string() {
    std::string result;
    require('"');
    while (!take('"')) {
      if (at_ >= text_.size()) fail("a string does not end");
      if (static_cast<unsigned char>(peek()) < 0x20) fail("a string has a control character");
      if (take('\\')) append_escaped(result);
      else result += text_[at_++];
    }
    return result;
  }

  void append_escaped(std::string& result) {
    constexpr std::string_view names = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    if (take('u')) return append_utf8(result, read_character());
    const std::size_t which = names.find(peek());
    if (which == names.npos) fail("an escape sequence is unknown");
    result += characters[which];
    ++at_;
  }

  std::uint32_t read_unit() {
    std::uint32_t unit = 0;
    for (int digit = 0; digit < 4; ++digit, ++at_) {
      const auto value = whole_number<std::uint32_t>(std::string(text_.substr(at_, 1)), 16);
      if (!value) fail("\\u must have four hexadecimal digits");
      unit = unit << 4 | *value;
    }
    return unit;
  }
  /// Two escaped units of UTF-16, a surrogate pair, are one character.
  std::uint32_t read_character() {
    const std::uint32_t first = read_unit();
    if (first < 0xD800 || first > 0xDFFF) return first;
    if (first > 0xDBFF || !take('\\') || !take('u')) fail("half of a surrogate pair is missing");
    const std::uint32_t second = read_unit();
    if (second < 0xDC00 || second > 0xDFFF) fail("half of a surrogate pair is missing");
    return 0x10000 + ((first & 0x3FF) << 10 | (second & 0x3FF));
  }
  static void append_utf8(std::string& result, std::uint32_t character) {
    const int bytes = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    constexpr std::uint32_t first[] = {0, 0xC0, 0xE0, 0xF0};
    result += char(first[bytes - 1] | character >> 6 * (bytes - 1));
    for (int rest = bytes - 2; rest >= 0; --rest)
      result += char(0x80 | (character >> 6 * rest & 0x3F));
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace cleave::inline v0::nn::detail
