// Reads and writes safetensors files.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/file.hpp>
#include <cleave/core/json_string.hpp>
#include <cleave/nn/json.hpp>
#include <cleave/nn/safetensors.hpp>

namespace cleave::inline v0::nn::detail {

CLEAVE_INLINE std::uint64_t checksum_of_bytes(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  cleave::detail::Checksum result;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i, bytes - i < 8 ? bytes - i : 8);
    result.add(word);
  }
  return result.sum;
}

inline std::string hex_of(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

struct NamedType {
  DType dtype;
  const char* name;
};
inline constexpr NamedType safetensors_types[] = {
    {DType::boolean, "BOOL"},       {DType::int8, "I8"},
    {DType::uint8, "U8"},           {DType::int16, "I16"},
    {DType::uint16, "U16"},         {DType::int32, "I32"},
    {DType::uint32, "U32"},         {DType::int64, "I64"},
    {DType::uint64, "U64"},         {DType::float16, "F16"},
    {DType::bfloat16, "BF16"},      {DType::float32, "F32"},
    {DType::float64, "F64"},        {DType::float8_e4m3, "F8_E4M3"},
    {DType::float8_e5m2, "F8_E5M2"}};

/// The format has no complex numbers: they are stored as pairs of reals in an additional last
/// dimension.
inline bool is_complex_type(DType dtype) {
  return dtype == DType::complex64 || dtype == DType::complex128;
}
inline DType stored_type(DType dtype) {
  if (dtype == DType::complex64) return DType::float32;
  return dtype == DType::complex128 ? DType::float64 : dtype;
}

inline std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (int d = 0; d < shape.dims; ++d) {
    if (d > 0) text += ',';
    text += std::to_string(shape[d]);
  }
  return text + ']';
}

inline std::string entry_text(const Piece& piece) {
  std::string shape = text_of(piece.box.extents());
  if (is_complex_type(piece.dtype))
    shape.replace(shape.size() - 1, 1, piece.box.dims() > 0 ? ",2]" : "2]");
  const char* name = "";
  for (const NamedType& type : safetensors_types)
    if (type.dtype == stored_type(piece.dtype)) name = type.name;
  return cleave::detail::json_string(piece.name) + ":{\"dtype\":\"" + name +
         "\",\"shape\":" + shape + ",\"data_offsets\":[" + std::to_string(piece.begin) + "," +
         std::to_string(piece.begin + piece.bytes()) + "]}";
}

/// "{"dtype":"float32","shape":[6,4],"begin":[3,0],"checksum":".."}", as a string in the metadata.
inline std::string part_text(const Piece& piece) {
  return "{\"dtype\":\"" + std::string(name_of(piece.dtype)) +
         "\",\"shape\":" + text_of(piece.shape) + ",\"begin\":" + text_of(piece.box.begin) +
         ",\"checksum\":\"" + hex_of(piece.checksum) + "\"}";
}

/// Precedes the header's checksum, whose digits count as zeros when it is computed.
inline constexpr char header_begin[] = "{\"__metadata__\":{\"cleave.header\":\"";
inline constexpr std::size_t header_digits = sizeof(header_begin) - 1;

CLEAVE_INLINE std::string write_header(const FileIndex& index) {
  std::string text = header_begin + std::string(16, '0') + "\",\"cleave.files\":\"" +
                     std::to_string(index.files) + "\"";
  const auto append = [&](const std::string& entry) { (text += ',') += entry; };
  for (const auto& [name, note] : index.notes)
    append(cleave::detail::json_string("note." + name) + ':' + cleave::detail::json_string(note));
  for (const Piece& piece : index.pieces)
    if (piece.has_checksum)
      append(cleave::detail::json_string("part." + piece.name) + ':' +
             cleave::detail::json_string(part_text(piece)));
  text += '}';
  for (const Piece& piece : index.pieces) append(entry_text(piece));
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  text.replace(header_digits, 16, hex_of(checksum_of_bytes(text.data(), text.size())));
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text;
}

