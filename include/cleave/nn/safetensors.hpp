// Files in the safetensors format: a header of JSON, then elements, row-major, little-endian.
//
// What cleave adds stands in the file's metadata, which others ignore: of which global array a
// tensor is which part, checksums of every tensor and of the header itself.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/nn/state_dict.hpp>

namespace cleave::nn::detail {

static_assert(std::endian::native == std::endian::little,
              "cleave: safetensors are read and written on little-endian machines only");

/// A part of a global array, in a file.
struct Piece {
  std::string name;
  DType dtype{};
  Shape shape{};  ///< of the global array
  Box box{};      ///< its indices that are here
  std::uint64_t checksum = 0;
  bool has_checksum = true;
  std::size_t begin = 0;  ///< of its bytes, behind the header

  std::size_t bytes() const { return std::size_t(box.volume()) * size_of(dtype); }
};

/// What the header of a file says.
struct FileIndex {
  std::string path;
  int files = 1;  ///< that belong together
  std::vector<Piece> pieces;
  Notes notes;
  std::size_t data = 0;  ///< where the elements begin
};

/// The checksum of bytes: FNV-1a, eight at a time.
CLEAVE_INLINE std::uint64_t checksum_of_bytes(const void* data, std::size_t bytes);

/// The header as it stands in the file, its length first.
CLEAVE_INLINE std::string write_header(const FileIndex& index);

/// Reads and checks the header of a file, and that the file is as long as it says.
/// @throws Error, with the path, if it is missing, truncated, changed, or not of this format
CLEAVE_INLINE FileIndex read_header(const std::string& path);

/// The elements of a piece. @throws Error, with the path, if they were changed
CLEAVE_INLINE std::vector<std::byte> read_piece(const FileIndex& file, const Piece& piece);

[[noreturn]] CLEAVE_INLINE void file_error(const std::string& path, const std::string& message);

}  // namespace cleave::nn::detail

#if !CLEAVE_COMPILED
#include <cleave/nn/safetensors_body.hpp>
#endif
