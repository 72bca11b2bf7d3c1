// One array in one file that all ranks of a mesh write or read, each its own elements: contiguous
// runs of bytes.
//
//     x[S0,R] of [8, 3], 2 x 2 ranks:  ranks 0 and 2 own rows [0, 4) and [4, 8), one run each;
//     ranks 1 and 3 have the same rows: each replica writes half of them
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include <fcntl.h>

#include <cleave/comm/agree.hpp>
#include <cleave/core/file_progress.hpp>
#include <cleave/core/open_file.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/owned_boxes.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// Shorter runs cost more in system calls than a redistribution to rows costs: calls of 256, 64, 16
/// and 4 KiB reach 0.87, 0.63, 0.38 and 0.18 of the rate of one large call into the page cache.
/// Blocks of 64 KiB of four processes are written in 1.5 times the time of slabs of rows, in 1.1
/// times after a redistribution, but read in 1.4 times, and in 1.7 times with a redistribution.
inline constexpr index_t least_run_read = index_t(64) << 10, least_run_written = index_t(256) << 10;

/// Whether the ranks' elements are long runs of the row-major array. Equal on all ranks.
constexpr bool has_long_runs(const Layout& layout, const Shape& shape, const Shape& mesh,
                             index_t element, index_t least = least_run_read) {
  index_t run = element;
  for (int d = shape.dims - 1; d >= 0; --d) {
    index_t owned = shape[d];
    bool is_cut = false;
    for (int a = 0; a < layout.axes; ++a) {
      if (!layout[a].shards(d) || mesh[a] == 1) continue;
      is_cut = is_cut || d > 0 || !layout[a].is_box();
      if (layout[a].is_box()) owned = (owned + mesh[a] - 1) / mesh[a];
      else owned = owned < layout[a].number ? owned : layout[a].number;
    }
    run *= owned;
    if (is_cut) return run >= least;
  }
  return true;
}

/// Calls f(index of its first element in the array, the same of the dense local part, elements) for
/// the runs that a rank owns. With `replicas`, those that it writes.
template <class F>
void each_run(const Layout& layout, const Shape& shape, const MeshState& mesh, bool replicas,
              const F& f) {
  const Shape& at = mesh.coordinate();
  index_t count = 1, mine = 0;
  for (int a = 0; a < layout.axes && replicas; ++a) {
    if (layout[a].shards()) continue;
    count *= mesh.extents()[a];
    mine = mine * mesh.extents()[a] + at[a];
  }
  const Shape strides = row_major_strides(shape),
              dense = row_major_strides(local_shape(layout, shape, mesh.extents(), at));
  each_owned_box(layout, shape, mesh.extents(), at, [&](const Box& global, const Box& local) {
    Shape first = global.begin, to = local.begin, extents = global.extents();
    if (shape.dims == 0) {
      if (mine == 0) f(index_t(0), index_t(0), index_t(1));
      return;
    }
    const IndexRange share = shard_range(extents[0], count, mine);
    first[0] += share.begin, to[0] += share.begin, extents[0] = share.end - share.begin;
    if (extents.product() == 0) return;
    int inner = shape.dims - 1;  // dimensions after it are whole
    index_t run = 1;
    while (inner > 0 && extents[inner] == shape[inner]) run *= extents[inner--];
    run *= extents[inner];
    Shape outer = extents, offset = Shape::filled(shape.dims, 0);
    for (int d = inner; d < shape.dims; ++d) outer[d] = 1;
    do
      f(offset_of(first, strides) + offset_of(offset, strides),
        offset_of(to, dense) + offset_of(offset, dense), run);
    while (next_index(outer, offset));
  });
}

/// What one rank has of an array: dense elements, and which.
struct PartOfArray {
  const Layout& layout;
  const MeshState& mesh;
  Shape shape;  ///< of the array
};

/// The bytes of the runs of a rank.
inline std::uint64_t run_bytes(const PartOfArray& part, bool replicas, std::uint64_t element) {
  std::uint64_t bytes = 0;
  each_run(part.layout, part.shape, part.mesh, replicas,
           [&](index_t, index_t, index_t count) { bytes += std::uint64_t(count) * element; });
  return bytes;
}