inline cleave::detail::File open_to_read(const std::string& path) {
  cleave::detail::File file(std::fopen(path.c_str(), "rb"));
  if (!file) file_error(path, std::string("cannot be opened: ") + std::strerror(errno));
  return file;
}

[[noreturn]] inline void header_error(const std::string& path, const std::string& name,
                                      const std::string& problem) {
  file_error(path, "is not a safetensors file, or has a corrupt header: '" + name + "' " + problem);
}

/// The extents, or indices, of a tensor. @throws Error if they are not whole numbers in range
inline Shape shape_from(const Json& list, const std::string& path, const std::string& name) {
  const auto numbers = list.numbers();
  if (!numbers) header_error(path, name, "has extents that are not whole numbers");
  if (numbers->size() > std::size_t(max_dims))
    file_error(path, "has a tensor of more than 8 dimensions");
  Shape shape = Shape::filled(int(numbers->size()), 0);
  index_t bytes = 16;  // of the largest type
  for (std::size_t d = 0; d < numbers->size(); ++d) {
    shape[int(d)] = (*numbers)[d];
    if (__builtin_mul_overflow(bytes, std::max((*numbers)[d], index_t(1)), &bytes))
      header_error(path, name, "has more elements than can be counted");
  }
  return shape;
}

/// Reads cleave's metadata of a tensor: the global array, the part of it, and the checksum.
inline void read_part(Piece& piece, const std::string& text, const std::string& path) {
  const Json part = JsonReader(text, path).read();
  const Json *dtype = part.find("dtype", Json::Kind::string),
             *shape = part.find("shape", Json::Kind::array),
             *begin = part.find("begin", Json::Kind::array),
             *checksum = part.find("checksum", Json::Kind::string);
  const auto require = [&](bool is_right) {
    if (!is_right) header_error(path, piece.name, "has corrupt metadata");
  };
  require(dtype && shape && begin && checksum);
  for (const DType complex : {DType::complex64, DType::complex128})
    if (dtype->text == name_of(complex)) {
      const int last = piece.box.dims() - 1;
      require(last >= 0 && piece.box.end[last] == 2 && piece.dtype == stored_type(complex));
      piece.dtype = complex;
      piece.box.end.dims = last;
    }
  require(dtype->text == name_of(piece.dtype));
  piece.shape = shape_from(*shape, path, piece.name);
  const Shape extents = piece.box.end;
  piece.box.begin = shape_from(*begin, path, piece.name);
  require(piece.shape.dims == extents.dims && piece.box.begin.dims == extents.dims);
  for (int d = 0; d < extents.dims; ++d) {
    require(piece.box.begin[d] <= piece.shape[d] - extents[d]);
    piece.box.end[d] += piece.box.begin[d];
  }
  const auto sum = whole_number<std::uint64_t>(checksum->text, 16);
  require(sum.has_value());
  piece.checksum = *sum;
  piece.has_checksum = true;
}

inline Piece read_entry(const std::string& name, const Json& entry, const Json* metadata,
                        const std::string& path) {
  const Json *dtype = entry.find("dtype", Json::Kind::string),
             *shape = entry.find("shape", Json::Kind::array),
             *offsets = entry.find("data_offsets", Json::Kind::array);
  if (!dtype || !shape || !offsets || offsets->members.size() != 2)
    file_error(path,
               "is not a safetensors file: '" + name + "' lacks dtype, shape or data_offsets");
  Piece piece;
  piece.name = name;
  piece.has_checksum = false;
  bool is_known = false;
  for (const NamedType& type : safetensors_types)
    if (dtype->text == type.name) {
      piece.dtype = type.dtype;
      is_known = true;
    }
  if (!is_known)
    file_error(path, "has '" + name + "' of the type " + dtype->text + ", which is not supported");
  piece.shape = shape_from(*shape, path, name);
  piece.box = Box::of(piece.shape);
  const auto range = offsets->numbers();
  if (!range) header_error(path, name, "has data_offsets that are not whole numbers");
  piece.begin = std::size_t((*range)[0]);
  const std::size_t end = std::size_t((*range)[1]);
  if (const Json* const part = metadata != nullptr ? metadata->find("part." + name) : nullptr)
    read_part(piece, part->text, path);
  if (piece.begin + piece.bytes() != end)
    file_error(path, "is not a safetensors file: '" + name + "' has a wrong number of bytes");
  return piece;
}

