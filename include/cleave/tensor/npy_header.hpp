// The header of an .npy file: element type, order and extents of the array.
//
// The format is NumPy's, versions 1 to 3: magic, version, the length of a Python dictionary as
// text with the keys 'descr', 'fortran_order' and 'shape', then the elements. This file handles the
// text; `npy.hpp` reads and writes files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::inline v0::detail {

struct NpyHeader {
  DType dtype = DType::uint8;
  bool fortran_order = false;  ///< the first dimension varies fastest
  Shape extents{};
};

struct NpyType {
  DType dtype;
  std::string_view code;  ///< kind and bytes, as in 'descr' without its byte order
};

/// bfloat16 is missing: the format has no name for it.
inline constexpr NpyType npy_types[] = {
    {DType::boolean, "b1"},   {DType::int8, "i1"},        {DType::uint8, "u1"},
    {DType::int16, "i2"},     {DType::uint16, "u2"},      {DType::int32, "i4"},
    {DType::uint32, "u4"},    {DType::int64, "i8"},       {DType::uint64, "u8"},
    {DType::float16, "f2"},   {DType::float32, "f4"},     {DType::float64, "f8"},
    {DType::complex64, "c8"}, {DType::complex128, "c16"},
};

[[noreturn]] inline void npy_error(const std::string& path, const std::string& message) {
  throw Error("load_npy", "'" + path + "' " + message);
}

/// Reads the dictionary, which may have its keys in any order.
class NpyHeaderParser {
 public:
  NpyHeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  /// @throws Error for a malformed dictionary and for elements that cleave does not support
  NpyHeader parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        header.dtype = element_type();
        descr = true;
      } else if (key == "fortran_order" && !order) {
        header.fortran_order = boolean();
        order = true;
      } else if (key == "shape" && !shape) {
        header.extents = extents();
        shape = true;
      } else {
        malformed();
      }
      if (!accept(',') && peek() != '}') malformed();
    }
    if (!descr || !order || !shape || peek() != '\0') malformed();
    return header;
  }

 private:
  [[noreturn]] void malformed() const { npy_error(path_, "has a malformed header"); }

  /// The next character that is not white space; '\0' at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) malformed();
  }

  std::string_view quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed();
    const std::size_t begin = ++at_, end = text_.find(quote, begin);
    if (end == text_.npos) malformed();
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  bool boolean() {
    peek();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    malformed();
  }

  index_t integer() {
    if (peek() < '0' || peek() > '9') malformed();
    index_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (value > (index_t{1} << 58)) npy_error(path_, "has more elements than index_t can hold");
      value = 10 * value + (text_[at_] - '0');
    }
    accept('L');  // files of Python 2
    return value;
  }

  Shape extents() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      const index_t extent = integer();
      if (shape.dims == max_dims)
        npy_error(path_, "has more than " + std::to_string(max_dims) + " dimensions");
      shape[shape.dims++] = extent;
      if (!accept(',') && peek() != ')') malformed();
    }
    return shape;
  }

  DType element_type() {
    if (peek() == '[') npy_error(path_, "has records as elements; cleave reads arrays of numbers");
    const std::string_view descr = quoted();
    const std::string_view code = descr.substr(descr.empty() ? 0 : 1);
    if (!descr.empty() && descr[0] == '>')
      npy_error(path_,
                "is big-endian ('" + std::string(descr) + "'); cleave reads little-endian files");
    if (code.substr(0, 1) == "O")
      npy_error(path_, "has Python objects as elements; cleave reads arrays of numbers");
    for (const NpyType& type : npy_types)
      if (code == type.code) return type.dtype;
    npy_error(path_, "has elements of type '" + std::string(descr) + "', which is not supported");
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

/// Magic, version, length and dictionary of a row-major array; a multiple of 64 bytes.
/// @pre the type is one of `npy_types`
inline std::string npy_header(DType dtype, const Shape& extents) {
  std::string descr = size_of(dtype) == 1 ? "|" : "<";
  for (const NpyType& type : npy_types)
    if (type.dtype == dtype) descr += type.code;
  std::string shape;
  for (int d = 0; d < extents.dims; ++d) {
    if (d > 0) shape += ", ";
    shape += std::to_string(extents[d]);
  }
  if (extents.dims == 1) shape += ",";  // a tuple of one
  std::string dictionary =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const std::size_t preamble = 10;
  while ((preamble + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += char(dictionary.size() & 0xffu);
  header += char(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace cleave::inline v0::detail
