// Files in the safetensors format: a JSON header, then elements, row-major, little-endian.
//
// cleave adds metadata that other readers ignore: the global array and the part of it that each
// tensor holds, and checksums of every tensor and of the header.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/nn/file_error.hpp>
#include <cleave/nn/state_dict.hpp>

namespace cleave::inline v0::nn::detail {

static_assert(std::endian::native == std::endian::little,
              "cleave: safetensors are read and written on little-endian machines only");

/// A part of a global array in a file.
struct Piece {
  std::string name;
  DType dtype{};
  Shape shape{};  ///< of the global array
  Box box{};      ///< the global indices of the part
  std::uint64_t checksum = 0;
  bool has_checksum = true;
  std::size_t begin = 0;  ///< byte offset from the end of the header

  std::size_t bytes() const { return std::size_t(box.volume()) * size_of(dtype); }
};

/// The contents of a file's header.
struct FileIndex {
  std::string path;
  int files = 1;  ///< the number of files of the checkpoint
  std::vector<Piece> pieces;
  Notes notes;
  std::size_t data = 0;  ///< file offset of the elements
};

/// The checksum of bytes, as words of eight bytes; the last is filled with zeros.
CLEAVE_INLINE std::uint64_t checksum_of_bytes(const void* data, std::size_t bytes);

/// The header as written to the file, with its length first.
CLEAVE_INLINE std::string write_header(const FileIndex& index);

/// Reads and checks the header of a file, and checks the length of the file.
/// @throws Error, with the path, if the file is missing, truncated, changed or of another format
CLEAVE_INLINE FileIndex read_header(const std::string& path);

/// The elements of a piece. @throws Error, with the path, if they were changed
CLEAVE_INLINE std::vector<std::byte> read_piece(const FileIndex& file, const Piece& piece);

}  // namespace cleave::inline v0::nn::detail

#if !CLEAVE_COMPILED
#include <cleave/nn/safetensors_body.hpp>
#endif
