// The potential of two charges in a box: -div grad u = f with u = 0 around, by conjugate gradients
// with a multigrid cycle as preconditioner.
//
//     poisson --rows 511 --columns 1000 --mesh 2x2 --ranks 4 --picture poisson.ppm
//
// Grids become coarser by a stencil with stride 2, whatever their extents, and move to fewer ranks
// when they are small. Dot products are exact, so the iterations have the same bits on any mesh.
#include <cmath>
#include <cstdio>
#include <vector>

#include <cleave/cleave.hpp>

#include "../grid.hpp"

using namespace cleave;

namespace {

using Field = DTensor<double, 2, grid::Mesh, Placements<Shard<0>, Shard<1>>>;

/// h^2 times the operator, the same on all levels.
struct Laplace : Stencil {
  constexpr auto operator()(const auto& u) const {
    return 4 * u(0, 0) - (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1));
  }
};
struct Residual : Stencil {
  constexpr auto operator()(const auto& f, const auto& u) const { return f(0, 0) - Laplace{}(u); }
};
/// A damped step of Jacobi's method.
struct Smooth : Stencil {
  constexpr auto operator()(const auto& u, const auto& f) const {
    return u(0, 0) + 0.2 * Residual{}(f, u);
  }
};
/// Element (i, j) of the coarse grid is at (2 i + 1, 2 j + 1) of the fine one.
struct Restrict : Stencil {
  static constexpr auto stride = coarsen(2);
  constexpr auto operator()(const auto& r) const {
    return r(1, 1) + 0.5 * (r(0, 1) + r(2, 1) + r(1, 0) + r(1, 2)) +
           0.25 * (r(0, 0) + r(0, 2) + r(2, 0) + r(2, 2));
  }
};
/// Adds what the coarse grid found, by linear interpolation: the transpose of Restrict.
struct Correct : Stencil {
  static constexpr Stride stride[] = {Stride{}, refine(2)};
  constexpr auto operator()(const auto& u, const auto& e) const {
    const int i = int(u.index(0) % 2) - 1, j = int(u.index(1) % 2) - 1;  // 0 at coarse elements
    return u(0, 0) + 0.25 * (e(0, 0) + e(i, 0) + e(0, j) + e(i, j));
  }
};

class Multigrid {
 public:
  /// Grids with fewer elements per rank move to half of the ranks in each dimension.
  static constexpr index_t least_per_rank = 1024;

  Multigrid(World& world, const grid::Mesh& finest, index_t rows, index_t columns)
      : meshes_{finest} {
    index_t up = finest.extent(axes::row{}), across = finest.extent(axes::col{});
    for (;;) {
      if (world.rank() == 0)
        std::printf("%d x %d elements on %d x %d ranks\n", int(rows), int(columns), int(up),
                    int(across));
      rows = (rows - 1) / 2, columns = (columns - 1) / 2;
      if (rows < 1 || columns < 1) return;
      if (up * across > 1 && rows * columns < least_per_rank * up * across) {
        up = (up + 1) / 2, across = (across + 1) / 2;
        std::vector<int> ranks;
        for (int rank = 0; rank < int(up * across); ++rank) ranks.push_back(rank);
        meshes_.push_back(init_device_mesh<axes::row, axes::col>(world, {up, across}, ranks));
      } else {
        meshes_.push_back(meshes_.back());
      }
    }
  }

  /// An approximate solution of Laplace(u) = f: a V-cycle, which is symmetric.
  Field operator()(const Field& f, std::size_t level = 0) const {
    Field u = 0.2 * f;  // a step of Smooth from zero
    if (level + 1 == meshes_.size()) return smooth(u, f, 31);
    u = smooth(u, f, 1);
    const Field fine = apply(Restrict{}, apply(Residual{}, f, u, edges(zero)));
    const Field coarse = fine.redistribute(meshes_[level + 1], Shard<0>{}, Shard<1>{});
    const Field e = (*this)(coarse, level + 1);
    u = apply(Correct{}, u, e.redistribute(meshes_[level], Shard<0>{}, Shard<1>{}), edges(zero));
    return smooth(u, f, 2);
  }

 private:
  static Field smooth(Field u, const Field& f, int steps) {
    for (int i = 0; i < steps; ++i) u = apply(Smooth{}, u, f, edges(zero));
    return u;
  }

  std::vector<grid::Mesh> meshes_;  ///< of each level
};

/// A positive charge at the left, a negative one at the right.
struct Charges : Stencil {
  index_t row = 0, left = 0, right = 0;
  constexpr auto operator()(const auto& u) const {
    const bool is_there = u.index(0) == row;
    return is_there && u.index(1) == left ? 1.0 : is_there && u.index(1) == right ? -1.0 : 0.0;
  }
};

void simulate(World& world, const grid::Options& options) {
  const index_t rows = options.rows, columns = options.columns;
  const grid::Mesh mesh = grid::mesh_of(world, options);
  const Multigrid precondition(world, mesh, rows, columns);
  Field u = zeros<double>({rows, columns}, mesh, Shard<0>{}, Shard<1>{});
  Field r = apply(Charges{{}, rows / 2, columns / 4, columns - 1 - columns / 4}, u, edges(zero));
  const double first = norm<exact>(r).item();
  Field z = precondition(r), p = z;
  double rz = dot<exact>(r, z).item();
  for (index_t step = 1; step <= options.steps; ++step) {
    const Field q = apply(Laplace{}, p, edges(zero));
    const double alpha = rz / dot<exact>(p, q).item();
    u = u + alpha * p;
    r = r - alpha * q;
    const double residual = norm<exact>(r).item();
    if (world.rank() == 0) std::printf("step %d: residual %.17g\n", int(step), residual);
    if (residual <= 1e-10 * first) break;
    z = precondition(r);
    const double before = rz;
    rz = dot<exact>(r, z).item();
    p = z + (rz / before) * p;
  }
  const Tensor<double, 2> whole = u.full_tensor();
  if (world.rank() != 0) return;
  grid::print_row(whole, rows / 2);
  if (!options.picture.empty()) grid::write_picture(options.picture, whole, -0.4, 0.4);
}

}  // namespace

int main(int argc, char** argv) {
  return grid::main_of("poisson", argc, argv, {255, 500, 50}, &simulate);
}
