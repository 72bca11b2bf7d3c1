// PETSc's vectors of DTensors, and Krylov methods on operators written with cleave, against an
// elimination of the whole matrix by loops.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <petscdmda.h>
#include <petscksp.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/interop/petsc.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/stencil/apply.hpp>

#include "cases.hpp"
#include "errors.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace petsc_test {
namespace {

constexpr index_t rows = 7, columns = 6;

/// u - 0.3 Δu: what an implicit step of the heat equation solves.
struct Implicit : Stencil {
  constexpr auto operator()(const auto& u) const {
    return 2.2 * u(0, 0) - 0.3 * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1));
  }
};

double first(index_t i, index_t j) { return std::sin(double(3 * i + 5 * j)) + double(i == j); }

/// The solution by elimination; element (i, j) is at columns · i + j.
std::vector<double> eliminated() {
  constexpr int n = rows * columns;
  std::vector<double> a(n * n, 0.0), x(n);
  for (int i = 0; i < int(rows); ++i)
    for (int j = 0; j < int(columns); ++j) {
      const int row = i * int(columns) + j;
      x[std::size_t(row)] = first(i, j);
      const auto at = [&](int k, int l) -> double& {
        return a[std::size_t(row * n + k * int(columns) + l)];
      };
      at(i, j) = 2.2;
      if (i > 0) at(i - 1, j) = -0.3;
      if (i + 1 < rows) at(i + 1, j) = -0.3;
      if (j > 0) at(i, j - 1) = -0.3;
      if (j + 1 < columns) at(i, j + 1) = -0.3;
    }
  for (int k = 0; k < n; ++k)
    for (int i = k + 1; i < n; ++i) {
      const double factor = a[std::size_t(i * n + k)] / a[std::size_t(k * n + k)];
      for (int j = k; j < n; ++j) a[std::size_t(i * n + j)] -= factor * a[std::size_t(k * n + j)];
      x[std::size_t(i)] -= factor * x[std::size_t(k)];
    }
  for (int i = n - 1; i >= 0; --i) {
    for (int j = i + 1; j < n; ++j)
      x[std::size_t(i)] -= a[std::size_t(i * n + j)] * x[std::size_t(j)];
    x[std::size_t(i)] /= a[std::size_t(i * n + i)];
  }
  return x;
}

void begin_petsc() {
  PetscBool begun = PETSC_FALSE;
  PetscInitialized(&begun);
  if (!begun) PetscInitializeNoArguments();
}

template <class X>
void check_solution(const X& b) {
  const Mat a = petsc::shell(
      b, [](const auto& u, const auto& y) { apply(out(y), Implicit{}, u, edges(zero)); });
  const Vec right = petsc::vec(b);
  const PetscScalar* elements = nullptr;
  VecGetArrayRead(right, &elements);
  CHECK((b.to_local().size() == 0 || elements == b.to_local().data()));
  VecRestoreArrayRead(right, &elements);
  PetscInt size = 0;
  VecGetSize(right, &size);
  CHECK(size == rows * columns);
  Vec solution = nullptr;
  VecDuplicate(right, &solution);
  KSP ksp = nullptr;
  KSPCreate(PetscObjectComm((PetscObject)right), &ksp);
  KSPSetOperators(ksp, a, a);
  KSPSetType(ksp, KSPCG);
  PC preconditioner = nullptr;
  KSPGetPC(ksp, &preconditioner);
  PCSetType(preconditioner, PCNONE);
  KSPSetTolerances(ksp, 1e-13, 1e-13, 1e5, 200);
  CHECK(KSPSolve(ksp, right, solution) == 0);
  KSPConvergedReason reason{};
  KSPGetConvergedReason(ksp, &reason);
  CHECK(reason > 0);
  const std::vector<double> expected = eliminated();
  petsc::with_tensor(solution, b, [&](const auto& x) {
    const auto whole = x.full_tensor();
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        CHECK(std::abs(whole(i, j) - expected[std::size_t(i * columns + j)]) < 1e-11);
  });
  KSPDestroy(&ksp);
  for (Vec v : {right, solution}) VecDestroy(&v);
  Mat destroyed = a;
  MatDestroy(&destroyed);
}

}  // namespace
}  // namespace petsc_test

