// Reading and writing of .npy files.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include <cleave/core/error.hpp>
#include <cleave/core/file.hpp>
#include <cleave/tensor/npy.hpp>
#include <cleave/tensor/npy_header.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::detail {

/// The unread rest of an open file, read piece by piece.
class NpyReader {
 public:
  explicit NpyReader(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
    if (!file_) npy_error(path_, std::string("cannot be opened: ") + std::strerror(errno));
    if (std::fseek(file_.get(), 0, SEEK_END) != 0 || (left_ = std::ftell(file_.get())) < 0)
      npy_error(path_, std::string("cannot be read: ") + std::strerror(errno));
    std::rewind(file_.get());
  }

  /// Bytes from the read position to the end of the file.
  index_t left() const { return left_; }

  /// @throws Error if the file has fewer bytes left; `what` names them
  void read(void* data, std::size_t bytes, const char* what) {
    if (index_t(bytes) > left_)
      npy_error(path_, "is truncated: it has " + std::to_string(left_) + " of the " +
                           std::to_string(bytes) + " bytes of its " + what);
    if (bytes != 0 && std::fread(data, 1, bytes, file_.get()) != bytes)
      npy_error(path_, std::string("cannot be read: ") + std::strerror(errno));
    left_ -= index_t(bytes);
  }

 private:
  const std::string& path_;
  File file_;
  index_t left_ = 0;
};

inline NpyHeader read_npy_header(NpyReader& reader, const std::string& path) {
  unsigned char preamble[8] = {};
  reader.read(preamble, sizeof preamble, "header");
  if (std::memcmp(preamble, "\x93NUMPY", 6) != 0) npy_error(path, "is not an .npy file");
  const int version = preamble[6];
  if (version < 1 || version > 3)
    npy_error(path,
              "has version " + std::to_string(version) + " of the format; cleave reads 1 to 3");
  unsigned char length[4] = {};
  reader.read(length, version == 1 ? 2 : 4, "header");
  const std::size_t size = length[0] | std::size_t(length[1]) << 8 | std::size_t(length[2]) << 16 |
                           std::size_t(length[3]) << 24;
  if (index_t(size) > reader.left()) reader.read(nullptr, size, "header");  // throws
  std::string text(size, ' ');
  reader.read(text.data(), size, "header");
  return NpyHeaderParser(text, path).parse();
}

CLEAVE_INLINE DType npy_dtype(const std::string& path) {
  NpyReader reader(path);
  return read_npy_header(reader, path).dtype;
}

CLEAVE_INLINE void throw_no_conversion(const std::string& path, DType stored, DType wanted) {
  npy_error(path, std::string("has elements of type ") + name_of(stored) +
                      ", which cannot be converted to " + name_of(wanted));
}

/// Reads and checks the header, and that exactly the elements follow it.
inline NpyHeader begin_npy(NpyReader& reader, const std::string& path, DType dtype, int dims) {
  const NpyHeader header = read_npy_header(reader, path);
  if (header.dtype != dtype)
    npy_error(path, std::string("has elements of type ") + name_of(header.dtype) + ", not " +
                        name_of(dtype));
  if (header.extents.dims != dims)
    npy_error(path, "has " + std::to_string(header.extents.dims) + " dimensions " +
                        to_string(header.extents) + ", not " + std::to_string(dims));
  const std::size_t bytes = checked_bytes(header.extents.values.data(), dims, size_of(dtype));
  if (index_t(bytes) > reader.left()) reader.read(nullptr, bytes, "elements");  // throws
  if (index_t(bytes) < reader.left())
    npy_error(path, "has " + std::to_string(reader.left() - index_t(bytes)) +
                        " bytes after its elements");
  return header;
}

CLEAVE_INLINE NpyElements find_npy_elements(const std::string& path, DType dtype, int dims) {
  NpyReader reader(path);
  const index_t size = reader.left();
  const NpyHeader header = begin_npy(reader, path, dtype, dims);
  return {header.extents, header.fortran_order, size - reader.left()};
}

CLEAVE_INLINE std::string npy_header_of(DType dtype, const Shape& extents) {
  return npy_header(dtype, extents);
}

CLEAVE_INLINE NpyArray read_npy(const std::string& path, DType dtype, int dims) {
  NpyReader reader(path);
  const NpyHeader header = begin_npy(reader, path, dtype, dims);
  NpyArray array{header.extents, header.fortran_order};
  const auto bytes = std::size_t(reader.left());
  array.data = allocate_bytes(Host{}, bytes);
  reader.read(array.data.get(), bytes, "elements");
  if (dtype == DType::boolean)
    for (std::size_t i = 0; i < bytes; ++i)
      if (static_cast<const unsigned char*>(array.data.get())[i] > 1)
        npy_error(path, "has a bool that is neither 0 nor 1");
  return array;
}

CLEAVE_INLINE void write_npy(const std::string& path, const ConstView& dense) {
  const auto fail = [&](const char* what) {
    throw Error("save_npy", "'" + path + "' " + what + ": " + std::strerror(errno));
  };
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) fail("cannot be opened");
  const std::string header = npy_header(dense.dtype, dense.extents);
  const auto bytes = std::size_t(dense.bytes());
  if (std::fwrite(header.data(), 1, header.size(), file.get()) != header.size() ||
      (bytes != 0 && std::fwrite(dense.data, 1, bytes, file.get()) != bytes) ||
      std::fclose(file.release()) != 0)
    fail("cannot be written");
}

}  // namespace cleave::inline v0::detail
