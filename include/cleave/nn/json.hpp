// The part of JSON that safetensors headers need: objects, arrays, strings, integers.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>

namespace cleave::nn::detail {

/// A value: a string or number as text, or the members of an object or array (with empty keys).
struct Json {
  std::string text{};
  std::vector<std::pair<std::string, Json>> members{};

  /// The member with the given key, or null.
  const Json* find(const std::string& key) const {
    for (const auto& [name, value] : members)
      if (name == key) return &value;
    return nullptr;
  }
  /// The elements of an array of integers.
  std::vector<index_t> numbers() const {
    std::vector<index_t> list;
    for (const auto& member : members)
      list.push_back(index_t(std::strtoll(member.second.text.c_str(), nullptr, 10)));
    return list;
  }
};

inline std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", unsigned(c));
      quoted += code;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

/// Reads one value; sets `ok` to false if the text is not JSON or nested too deeply for a header.
class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Json read() {
    Json value = read_value(0);
    skip();
    ok = ok && at_ == text_.size();
    return value;
  }
  bool ok = true;

 private:
  void skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ < text_.size() && text_[at_] == c) return ++at_, true;
    return false;
  }

  Json read_value(int depth) {
    skip();
    Json value;
    if (depth > 8 || at_ >= text_.size()) ok = false;
    else if (text_[at_] == '{') read_members(value, '}', depth);
    else if (text_[at_] == '[') read_members(value, ']', depth);
    else if (text_[at_] == '"') value.text = read_string();
    else value.text = read_word();
    return value;
  }

  void read_members(Json& value, char end, int depth) {
    ++at_;
    if (take(end)) return;
    while (ok) {
      std::string key;
      if (end == '}') {
        skip();
        key = read_string();
        ok = ok && take(':');
      }
      value.members.emplace_back(key, read_value(depth + 1));
      if (take(end)) return;
      ok = ok && take(',');
    }
  }

  std::string read_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::string("+-.").find(text_[at_]) != std::string::npos ||
            (text_[at_] >= '0' && text_[at_] <= '9') || (text_[at_] >= 'a' && text_[at_] <= 'z')))
      ++at_;
    ok = ok && at_ > begin;
    return text_.substr(begin, at_ - begin);
  }

  std::string read_string() {
    std::string result;
    if (!take('"')) return ok = false, result;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        result += text_[at_++];
      } else if (at_ + 1 < text_.size()) {
        result += read_escape();
      } else {
        ++at_;
      }
    }
    ok = ok && take('"');
    return result;
  }

  /// Reads an escape sequence; non-ASCII characters become UTF-8 of up to three bytes.
  std::string read_escape() {
    const char c = text_[at_ + 1];
    at_ += 2;
    if (c == 'n') return "\n";
    if (c == 't') return "\t";
    if (c == 'r') return "\r";
    if (c == 'b') return "\b";
    if (c == 'f') return "\f";
    if (c != 'u') return std::string(1, c);
    const auto code = unsigned(std::strtoul(text_.substr(at_, 4).c_str(), nullptr, 16));
    at_ += 4;
    if (code < 0x80) return std::string(1, char(code));
    if (code < 0x800) return {char(0xC0 | code >> 6), char(0x80 | (code & 0x3F))};
    return {char(0xE0 | code >> 12), char(0x80 | (code >> 6 & 0x3F)), char(0x80 | (code & 0x3F))};
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace cleave::nn::detail