/// Whether cleave wrote the file, by its name; other files have no checksum in their header.
inline bool is_part_of_checkpoint(const std::string& path) {
  return path.compare(path.find_last_of('/') + 1, 5, "part-") == 0;
}

/// The text of the header; the caller compares the file's length with it.
inline std::string header_text(std::FILE* file, const std::string& path, std::size_t size) {
  std::uint64_t length = 0;
  if (size < 8 || std::fread(&length, 1, 8, file) != 8 || length > size - 8)
    file_error(path,
               "is truncated or not a safetensors file: it has " + std::to_string(size) + " bytes");
  std::string text(length, ' ');
  if (std::fread(text.data(), 1, length, file) != length) file_error(path, "cannot be read");
  if (is_part_of_checkpoint(path)) {
    if (text.compare(0, header_digits, header_begin) != 0 || text.size() < header_digits + 16)
      file_error(path, "has a corrupt header");
    const std::string said = text.substr(header_digits, 16);
    std::string zeros = text;
    zeros.replace(header_digits, 16, 16, '0');
    if (said != hex_of(checksum_of_bytes(zeros.data(), zeros.size())))
      file_error(path, "has a corrupt header");
  }
  return text;
}

CLEAVE_INLINE FileIndex read_header(const std::string& path) {
  const cleave::detail::File file = open_to_read(path);
  std::fseek(file.get(), 0, SEEK_END);
  const std::size_t size = std::size_t(std::ftell(file.get()));
  std::rewind(file.get());
  const std::string text = header_text(file.get(), path, size);
  const Json header = JsonReader(text, path).read();
  if (header.kind != Json::Kind::object)
    file_error(path, "is not a safetensors file: its header is not an object");
  FileIndex index;
  index.path = path;
  index.data = 8 + text.size();
  const Json* const metadata = header.find("__metadata__");
  if (metadata != nullptr) {
    if (metadata->kind != Json::Kind::object)
      header_error(path, "__metadata__", "is not an object");
    for (const auto& [key, value] : metadata->members) {
      if (value.kind != Json::Kind::string) header_error(path, key, "is not a string");
      if (key.compare(0, 5, "note.") == 0) index.notes.emplace_back(key.substr(5), value.text);
      if (key != "cleave.files") continue;
      const auto files = whole_number<int>(value.text);
      if (!files) header_error(path, key, "is not a whole number");
      index.files = *files;
    }
  }
  std::size_t end = 0;
  for (const auto& [name, entry] : header.members) {
    if (name == "__metadata__") continue;
    index.pieces.push_back(read_entry(name, entry, metadata, path));
    end = std::max(end, index.pieces.back().begin + index.pieces.back().bytes());
  }
  if (size != index.data + end)
    file_error(path, "is truncated or corrupt: it has " + std::to_string(size) + " bytes, not " +
                         std::to_string(index.data + end));
  return index;
}

CLEAVE_INLINE std::vector<std::byte> read_piece(const FileIndex& index, const Piece& piece) {
  std::vector<std::byte> bytes(piece.bytes());
  const cleave::detail::File file = open_to_read(index.path);
  if (std::fseek(file.get(), long(index.data + piece.begin), SEEK_SET) != 0 ||
      std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size())
    file_error(index.path, "is truncated: the elements of '" + piece.name + "' are not all there");
  if (piece.has_checksum && checksum_of_bytes(bytes.data(), bytes.size()) != piece.checksum)
    file_error(index.path,
               "is corrupt: the checksum of '" + piece.name + "' differs from the saved one");
  return bytes;
}

}  // namespace cleave::inline v0::nn::detail
