// One DTensor in one safetensors file that all ranks write, for other programs.
#pragma once

#include <string>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/interop/shared_array_file.hpp>
#include <cleave/nn/safetensors.hpp>

namespace cleave::inline v0::nn {

/// Writes a global array, each rank its own bytes, to one safetensors file, which replaces an
/// existing file at once. `load_checkpoint` reads it under any placements.
///
/// @param name       of the array in the file
/// @collective       every rank of the mesh
/// @cost             as `save_npy`: each element is written once, in runs of at least 256 KiB, if
///                   need be after a redistribution to rows
/// @throws Error     on every rank, with the path, if one cannot write; `path`.partial is removed
template <class T, int Rank, class Mesh, class P>
void save_safetensors(const std::string& path, const std::string& name,
                      const DTensor<T, Rank, Mesh, P>& x) {
  using X = DTensor<T, Rank, Mesh, P>;
  static_assert(!is_complex<T>, "cleave: safetensors have no complex numbers; use save_npy");
  static_assert(!X::layout.has_partial(),
                "cleave: a file has no addends: redistribute the Partial axes before "
                "save_safetensors");
  detail::FileIndex index;
  detail::Piece piece;
  piece.name = name;
  piece.dtype = dtype_of<T>();
  piece.shape = Shape(x.shape());
  piece.box = Box::of(piece.shape);
  piece.has_checksum = false;
  index.pieces.push_back(piece);
  cleave::detail::save_array("save_safetensors", path, detail::write_header(index), x);
}

}  // namespace cleave::inline v0::nn
