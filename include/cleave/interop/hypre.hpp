// The Poisson and the Helmholtz equation on a grid, solved by hypre: conjugate gradients with its
// geometric multigrid PFMG, on DTensors whose parts are boxes, on ranks that are MPI processes.
// Needs hypre (Debian: libhypre-dev).
//
//     hypre::Helmholtz solve(f, {.spacing = {dx, dy}});   // -Δu = f, u = 0 outside of the grid
//     const auto u = solve(f);                            // placed as f
//
// Unlike a solution by Fourier transforms, it moves only neighbouring elements between ranks, and
// extents need not have small factors.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <HYPRE.h>
#include <HYPRE_struct_ls.h>
#include <HYPRE_struct_mv.h>
#include <HYPRE_utilities.h>

#include <cleave/comm/mpi.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/redistribute/cost.hpp>

namespace cleave::inline v0::hypre {

/// What is solved, and how well. @tparam Rank  2 or 3
template <int Rank>
struct HelmholtzOptions {
  std::array<double, std::size_t(Rank)> spacing = [] {
    std::array<double, std::size_t(Rank)> ones{};
    for (double& h : ones) h = 1;
    return ones;
  }();  ///< distance of neighbouring points along each dimension, > 0
  double shift = 0;          ///< c >= 0 in c u - Δu = f
  double tolerance = 1e-10;  ///< of the norm of the residual divided by that of f
  int max_iterations = 200;
};

namespace detail {

inline void check(HYPRE_Int code, const char* call, const ErrorContext& context) {
  if (code == 0) return;
  std::array<char, 256> text{};
  HYPRE_DescribeError(code, text.data());
  HYPRE_ClearAllErrors();
  throw Error("hypre::Helmholtz", std::string(call) + ": " + text.data(), context);
}

/// An object of hypre, which is destroyed at the end.
template <class Handle, HYPRE_Int (*Destroy)(Handle)>
struct Destroyer {
  using pointer = Handle;
  void operator()(Handle handle) const { Destroy(handle); }
};
template <class Handle, HYPRE_Int (*Destroy)(Handle)>
using Owned = std::unique_ptr<Handle, Destroyer<Handle, Destroy>>;

}  // namespace detail

/// The solver of c u - Δu = f for right sides of one shape and placements: 2 Rank + 1 points, and
/// u = 0 at the neighbours outside of the grid (other values there are added to f, divided by the
/// square of the spacing). Setting it up costs about as much as a few iterations.
template <class X>
class Helmholtz {
 public:
  static constexpr int dims = X::dims;
  using Options = HelmholtzOptions<dims>;

  /// @param like   f, or another DTensor of its shape and placements, of which the solver keeps a
  ///               handle: double, 2 or 3 dimensions, any placements that are boxes and shard every
  ///               axis of the mesh; ranks may have none
  /// @collective   every rank of the mesh
  /// @throws Error if an option or a size does not fit, the ranks are not MPI processes, or hypre
  ///               reports an error
  explicit Helmholtz(const X& like, const Options& options = {})
      : like_(like), options_(options), context_(like.context()) {
    static_assert(is_dtensor<X> && std::is_same_v<typename X::device_type, Host>,
                  "cleave: hypre takes DTensors on the host");
    static_assert(std::is_same_v<typename X::value_type, HYPRE_Complex>,
                  "cleave: hypre: the elements are not this hypre's HYPRE_Complex (Debian's "
                  "libhypre-dev has double); cast<double>(x)");
    static_assert(dims == 2 || dims == 3, "cleave: hypre: grids have 2 or 3 dimensions");
    static_assert(X::layout.axes_where([](const Placement& p) { return !p.shards(); }) == 0,
                  "cleave: hypre: every axis of the mesh must shard the array: a grid has each "
                  "point once");
    static_assert(X::layout.is_box(),
                  "cleave: hypre: parts of a grid are boxes: redistribute block-cyclic dimensions "
                  "to Shard");
    require_options();
    const MPI_Comm comm = mpi_handle(like.mesh().state().group());
    [[maybe_unused]] static const HYPRE_Int initialized = HYPRE_Init();
    make_grid(comm);
    make_matrix(comm);
    make_vector(comm, right_);
    make_vector(comm, solution_);
    make_solver(comm);
  }

