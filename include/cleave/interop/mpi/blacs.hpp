// The process grids of ScaLAPACK: BLACS contexts of the ranks of a mesh, made once per mesh and
// freed with it.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/mpi_handle.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>

extern "C" {
int Csys2blacs_handle(MPI_Comm comm);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridmap(int* context, int* ranks, int leading_dimension, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
}

namespace cleave::inline v0::detail {

/// A rank's place along some axes of a mesh that deal blocks in turn, the first axis first.
constexpr int dealt_place(const Shape& extents, const Shape& coordinate, AxisMask axes) {
  index_t place = 0, step = 1;
  for (int a = 0; a < extents.dims; ++a)
    if (axes >> a & 1u) place += step * coordinate[a], step *= extents[a];
  return int(place);
}

/// The contexts of one mesh. Kept by it: `mesh.cache<BlacsContexts>()`.
class BlacsContexts {
 public:
  BlacsContexts() = default;
  BlacsContexts(const BlacsContexts&) = delete;
  BlacsContexts& operator=(const BlacsContexts&) = delete;
  ~BlacsContexts() {
    if (!mpi_is_running()) return;
    for (const Made& made : made_) Cblacs_gridexit(made.context);
  }

  /// The context whose process rows are the ranks along `rows`, and whose columns those along
  /// `columns`. Ranks that differ along other axes have separate ones.
  ///
  /// @collective   the first call for these axes: every rank of their group
  /// @throws Error if the ranks are not MPI processes
  int of(const MeshState& mesh, AxisMask rows, AxisMask columns) {
    for (const Made& made : made_)
      if (made.rows == rows && made.columns == columns) return made.context;
    const AxisMask axes = rows | columns;
    const index_t size = mesh.size(axes);
    const int height = int(mesh.size(rows)), width = int(mesh.size(columns));
    std::vector<int> ranks(static_cast<std::size_t>(size));
    for (index_t r = 0; r < size; ++r) {
      const Shape at = mesh.member(axes, r);
      const int row = dealt_place(mesh.extents(), at, rows);
      const int column = dealt_place(mesh.extents(), at, columns);
      ranks[std::size_t(row + column * height)] = int(r);
    }
    // BLACS has one handle per communicator, which the user may have, too: hence a duplicate
    const MpiComm comm = MpiComm::duplicate(mpi_handle(*mesh.group(axes)));
    const int handle = Csys2blacs_handle(comm.get());
    int context = handle;
    Cblacs_gridmap(&context, ranks.data(), height, height, width);
    Cfree_blacs_system_handle(handle);
    made_.push_back({rows, columns, context});
    return context;
  }

 private:
  struct Made {
    AxisMask rows, columns;
    int context;
  };
  std::vector<Made> made_{};
};

}  // namespace cleave::inline v0::detail
