// DTensors in .npy files: one global array, which all ranks write and read, each its own bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <fcntl.h>

#include <cleave/comm/agree.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/open_file.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/interop/shared_array_file.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/tensor/npy.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

namespace detail {

/// This rank's elements of an array in a file, row-major on the host.
template <class X>
Tensor<typename X::value_type, X::dims> read_npy_part(const std::string& path,
                                                      const NpyElements& found,
                                                      const MeshState& mesh) {
  using T = typename X::value_type;
  constexpr int dims = X::dims;
  Shape shape = found.extents;
  Layout layout = X::layout;
  if (found.fortran_order)  // is the transpose in row-major order
    for (int d = 0; d < dims; ++d) shape[d] = found.extents[dims - 1 - d];
  for (int a = 0; a < layout.axes && found.fortran_order; ++a)
    if (layout[a].shards()) layout[a] = layout[a].along(dims - 1 - layout[a].dim);
  const Tensor<T, dims> part(
      to_array<dims>(local_shape(layout, shape, mesh.extents(), mesh.coordinate())));
  const OpenFile file("load_npy", path, O_RDONLY);
  const PartOfArray which{layout, mesh, shape};
  FileTransfer transfer("load_npy", run_bytes(which, false, sizeof(T)));
  read_shared_array(transfer, file, std::uint64_t(found.offset), which, part.view());
  if constexpr (std::is_same_v<T, bool>) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(part.data());
    for (index_t i = 0; i < part.size(); ++i)
      if (bytes[i] > 1) throw Error("load_npy", path + " has a bool that is neither 0 nor 1");
  }
  if (!found.fortran_order || dims < 2) return part;
  std::array<int, std::size_t(dims)> reversed{};
  for (int d = 0; d < dims; ++d) reversed[std::size_t(d)] = dims - 1 - d;
  return part.permute(reversed).clone();
}

}  // namespace detail

/// Writes the global array to one .npy file, row-major, which replaces an existing file at once:
/// whenever the program ends, it is the old or the new file.
///
/// @param x          any placements without Partial; replicas share the work
/// @collective       every rank of the mesh
/// @cost             writes each element once. Where a rank's runs of contiguous bytes are shorter
///                   than 256 KiB, a redistribution to rows first
/// @throws Error     on every rank, with the path, if one cannot write; `path`.partial is removed
template <class T, int Rank, class Mesh, class P>
void save_npy(const std::string& path, const DTensor<T, Rank, Mesh, P>& x) {
  using X = DTensor<T, Rank, Mesh, P>;
  detail::require_npy_type<T>();
  static_assert(!X::layout.has_partial(),
                "cleave: a file has no addends: redistribute the Partial axes before save_npy");
  detail::save_array("save_npy", path, detail::npy_header_of(dtype_of<T>(), Shape(x.shape())), x);
}

/// Reads an .npy file of exactly this element type and number of dimensions, each rank the elements
/// that the placements give it.
///
///     const auto x = load_npy<double, 2>("x.npy", mesh, Shard<1>{}, Replicate{});
///
/// @collective       every rank of the mesh
/// @cost             each rank reads its elements. Where its runs of contiguous bytes are shorter
///                   than 64 KiB, each reads rows, which are redistributed; files in Fortran order
///                   are read run by run
/// @throws Error     on every rank, with the path, as the local `load_npy`, or if a rank cannot
///                   read
template <Element T, int Rank, class Mesh, class... P>
  requires is_device_mesh<Mesh>
auto load_npy(const std::string& path, const Mesh& mesh, Placements<P...> placements) {
  using To = decltype(detail::target_placements<Rank, Mesh, P...>());
  using X = DTensor<T, Rank, Mesh, To>;
  using Rows = detail::rows_t<Mesh::axis_count>;
  detail::require_npy_type<T>();
  detail::NpyElements found;
  typename X::Extents extents{};
  if (!mesh.is_member()) return X::unchecked(typename X::local_type(), mesh, extents);
  const auto step = [&](const auto& f) {
    detail::together(mesh.communicator().host(), "load_npy", "another rank could not read " + path,
                     true, f);
  };
  step([&] { found = detail::find_npy_elements(path, dtype_of<T>(), Rank); });
  extents = to_array<Rank>(found.extents);
  const auto read = [&]<class Y>(const Y*) {
    Tensor<T, Rank> part;
    step([&] { part = detail::read_npy_part<Y>(path, found, mesh.state()); });
    return Y::unchecked(part.to(typename Mesh::device_type{}), mesh, extents);
  };
  if constexpr (Rank > 0 && !std::is_same_v<To, Rows>)
    if (!found.fortran_order &&
        !detail::has_long_runs(X::layout, found.extents, mesh.extents(), index_t(sizeof(T))))
      return read(static_cast<const DTensor<T, Rank, Mesh, Rows>*>(nullptr))
          .redistribute(placements);
  return read(static_cast<const X*>(nullptr));
}
template <Element T, int Rank, class Mesh, PlacementType... P>
  requires(is_device_mesh<Mesh> && sizeof...(P) > 0)
auto load_npy(const std::string& path, const Mesh& mesh, P...) {
  return load_npy<T, Rank>(path, mesh, Placements<P...>{});
}

}  // namespace cleave::inline v0