  /// The solution for a right side, placed as it; the iterations begin with 0.
  ///
  /// @collective   every rank of the mesh
  /// @throws Error if f has another shape, placements or mesh, the iterations do not reach the
  ///               tolerance, or hypre reports an error
  X operator()(const X& f) {
    if (f.shape() != like_.shape() || !(f.actual_layout() == like_.actual_layout()) ||
        !(f.mesh() == like_.mesh()))
      throw Error("hypre::Helmholtz",
                  "f has another shape, placements or mesh than the tensor of the constructor",
                  f.context());
    const auto local = f.to_local().contiguous() ? f.to_local() : f.to_local().clone();
    check(HYPRE_StructVectorSetConstantValues(solution_.get(), 0), "StructVectorSetConstantValues");
    if (!box_is_empty_)
      check(HYPRE_StructVectorSetBoxValues(right_.get(), first_.data(), last_.data(), local.data()),
            "StructVectorSetBoxValues");
    check(HYPRE_StructVectorAssemble(right_.get()), "StructVectorAssemble");
    check(HYPRE_StructVectorAssemble(solution_.get()), "StructVectorAssemble");
    const HYPRE_Int code =
        HYPRE_StructPCGSolve(cg_.get(), matrix_.get(), right_.get(), solution_.get());
    check(code & ~HYPRE_ERROR_CONV, "StructPCGSolve");
    HYPRE_ClearAllErrors();  // that of no convergence
    check(HYPRE_StructPCGGetNumIterations(cg_.get(), &iterations_), "StructPCGGetNumIterations");
    check(HYPRE_StructPCGGetFinalRelativeResidualNorm(cg_.get(), &residual_),
          "StructPCGGetFinalRelativeResidualNorm");
    if (!(residual_ <= options_.tolerance))
      throw Error("hypre::Helmholtz",
                  "after " + std::to_string(iterations_) + " iterations the relative residual is " +
                      std::to_string(residual_) + ", more than the tolerance",
                  context_);
    const typename X::local_type result(like_.to_local().shape());
    if (!box_is_empty_)
      check(HYPRE_StructVectorGetBoxValues(solution_.get(), first_.data(), last_.data(),
                                           result.data()),
            "StructVectorGetBoxValues");
    return X::unchecked(result, like_.mesh(), like_.shape(), like_.actual_layout());
  }

  int iterations() const { return int(iterations_); }  ///< of the last solution
  double residual() const { return residual_; }        ///< relative, of the last solution

 private:
  static constexpr std::size_t count = std::size_t(dims);
  using Index = std::array<HYPRE_Int, count>;  ///< hypre's first dimension is our last: unit stride

  void check(HYPRE_Int code, const char* call) const { detail::check(code, call, context_); }
  static std::size_t reversed(int d) { return std::size_t(dims - 1 - d); }

  void require_options() const {
    const auto refuse = [&](const std::string& text) {
      throw Error("hypre::Helmholtz", text, context_);
    };
    for (const double h : options_.spacing)
      if (!(h > 0)) refuse("the spacing must be positive, not " + std::to_string(h));
    if (!(options_.shift >= 0))
      refuse("the shift must be 0 or more, not " + std::to_string(options_.shift));
    if (!(options_.tolerance > 0) || options_.max_iterations < 1)
      refuse("the tolerance must be positive, max_iterations 1 or more");
    if (like_.size() == 0) refuse("the grid has no points");
    constexpr index_t most = std::numeric_limits<HYPRE_Int>::max();
    for (const index_t extent : like_.shape())
      if (extent > most) refuse("hypre's indices have 32 bits");
    const Shape longest = redistribution::longest_extents(  // so that no rank throws alone
        {like_.actual_layout()}, Shape(like_.shape()), like_.mesh().state().extents());
    if (longest.product() > most) refuse("hypre's sizes of parts have 32 bits");
  }

  void make_grid(MPI_Comm comm) {
    const MeshState& mesh = like_.mesh().state();
    const Box box =
        owned_box(like_.actual_layout(), Shape(like_.shape()), mesh.extents(), mesh.coordinate());
    for (int d = 0; d < dims; ++d) {
      first_[reversed(d)] = HYPRE_Int(box.begin[d]);
      last_[reversed(d)] = HYPRE_Int(box.end[d] - 1);
    }
    box_is_empty_ = box.volume() == 0;
    HYPRE_StructGrid grid = nullptr;
    check(HYPRE_StructGridCreate(comm, dims, &grid), "StructGridCreate");
    grid_.reset(grid);
    if (!box_is_empty_)
      check(HYPRE_StructGridSetExtents(grid, first_.data(), last_.data()), "StructGridSetExtents");
    check(HYPRE_StructGridAssemble(grid), "StructGridAssemble");
  }