/// Calls f(byte of the array, byte of the dense local part, bytes) for pieces of the runs of a
/// rank, and reports them.
template <class F>
void each_piece(FileTransfer& transfer, const PartOfArray& part, bool replicas,
                std::uint64_t element, const F& f) {
  each_run(part.layout, part.shape, part.mesh, replicas,
           [&](index_t at, index_t local, index_t count) {
             transfer.in_pieces(std::uint64_t(count) * element,
                                [&](std::uint64_t first, std::uint64_t bytes) {
                                  f(std::uint64_t(at) * element + first,
                                    std::uint64_t(local) * element + first, std::size_t(bytes));
                                });
           });
}

/// Writes a header and an array to a file, which replaces one of that name when all ranks have
/// written: whenever the program ends, it is the old or the new file.
///
/// @collective   every rank of the mesh; others return at once
/// @throws Error on all ranks, if one of them cannot write
inline void write_shared_array(const char* operation, const std::string& path,
                               const std::string& header, const PartOfArray& part,
                               const ConstView& dense) {
  if (!part.mesh.is_member()) return;
  const auto element = std::uint64_t(size_of(dense.dtype));
  const std::string partial = path + ".partial";
  Communicator& group = part.mesh.group().host();
  const bool is_first = group.rank() == 0;
  const auto step = [&](bool takes_part, const auto& f) {
    together(group, operation, "another rank could not write " + path, takes_part, f);
  };
  try {
    step(is_first, [&] {
      const OpenFile file(operation, partial, O_CREAT | O_TRUNC | O_WRONLY);
      file.write_at(0, header.data(), header.size());
      file.resize(header.size() + std::uint64_t(part.shape.product()) * element);
    });
    step(true, [&] {
      const OpenFile file(operation, partial, O_WRONLY);
      const auto* data = static_cast<const std::byte*>(dense.data);
      FileTransfer transfer(operation, run_bytes(part, true, element));
      each_piece(transfer, part, true, element,
                 [&](std::uint64_t at, std::uint64_t local, std::size_t bytes) {
                   file.write_at(header.size() + at, data + local, bytes);
                 });
      file.sync();
    });
  } catch (const Error&) {
    if (is_first) std::remove(partial.c_str());
    throw;
  }
  step(is_first, [&] { publish(operation, partial, path); });
}

/// Reads this rank's elements of an array that begins `offset` bytes into a file.
/// @throws Error if they cannot be read
inline void read_shared_array(FileTransfer& transfer, const OpenFile& file, std::uint64_t offset,
                              const PartOfArray& part, const View& dense) {
  const auto element = std::uint64_t(size_of(dense.dtype));
  auto* data = static_cast<std::byte*>(dense.data);
  each_piece(transfer, part, false, element,
             [&](std::uint64_t at, std::uint64_t local, std::size_t bytes) {
               file.read_at(offset + at, data + local, bytes);
             });
}

/// A tensor's elements in row-major order in the host's memory: a copy only where they are not.
auto dense_on_host(const auto& tensor) {
  const auto host = tensor.to(Host{});
  return host.contiguous() ? host : host.clone();
}

template <int Axes>
struct LayoutOfRows {
  static constexpr Layout layout = [] {
    Layout rows = Layout::replicated(Axes);
    for (int a = 0; a < Axes; ++a) rows[a] = Placement::shard(0);
    return rows;
  }();
};

/// Rows over all ranks: long runs of any array that has dimensions.
template <int Axes>
using rows_t = placements_t<LayoutOfRows<Axes>>;

/// Writes a header and the global array to a file. @see write_shared_array
template <class T, int Rank, class Mesh, class P>
void save_array(const char* operation, const std::string& path, const std::string& header,
                const DTensor<T, Rank, Mesh, P>& x) {
  const Layout& layout = x.actual_layout();
  using Rows = rows_t<Mesh::axis_count>;
  const Shape shape(x.shape());
  if constexpr (Rank > 0 && !std::is_same_v<P, Rows>)
    if (!has_long_runs(layout, shape, x.mesh().extents(), index_t(sizeof(T)), least_run_written))
      return save_array(operation, path, header, x.redistribute(Rows{}));
  const auto dense = dense_on_host(x.to_local());
  write_shared_array(operation, path, header, {layout, x.mesh().state(), shape}, dense.view());
}

}  // namespace cleave::inline v0::detail
