// Arrays in an HDF5 file, each rank its own elements, by collective transfers of hyperslabs.
#pragma once

#include <cleave/core/config.hpp>

#if CLEAVE_HAS_HDF5

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <hdf5.h>

#include <cleave/core/checksum.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/interop/mpi/file_arrays.hpp>
#include <cleave/interop/mpi/hdf5_file.hpp>
#include <cleave/interop/mpi/hdf5_objects.hpp>
#include <cleave/interop/shared_array_file.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::hdf5 {

using WriteOptions = cleave::detail::WriteOptions;

/// What a file says of an array.
struct Dataset {
  DType dtype = DType::float64;
  Shape shape{};
  Shape chunk{};  ///< without dimensions if it is stored row by row
};

}  // namespace cleave::inline v0::hdf5

namespace cleave::inline v0::detail {

/// Equal runs of indices at equal distances.
struct Hdf5Runs {
  hsize_t first, distance, count, length;
};

/// What a rank owns along a dimension, or `within` a range of its own indices: at most one element
/// if it is a range, and two if blocks are dealt along one axis, the last of which may be shorter.
inline std::vector<Hdf5Runs> hdf5_runs(const DimOwnership& own, const Shape& coordinate,
                                       const IndexRange* within = nullptr) {
  std::vector<Hdf5Runs> found;
  const DimOwnership::Parts parts = own.parts_of(coordinate);
  const index_t end = within == nullptr ? own.size(parts) : within->end;
  for (index_t at = within == nullptr ? 0 : within->begin, run = 0; at < end; at += run) {
    const index_t index = own.global(parts, at);
    run = std::min(own.place(index).run, end - at);
    const auto first = hsize_t(index), length = hsize_t(run);
    Hdf5Runs* last = found.empty() ? nullptr : &found.back();
    if (last != nullptr && last->length == length && last->count == 1)
      last->distance = first - last->first, last->count = 2;
    else if (last != nullptr && last->length == length &&
             first == last->first + last->count * last->distance)
      ++last->count;
    else found.push_back({first, length, 1, length});
  }
  return found;
}

/// Selects some rows of what a rank owns: a regular hyperslab, or their union if it needs several.
/// @pre it owns elements
inline void hdf5_select(hid_t space, const PartOfArray& part, const IndexRange& rows) {
  const int dims = part.shape.dims;
  if (dims == 0) return;  // all of one element
  std::array<std::vector<Hdf5Runs>, std::size_t(max_dims)> runs;
  Shape pieces = Shape::filled(dims, 0), at = pieces;
  for (int d = 0; d < dims; ++d) {
    const DimOwnership own(part.layout, {0, 1, 2, 3, 4, 5, 6, 7}, d, part.shape[d],
                           part.mesh.extents());
    runs[std::size_t(d)] = hdf5_runs(own, part.mesh.coordinate(), d == 0 ? &rows : nullptr);
    pieces[d] = index_t(runs[std::size_t(d)].size());
  }
  H5S_seloper_t add = H5S_SELECT_SET;
  do {
    std::array<hsize_t, std::size_t(max_dims)> first{}, distance{}, count{}, length{};
    for (std::size_t d = 0; d < std::size_t(dims); ++d) {
      const Hdf5Runs& run = runs[d][std::size_t(at[int(d)])];
      first[d] = run.first, distance[d] = run.distance;
      count[d] = run.count, length[d] = run.length;
    }
    hdf5_check(
        H5Sselect_hyperslab(space, add, first.data(), distance.data(), count.data(), length.data()),
        "H5Sselect_hyperslab");
    add = H5S_SELECT_OR;
  } while (next_index(pieces, at));
}

/// Transfers a part by f(dataset, type, dataspace in memory, dataspace in the file, how, the number
/// of bytes before its elements). All ranks do, also those without elements; but HDF5 transfers no
/// array that has none.
///
/// Long runs of an array without chunks are transferred by each rank on its own, as MPI-IO then
/// does without copies; the rest collectively.
template <class F>
void hdf5_transfer(Hdf5File& file, const Hdf5File::Call& call, const PartOfArray& part, DType dtype,
                   bool takes_part, bool is_chunked, bool in_one_step, const F& f) {
  if (part.shape.product() == 0) return;
  const auto how = !is_chunked && is_transferred_alone(part, dtype) ? H5FD_MPIO_INDEPENDENT
                                                                    : H5FD_MPIO_COLLECTIVE;
  transfer_part(file, call, part, dtype, takes_part, in_one_step,
                [&](const IndexRange& rows, index_t first, index_t count) {
                  const Hdf5Object dataset(H5Dopen2(file.id(), call.name.c_str(), H5P_DEFAULT),
                                           H5Dclose, "H5Dopen"),
                      space(H5Dget_space(dataset), H5Sclose, "H5Dget_space"),
                      type = hdf5_type(dtype), memory = hdf5_space(Shape::filled(1, count)),
                      list = hdf5_list(H5P_DATASET_XFER);
                  if (count > 0) hdf5_select(space, part, rows);
                  else hdf5_check(H5Sselect_none(space), "H5Sselect_none");
                  hdf5_check(H5Pset_dxpl_mpio(list, how), "H5Pset_dxpl_mpio");
                  f(hid_t(dataset), hid_t(type), hid_t(memory), hid_t(space), hid_t(list),
                    std::size_t(first) * size_of(dtype));
                });
}

inline void write_hdf5(Hdf5File& file, const std::string& name, const PartOfArray& part,
                       const ConstView& dense, const hdf5::WriteOptions& options) {
  const auto call =
      file.called("hdf5::File::write", name, to_string(part.shape), to_string(part.layout));
  file.meet(call, {std::uint64_t(dense.dtype), checksum(part.shape), checksum(options.chunk),
                   std::uint64_t(options.deflate)});
  file.require_writable(call);
  file.require_same_ranks(call, part.mesh);
  require_chunks(file, call, part.shape, options);
  file.attempt(call, [&] {
    const Hdf5Object type = hdf5_type(dense.dtype), space = hdf5_space(part.shape),
                     links = hdf5_list(H5P_LINK_CREATE), how = hdf5_list(H5P_DATASET_CREATE);
    hdf5_check(H5Pset_create_intermediate_group(links, 1), "H5Pset_create_intermediate_group");
    if (!options.chunk.empty() && part.shape.product() > 0) {
      const std::vector<hsize_t> chunk(options.chunk.begin(), options.chunk.end());
      hdf5_check(H5Pset_chunk(how, int(chunk.size()), chunk.data()), "H5Pset_chunk");
      if (options.deflate > 0)
        hdf5_check(H5Pset_deflate(how, unsigned(options.deflate)), "H5Pset_deflate");
    }
    const Hdf5Object dataset(
        H5Dcreate2(file.id(), name.c_str(), type, space, links, how, H5P_DEFAULT), H5Dclose,
        "H5Dcreate");
  });
  const auto* data = static_cast<const std::byte*>(dense.data);
  hdf5_transfer(
      file, call, part, dense.dtype, is_first_replica(part), !options.chunk.empty(),
      options.deflate > 0,
      [&](hid_t dataset, hid_t type, hid_t memory, hid_t space, hid_t list, std::size_t first) {
        hdf5_check(H5Dwrite(dataset, type, memory, space, list, data + first), "H5Dwrite");
      });
}

/// @throws Error if there is no such array, or its elements are none of cleave's
inline hdf5::Dataset describe_hdf5(const Hdf5File& file, const std::string& name) {
  const Hdf5Object dataset(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen"),
      type(H5Dget_type(dataset), H5Tclose, "H5Dget_type"),
      space(H5Dget_space(dataset), H5Sclose, "H5Dget_space"),
      how(H5Dget_create_plist(dataset), H5Pclose, "H5Dget_create_plist");
  hdf5::Dataset found{dtype_of_hdf5(type), hdf5_extents(space), {}};
  if (H5Pget_layout(how) == H5D_CHUNKED) {
    std::array<hsize_t, std::size_t(max_dims)> chunk{};
    hdf5_check(H5Pget_chunk(how, max_dims, chunk.data()), "H5Pget_chunk");
    found.chunk = Shape::filled(found.shape.dims, 0);
    for (int d = 0; d < found.shape.dims; ++d) found.chunk[d] = index_t(chunk[std::size_t(d)]);
  }
  return found;
}

inline hdf5::Dataset dataset_hdf5(Hdf5File& file, const std::string& name) {
  const auto call = file.called("hdf5::File::dataset", name);
  file.meet(call, {});
  file.require_open(call);
  hdf5::Dataset found;
  file.attempt(call, [&] { found = describe_hdf5(file, name); });
  return found;
}

/// What the file says of an array that must have this type and number of dimensions.
inline hdf5::Dataset find_hdf5(Hdf5File& file, const std::string& name, DType dtype, int dims,
                               const Layout& layout, const MeshState& mesh) {
  const auto call = file.called("hdf5::File::read", name, {}, to_string(layout));
  file.meet(call, {std::uint64_t(dtype), std::uint64_t(dims)});
  file.require_open(call);
  file.require_same_ranks(call, mesh);
  hdf5::Dataset found;
  file.attempt(call, [&] {
    found = describe_hdf5(file, name);
    if (found.dtype != dtype)
      throw Error("HDF5", std::string("it has elements of type ") + name_of(found.dtype) +
                              ", not " + name_of(dtype));
    if (found.shape.dims != dims)
      throw Error("HDF5", "it has " + std::to_string(found.shape.dims) + " dimensions " +
                              to_string(found.shape) + ", not " + std::to_string(dims));
  });
  return found;
}

/// @pre find_hdf5 has returned the shape, and whether it has chunks
inline void read_hdf5(Hdf5File& file, const std::string& name, const PartOfArray& part,
                      const View& dense, bool is_chunked) {
  const auto call =
      file.called("hdf5::File::read", name, to_string(part.shape), to_string(part.layout));
  auto* data = static_cast<std::byte*>(dense.data);
  hdf5_transfer(
      file, call, part, dense.dtype, true, is_chunked, is_chunked,
      [&](hid_t dataset, hid_t type, hid_t memory, hid_t space, hid_t list, std::size_t first) {
        hdf5_check(H5Dread(dataset, type, memory, space, list, data + first), "H5Dread");
      });
  if (dense.dtype != DType::boolean) return;
  file.attempt(call, [&] {
    const auto* bytes = static_cast<const unsigned char*>(dense.data);
    if (std::any_of(bytes, bytes + dense.size(), [](unsigned byte) { return byte > 1; }))
      throw Error("HDF5", "it has a bool that is neither 0 nor 1");
  });
}

/// The names of all arrays, in alphabetical order of each group.
inline std::vector<std::string> names_hdf5(Hdf5File& file) {
  const auto call = file.called("hdf5::File::names", {});
  file.meet(call, {});
  file.require_open(call);
  std::vector<std::string> found;
  file.attempt(call, [&] {
    const auto visit = [](hid_t root, const char* name, const auto* link, void* to) -> herr_t {
      if (link->type != H5L_TYPE_HARD) return 0;
      const hid_t object = H5Oopen(root, name, H5P_DEFAULT);
      if (object < 0) return -1;
      if (H5Iget_type(object) == H5I_DATASET)
        static_cast<std::vector<std::string>*>(to)->emplace_back(name);
      return H5Oclose(object);
    };
    hdf5_check(H5Lvisit(file.id(), H5_INDEX_NAME, H5_ITER_INC, visit, &found), "H5Lvisit");
  });
  return found;
}

}  // namespace cleave::inline v0::detail

#endif