  /// The diagonal, and the neighbour before a point along each dimension: the matrix is symmetric.
  void make_matrix(MPI_Comm comm) {
    HYPRE_StructStencil stencil = nullptr;
    check(HYPRE_StructStencilCreate(dims, dims + 1, &stencil), "StructStencilCreate");
    stencil_.reset(stencil);
    double diagonal = options_.shift;
    for (int entry = 0; entry <= dims; ++entry) {
      Index offset{};
      if (entry > 0) offset[reversed(entry - 1)] = -1;
      check(HYPRE_StructStencilSetElement(stencil, entry, offset.data()),
            "StructStencilSetElement");
      if (entry > 0) diagonal += 2 * weight(entry - 1);
    }
    HYPRE_StructMatrix matrix = nullptr;
    check(HYPRE_StructMatrixCreate(comm, grid_.get(), stencil, &matrix), "StructMatrixCreate");
    matrix_.reset(matrix);
    check(HYPRE_StructMatrixSetSymmetric(matrix, 1), "StructMatrixSetSymmetric");
    check(HYPRE_StructMatrixInitialize(matrix), "StructMatrixInitialize");
    std::vector<double> values(std::size_t(like_.to_local().size()));
    for (HYPRE_Int entry = 0; entry <= dims && !box_is_empty_; ++entry) {
      values.assign(values.size(), entry == 0 ? diagonal : -weight(entry - 1));
      set_values(entry, first_, last_, values);
      if (entry == 0) continue;
      const std::size_t d = reversed(entry - 1);
      Index edge = last_;
      edge[d] = 0;
      values.assign(values.size(), 0);  // the first points have no neighbour before them
      if (first_[d] == 0) set_values(entry, first_, edge, values);
    }
    check(HYPRE_StructMatrixAssemble(matrix), "StructMatrixAssemble");
  }
  void set_values(HYPRE_Int entry, Index first, Index last, std::vector<double>& values) {
    check(HYPRE_StructMatrixSetBoxValues(matrix_.get(), first.data(), last.data(), 1, &entry,
                                         values.data()),
          "StructMatrixSetBoxValues");
  }
  double weight(int d) const {
    const double h = options_.spacing[std::size_t(d)];
    return 1 / (h * h);
  }

  template <class Vector>
  void make_vector(MPI_Comm comm, Vector& to) {
    HYPRE_StructVector vector = nullptr;
    check(HYPRE_StructVectorCreate(comm, grid_.get(), &vector), "StructVectorCreate");
    to.reset(vector);
    check(HYPRE_StructVectorInitialize(vector), "StructVectorInitialize");
    check(HYPRE_StructVectorAssemble(vector), "StructVectorAssemble");
  }

  void make_solver(MPI_Comm comm) {
    HYPRE_StructSolver cg = nullptr, multigrid = nullptr;
    check(HYPRE_StructPFMGCreate(comm, &multigrid), "StructPFMGCreate");
    multigrid_.reset(multigrid);
    std::array<double, 3> spacing{1, 1, 1};
    for (int d = 0; d < dims; ++d) spacing[reversed(d)] = options_.spacing[std::size_t(d)];
    check(HYPRE_StructPFMGSetDxyz(multigrid, spacing.data()), "StructPFMGSetDxyz");
    check(HYPRE_StructPFMGSetMaxIter(multigrid, 1), "StructPFMGSetMaxIter");
    check(HYPRE_StructPFMGSetTol(multigrid, 0), "StructPFMGSetTol");
    check(HYPRE_StructPFMGSetZeroGuess(multigrid), "StructPFMGSetZeroGuess");
    check(HYPRE_StructPCGCreate(comm, &cg), "StructPCGCreate");
    cg_.reset(cg);
    check(HYPRE_StructPCGSetTol(cg, options_.tolerance), "StructPCGSetTol");
    check(HYPRE_StructPCGSetMaxIter(cg, options_.max_iterations), "StructPCGSetMaxIter");
    check(HYPRE_StructPCGSetTwoNorm(cg, 1), "StructPCGSetTwoNorm");
    check(HYPRE_StructPCGSetPrecond(cg, HYPRE_StructPFMGSolve, HYPRE_StructPFMGSetup, multigrid),
          "StructPCGSetPrecond");
    check(HYPRE_StructPCGSetup(cg, matrix_.get(), right_.get(), solution_.get()), "StructPCGSetup");
  }

  X like_;
  Options options_;
  ErrorContext context_;
  Index first_{}, last_{};  ///< of this rank's box, both in it
  bool box_is_empty_ = false;
  HYPRE_Int iterations_ = 0;
  double residual_ = 0;
  detail::Owned<HYPRE_StructGrid, HYPRE_StructGridDestroy> grid_;
  detail::Owned<HYPRE_StructStencil, HYPRE_StructStencilDestroy> stencil_;
  detail::Owned<HYPRE_StructMatrix, HYPRE_StructMatrixDestroy> matrix_;
  detail::Owned<HYPRE_StructVector, HYPRE_StructVectorDestroy> right_, solution_;
  detail::Owned<HYPRE_StructSolver, HYPRE_StructPFMGDestroy> multigrid_;
  detail::Owned<HYPRE_StructSolver, HYPRE_StructPCGDestroy> cg_;
};

}  // namespace cleave::inline v0::hypre
