// Tensors in .npy files, NumPy's format: what Python scripts and C++ programs exchange arrays by.
#pragma once

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/tensor/npy_header.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave {

namespace detail {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

struct NpyArray {
  NpyHeader header{};
  std::shared_ptr<void> data{};
};

/// The unread rest of an open file, read piece by piece.
class NpyReader {
 public:
  explicit NpyReader(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
    if (!file_) npy_error(path_, std::string("cannot be opened: ") + std::strerror(errno));
    if (std::fseek(file_.get(), 0, SEEK_END) != 0 || (left_ = std::ftell(file_.get())) < 0)
      npy_error(path_, std::string("cannot be read: ") + std::strerror(errno));
    std::rewind(file_.get());
  }

  /// Bytes between what has been read and the end of the file.
  index_t left() const { return left_; }

  /// @throws Error if the file has fewer bytes left; `what` names them
  void read(void* data, std::size_t bytes, const char* what) {
    if (index_t(bytes) > left_)
      npy_error(path_, "is truncated: " + std::to_string(left_) + " of " + std::to_string(bytes) +
                           " bytes of its " + what + " are there");
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

/// Reads an array whose type and number of dimensions are known; everything but its element type
/// is the same for all tensors, so that this is compiled once.
inline NpyArray read_npy(const std::string& path, DType dtype, int dims) {
  NpyReader reader(path);
  NpyArray array{read_npy_header(reader, path)};
  const NpyHeader& header = array.header;
  if (header.dtype != dtype)
    npy_error(path, std::string("has elements of type ") + name_of(header.dtype) + ", not " +
                        name_of(dtype));
  if (header.extents.dims != dims)
    npy_error(path, "has " + std::to_string(header.extents.dims) + " dimensions " +
                        to_string(header.extents) + ", not " + std::to_string(dims));
  const std::size_t bytes =
      checked_bytes(header.extents.values.data(), dims, size_of(header.dtype));
  if (index_t(bytes) > reader.left()) reader.read(nullptr, bytes, "elements");  // throws
  if (index_t(bytes) < reader.left())
    npy_error(path, "has " + std::to_string(reader.left() - index_t(bytes)) +
                        " bytes after its elements");
  array.data = allocate_bytes(Host{}, bytes);
  reader.read(array.data.get(), bytes, "elements");
  if (dtype == DType::boolean)
    for (std::size_t i = 0; i < bytes; ++i)
      if (static_cast<const unsigned char*>(array.data.get())[i] > 1)
        npy_error(path, "has a truth value that is neither 0 nor 1");
  return array;
}

inline void write_npy(const std::string& path, const ConstView& dense) {
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

template <class T>
constexpr void require_npy_type() {
  static_assert(!std::is_same_v<T, bfloat16>,
                "cleave: .npy files have no bfloat16; save and load it as float");
  static_assert(std::endian::native == std::endian::little,
                "cleave: .npy files are read and written on little-endian machines only");
}

}  // namespace detail

/// Reads an .npy file of exactly this element type and number of dimensions.
///
/// Format versions 1 to 3, little-endian. The result is row-major; a file in Fortran order is
/// transposed after reading.
/// @throws Error, with the path, for a file that is missing, truncated, longer than its array, not
///         an .npy file, big-endian, of another element type or of another number of dimensions
/// @cost one read of the file; twice the memory while a file in Fortran order is transposed
template <Element T, int Rank>
Tensor<T, Rank> load_npy(const std::string& path) {
  detail::require_npy_type<T>();
  detail::NpyArray array = detail::read_npy(path, dtype_of<T>(), Rank);
  T* data = static_cast<T*>(array.data.get());
  const auto extents = to_array<Rank>(array.header.extents);
  if (!array.header.fortran_order || Rank < 2)
    return Tensor<T, Rank>::adopt(data, extents, std::move(array.data));
  auto strides = extents;
  index_t step = 1;
  for (std::size_t d = 0; d < std::size_t(Rank); ++d) {
    strides[d] = step;
    step *= extents[d];
  }
  return Tensor<T, Rank>::adopt(data, extents, strides, std::move(array.data)).clone();
}

/// Writes a tensor to an .npy file (version 1, row-major) and replaces what was there.
///
/// @throws Error, with the path, if the file cannot be written; what was written is left
/// @cost a copy of the tensor first if it is not contiguous
template <Element T, int Rank>
void save_npy(const std::string& path, const Tensor<T, Rank>& tensor) {
  detail::require_npy_type<T>();
  const Tensor<T, Rank> dense = tensor.contiguous() ? tensor : tensor.clone();
  detail::write_npy(path, dense.view());
}

}  // namespace cleave
