// What files of HDF5 and NetCDF have in common: how arrays are stored, DTensors of what was read,
// and the types of attributes.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/file_progress.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/interop/shared_array_file.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::detail {

/// How an array is stored.
struct WriteOptions {
  /// Extents of the chunks, one per dimension, which are stored and compressed apart; empty: the
  /// array is stored row by row. An array without elements has no chunks.
  std::vector<index_t> chunk{};
  int deflate = 0;  ///< 1 (fastest) to 9 (smallest): chunks are compressed; 0: they are not
};

/// @throws Error on all ranks if the options do not fit the array
template <class File>
void require_chunks(File& file, const typename File::Call& call, const Shape& shape,
                    const WriteOptions& options) {
  const std::vector<index_t>& chunk = options.chunk;
  if (options.deflate < 0 || options.deflate > 9) file.refuse(call, "deflate must be 0 to 9");
  if (options.deflate > 0 && chunk.empty())
    file.refuse(call, "deflate compresses chunks: chunk must have their extents");
  if (chunk.empty() || shape.product() == 0) return;
  if (int(chunk.size()) != shape.dims)
    file.refuse(call, "chunk has " + std::to_string(chunk.size()) + " extents, the array " +
                          std::to_string(shape.dims));
  for (int d = 0; d < shape.dims; ++d)
    if (const index_t extent = chunk[std::size_t(d)]; extent < 1 || extent > shape[d])
      file.refuse(call, "the extents of chunks must be 1 to those of the array, not " +
                            std::to_string(extent));
}

/// Whether this rank is the one of several replicas that writes.
inline bool is_first_replica(const PartOfArray& part) {
  const Shape& at = part.mesh.coordinate();
  for (int a = 0; a < part.layout.axes; ++a)
    if (!part.layout[a].shards() && at[a] != 0) return false;
  return true;
}

/// Whether each rank transfers its part on its own: collective transfers of Open MPI, which few
/// processes carry out for all, take two to eight times as long on one node.
inline bool is_transferred_alone(const PartOfArray& part, DType dtype) {
  return has_long_runs(part.layout, part.shape, part.mesh.extents(), index_t(size_of(dtype)));
}

/// Calls f(rows of this rank's part, the number of elements before them, that of their elements) on
/// all ranks. If a rank has a FileProgress, in as many steps as the largest part needs, after each
/// of which ranks stop if one of them has failed.
///
/// @param in_one_step  because parts of it cannot be transferred well, as of compressed chunks
template <class File, class F>
void transfer_part(File& file, const typename File::Call& call, const PartOfArray& part,
                   DType dtype, bool takes_part, bool in_one_step, const F& f) {
  const Shape local =
      local_shape(part.layout, part.shape, part.mesh.extents(), part.mesh.coordinate());
  const index_t rows = !takes_part ? 0 : local.dims == 0 ? 1 : local[0];
  const index_t row = rows == 0 ? 0 : local.product() / rows, element = index_t(size_of(dtype));
  const bool reports = ProgressListener::current() != nullptr;
  const index_t most = index_t(FileTransfer::report_bytes);
  const index_t steps =
      in_one_step ? 1 : file.largest(reports ? (rows * row * element + most - 1) / most : 1);
  FileTransfer transfer(call.operation, std::uint64_t(rows * row * element));
  index_t step = 0;
  do {
    file.attempt(call, [&] {
      const IndexRange now{steps < 2 ? 0 : rows * step / steps,
                           steps < 2 ? rows : rows * (step + 1) / steps};
      f(now, now.begin * row, now.size() * row);
      transfer.add(std::uint64_t(now.size() * row * element));
    });
  } while (++step < steps);
}

/// Whether this rank has the file open. @throws Error if it has a part of an array, but not the
/// file
template <class File>
bool has_open(const File* file, const MeshState& mesh, const char* operation) {
  if (file == nullptr && mesh.is_member())
    throw Error(operation, "this rank is outside of the file's mesh",
                {.mesh = mesh.describe(), .rank = mesh.world_rank()});
  return file != nullptr;
}

/// A DTensor of an array in a file.
///
/// @param find  returns the array's shape
/// @param read  reads a part
template <class T, int Rank, class File, class Mesh, class... P, class Find, class Read>
auto read_dtensor(const File* file, const char* operation, const Mesh& mesh,
                  const Placements<P...>& placements, const Find& find, const Read& read) {
  using To = decltype(target_placements<Rank, Mesh, P...>());
  using X = DTensor<T, Rank, Mesh, To>;
  const auto stored = stored_of<To, Rank>(placements);
  const Layout& layout = layout_in<To, Rank>(stored);
  typename X::Extents extents{};
  if (!has_open(file, mesh.state(), operation))
    return X::unchecked(typename X::local_type(), mesh, extents, layout);
  const Shape shape = find(layout);
  extents = to_array<Rank>(shape);
  if constexpr (X::is_open) require_fitting(layout, shape, mesh.state(), operation);
  const Tensor<T, Rank> part(
      to_array<Rank>(local_shape(layout, shape, mesh.extents(), mesh.coordinate())));
  read(PartOfArray{layout, mesh.state(), shape}, part.view());
  return X::unchecked(part.to(typename Mesh::device_type{}), mesh, extents, layout);
}

/// The value of an attribute as an element, a `std::vector` of elements, or a string.
///
/// @param text     returns the string
/// @param numbers  reads elements of a type to the memory that a function of their shape returns
template <class V, class Text, class Numbers>
V attribute_as(const char* library, const Text& text, const Numbers& numbers) {
  V value{};
  if constexpr (std::is_same_v<V, std::string>) {
    value = text();
  } else if constexpr (Element<V>) {
    numbers(dtype_of<V>(), [&](const Shape& shape) {
      if (shape.product() != 1)
        throw Error(library, "it has the shape " + to_string(shape) + ": it is no single number");
      return &value;
    });
  } else {
    using Value = typename V::value_type;
    static_assert(std::is_same_v<V, std::vector<Value>> && !std::is_same_v<Value, bool>,
                  "cleave: an attribute is read as an element, a std::vector of elements other "
                  "than bool, or a std::string");
    numbers(dtype_of<Value>(), [&](const Shape& shape) {
      if (shape.dims > 1)
        throw Error(library, "it has the shape " + to_string(shape) + ", more than one dimension");
      value.resize(std::size_t(shape.product()));
      return value.data();
    });
  }
  return value;
}

}  // namespace cleave::inline v0::detail