TEST_CASE("an operator that throws is an error of PETSc, with its text") {
  if (!Processes::get().launched()) return skip("PETSc's ranks are MPI processes");
  petsc_test::begin_petsc();
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto line = init_device_mesh<axes::dp>(world, {world.size()});
    const auto b = ones<double>({7, 6}, line, Shard<0>{});
    static std::string text;
    text.clear();
    PetscPushErrorHandler(
        [](MPI_Comm, int, const char*, const char*, PetscErrorCode code, PetscErrorType,
           const char* message, void*) {
          if (message != nullptr && text.empty()) text = message;
          return code;
        },
        nullptr);
    Mat a = petsc::shell(b, [](const auto& u, const auto&) {
      if (u.extent(0) == 7) throw Error("example", "seven rows");
    });
    Vec x = petsc::vec(b), y = petsc::vec(add(b, 0.0));
    CHECK(MatMult(a, x, y) != 0);
    CHECK(contains(text, "example: seven rows"));
    PetscPopErrorHandler();
    const auto other = ones<double>({7, 8}, line, Shard<0>{});
    CHECK(contains(error_of([&] { petsc::with_tensor(x, other, [](const auto&) {}); }),
                   "petsc::with_tensor: the vector has "));
    VecDestroy(&x);
    VecDestroy(&y);
    MatDestroy(&a);
  });
}

TEST_CASE("KSP solves an operator written with cleave, in the memory of DTensors") {
  if (!Processes::get().launched()) return skip("PETSc's ranks are MPI processes");
  petsc_test::begin_petsc();  // by all processes
  on_ranks({1, 2, 3, 4}, [](World& world) {
    Tensor<double, 2> whole({petsc_test::rows, petsc_test::columns});
    for (index_t i = 0; i < petsc_test::rows; ++i)
      for (index_t j = 0; j < petsc_test::columns; ++j) whole(i, j) = petsc_test::first(i, j);
    const auto line = init_device_mesh<axes::dp>(world, {world.size()});
    petsc_test::check_solution(distribute_tensor(whole, line, Shard<0>{}));
    petsc_test::check_solution(distribute_tensor(whole, line, Shard<1>{}));
    petsc_test::check_solution(distribute_tensor(whole, line, Balanced<0>{}));
    const index_t two = world.size() % 2 == 0 ? 2 : 1;
    const auto grid = init_device_mesh<axes::row, axes::col>(world, {two, world.size() / two});
    petsc_test::check_solution(distribute_tensor(whole, grid, Shard<0>{}, Shard<1>{}));
  });
}

TEST_CASE("the global vector of a DMDA is a DTensor with the same indices") {
  if (!Processes::get().launched()) return skip("PETSc's ranks are MPI processes");
  petsc_test::begin_petsc();
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const int up = world.size() % 2 == 0 ? 2 : 1, across = world.size() / up;
    const auto grid = init_device_mesh<axes::row, axes::col>(world, {up, across});
    for (const int dof : {1, 3}) {
      DM da = nullptr;
      DMDACreate2d(mpi_handle(world.communicator()), DM_BOUNDARY_NONE, DM_BOUNDARY_NONE,
                   DMDA_STENCIL_STAR, 11, 7, across, up, dof, 1, nullptr, nullptr, &da);
      DMSetUp(da);
      Vec global = nullptr;
      DMCreateGlobalVector(da, &global);
      PetscScalar*** x = nullptr;
      DMDAVecGetArrayDOF(da, global, &x);
      PetscInt i0 = 0, j0 = 0, width = 0, height = 0;
      DMDAGetCorners(da, &i0, &j0, nullptr, &width, &height, nullptr);
      for (PetscInt j = j0; j < j0 + height; ++j)
        for (PetscInt i = i0; i < i0 + width; ++i)
          for (int k = 0; k < dof; ++k) x[j][i][k] = double(100 * j + 10 * k + i);
      DMDAVecRestoreArrayDOF(da, global, &x);
      const auto like = empty<double>({7, 11, dof}, grid, Balanced<0>{}, Balanced<1>{});
      petsc::with_tensor(global, like, [&](const auto& u) {
        CHECK(u.local_box().begin[0] == j0);
        CHECK(u.local_box().begin[1] == i0);
        const auto whole = u.full_tensor();
        for (index_t j = 0; j < 7; ++j)
          for (index_t i = 0; i < 11; ++i)
            for (index_t k = 0; k < dof; ++k) CHECK(whole(j, i, k) == double(100 * j + 10 * k + i));
      });
      VecDestroy(&global);
      DMDestroy(&da);
    }
  });
}
