// Reads and writes safetensors files.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/nn/json.hpp>
#include <cleave/nn/safetensors.hpp>

namespace cleave::nn::detail {

CLEAVE_INLINE void file_error(const std::string& path, const std::string& message) {
  throw Error("checkpoint", path + " " + message);
}

CLEAVE_INLINE std::uint64_t checksum_of_bytes(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  std::uint64_t sum = 14695981039346656037u;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i, bytes - i < 8 ? bytes - i : 8);
    sum = (sum ^ word) * 1099511628211u;
    sum ^= sum >> 32;  // high bits of a word affect the low bits of the sum
  }
  return sum;
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
    {DType::boolean, "BOOL"}, {DType::int8, "I8"},       {DType::uint8, "U8"},
    {DType::int16, "I16"},    {DType::uint16, "U16"},    {DType::int32, "I32"},
    {DType::uint32, "U32"},   {DType::int64, "I64"},     {DType::uint64, "U64"},
    {DType::float16, "F16"},  {DType::bfloat16, "BF16"}, {DType::float32, "F32"},
    {DType::float64, "F64"}};

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
  return json_string(piece.name) + ":{\"dtype\":\"" + name + "\",\"shape\":" + shape +
         ",\"data_offsets\":[" + std::to_string(piece.begin) + "," +
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
    append(json_string("note." + name) + ':' + json_string(note));
  for (const Piece& piece : index.pieces)
    append(json_string("part." + piece.name) + ':' + json_string(part_text(piece)));
  text += '}';
  for (const Piece& piece : index.pieces) append(entry_text(piece));
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  text.replace(header_digits, 16, hex_of(checksum_of_bytes(text.data(), text.size())));
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text;
}

struct CheckpointCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using CheckpointFile = std::unique_ptr<std::FILE, CheckpointCloser>;

inline CheckpointFile open_to_read(const std::string& path) {
  CheckpointFile file(std::fopen(path.c_str(), "rb"));
  if (!file) file_error(path, std::string("cannot be opened: ") + std::strerror(errno));
  return file;
}

inline Shape shape_from(const std::vector<index_t>& numbers, const std::string& path) {
  if (numbers.size() > std::size_t(max_dims))
    file_error(path, "has a tensor of more than 8 dimensions");
  Shape shape = Shape::filled(int(numbers.size()), 0);
  for (std::size_t d = 0; d < numbers.size(); ++d) shape[int(d)] = numbers[d];
  return shape;
}

/// Reads cleave's metadata of a tensor: the global array, the part of it, and the checksum.
inline void read_part(Piece& piece, const std::string& text, const std::string& path) {
  JsonReader reader(text);
  const Json part = reader.read();
  const Json *dtype = part.find("dtype"), *shape = part.find("shape"), *begin = part.find("begin"),
             *checksum = part.find("checksum");
  if (!reader.ok || !dtype || !shape || !begin || !checksum)
    file_error(path, "has a corrupt header");
  for (const DType complex : {DType::complex64, DType::complex128})
    if (dtype->text == name_of(complex)) {
      piece.dtype = complex;
      piece.box.end.dims -= 1;
    }
  piece.shape = shape_from(shape->numbers(), path);
  const Shape first = shape_from(begin->numbers(), path);
  if (first.dims != piece.box.end.dims || piece.shape.dims != first.dims)
    file_error(path, "has a corrupt header");
  piece.box.begin = first;
  for (int d = 0; d < first.dims; ++d) piece.box.end[d] += first[d];
  piece.checksum = std::strtoull(checksum->text.c_str(), nullptr, 16);
  piece.has_checksum = true;
}

inline Piece read_entry(const std::string& name, const Json& entry, const Json* metadata,
                        const std::string& path) {
  const Json *dtype = entry.find("dtype"), *shape = entry.find("shape"),
             *offsets = entry.find("data_offsets");
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
  piece.shape = shape_from(shape->numbers(), path);
  piece.box = Box::of(piece.shape);
  piece.begin = std::size_t(offsets->numbers()[0]);
  const std::size_t end = std::size_t(offsets->numbers()[1]);
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
  const CheckpointFile file = open_to_read(path);
  std::fseek(file.get(), 0, SEEK_END);
  const std::size_t size = std::size_t(std::ftell(file.get()));
  std::rewind(file.get());
  const std::string text = header_text(file.get(), path, size);
  JsonReader reader(text);
  const Json header = reader.read();
  if (!reader.ok) file_error(path, "has a corrupt header, or is not a safetensors file");
  FileIndex index;
  index.path = path;
  index.data = 8 + text.size();
  const Json* const metadata = header.find("__metadata__");
  if (metadata != nullptr) {
    if (const Json* const files = metadata->find("cleave.files"))
      index.files = std::atoi(files->text.c_str());
    for (const auto& [key, value] : metadata->members)
      if (key.compare(0, 5, "note.") == 0) index.notes.emplace_back(key.substr(5), value.text);
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
  const CheckpointFile file = open_to_read(index.path);
  if (std::fseek(file.get(), long(index.data + piece.begin), SEEK_SET) != 0 ||
      std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size())
    file_error(index.path, "is truncated: the elements of '" + piece.name + "' are not all there");
  if (piece.has_checksum && checksum_of_bytes(bytes.data(), bytes.size()) != piece.checksum)
    file_error(index.path,
               "is corrupt: the checksum of '" + piece.name + "' differs from the saved one");
  return bytes;
}

}  // namespace cleave::nn::detail
