// Matrices that ScaLAPACK and cleave share: index arithmetic, pointers, products and errors.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/from_local.hpp>
#include <cleave/interop/scalapack.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/placement/ownership.hpp>

#include "errors.hpp"
#include "naive.hpp"
#include "processes.hpp"
#include "ranks.hpp"

extern "C" {
int numroc_(const int* n, const int* block, const int* part, const int* first, const int* parts);
int indxl2g_(const int* local, const int* block, const int* part, const int* first,
             const int* parts);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void pdgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k,
             const double* alpha, const double* a, const int* ia, const int* ja, const int* da,
             const double* b, const int* ib, const int* jb, const int* db, const double* beta,
             double* c, const int* ic, const int* jc, const int* dc);
}

using namespace cleave;
using cleave::testing::error_of;
using cleave::testing::Processes;
using namespace cleave::axes;

namespace shared_matrices {
namespace {

/// Runs a case if ranks are processes, between which ScaLAPACK communicates.
template <class F>
void on_processes(std::initializer_list<int> counts, const F& body) {
  if (Processes::get().launched()) on_ranks(counts, body);
  else skip("ScaLAPACK's ranks are MPI processes");
}

/// What this rank owns of the array whose element [i, j] is f(i, j).
template <class X, class F>
X filled(const typename X::mesh_type& mesh, const std::array<index_t, 2>& shape, const F& f) {
  const naive::Indices extents = naive::to_indices(mesh.extents()),
                       at = naive::to_indices(mesh.coordinate());
  const naive::Indices global{shape[0], shape[1]};
  const auto count = [&](int d) {
    return index_t(naive::owned(X::layout, d, global, extents, at).size());
  };
  const typename X::local_type local({count(0), count(1)});
  index_t n = 0;
  for (const naive::Indices& index : naive::elements(X::layout, global, extents, at))
    local.data()[n++] = f(index[0], index[1]);
  return X::unchecked(local, mesh, shape);
}

double left(index_t i, index_t j) { return double((i * 7 + j * 3) % 11 - 5); }
double right(index_t i, index_t j) { return double((i * 5 + j * 13) % 9 - 4); }

/// c = a b of so many rows, columns and contracted indices, by PBLAS on the DTensors' own memory.
template <class Mesh, class P>
void check_product(const Mesh& mesh, P placements, index_t m, index_t n, index_t k) {
  using X = DTensor<double, 2, Mesh, normalized_t<P, 2>>;
  CAPTURE(to_string(placements));
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  const X a = filled<X>(mesh, {m, k}, left), b = filled<X>(mesh, {k, n}, right),
          c = filled<X>(mesh, {m, n}, [](index_t, index_t) { return -1.; });
  const auto da = scalapack::descriptor(a), db = scalapack::descriptor(b),
             dc = scalapack::descriptor(c);
  const int first = 1, rows = int(m), columns = int(n), inner = int(k);
  const double one = 1, zero = 0;
  pdgemm_("N", "N", &columns, &rows, &inner, &one, b.to_local().data(), &first, &first, db.data(),
          a.to_local().data(), &first, &first, da.data(), &zero, c.to_local().data(), &first,
          &first, dc.data());
  const X expected = filled<X>(mesh, {m, n}, [k](index_t i, index_t j) {
    double sum = 0;
    for (index_t l = 0; l < k; ++l) sum += left(i, l) * right(l, j);
    return sum;
  });
  bool same = true;
  for (index_t i = 0; i < c.to_local().size(); ++i)
    same = same && c.to_local().data()[i] == expected.to_local().data()[i];
  CHECK(same);
}

}  // namespace

TEST_CASE("ScaLAPACK's arithmetic of indices is that of BlockCyclic and of Shard") {
  std::uint64_t state = 20261127;
  const auto below = [&state](int most) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return int((state >> 33) % std::uint64_t(most));
  };
  int wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    const int n = below(below(3) == 0 ? 4 : 3000), parts = 1 + below(9), part = below(parts);
    const bool chunks = below(4) == 0;
    const int block = chunks ? (n + parts - 1 > 0 ? (n + parts - 1) / parts : 0) : 1 + below(70);
    const int zero = 0, dealt = block < 1 ? 1 : block;
    const DimCut cut(n, parts, chunks ? Placement::shard(0) : Placement::block_cyclic(0, block));
    const int size = numroc_(&n, &dealt, &part, &zero, &parts);
    if (size != cut.size(part)) ++wrong;
    if (size == 0) continue;
    const int local = below(size), counted = local + 1;
    const int global = indxl2g_(&counted, &dealt, &part, &zero, &parts) - 1;
    const DimCut::Place place = cut.place(global);
    if (global != cut.global(part, local) || place.part != part || place.local != local) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("PBLAS multiplies DTensors in place: block-cyclic ones, ceil-chunks, and empty parts") {
  on_processes({1, 2, 3, 4}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    for (const auto& [m, n, k] : {std::tuple{7, 5, 6}, {1, 3, 2}, {13, 32, 29}, {2, 1, 1}}) {
      check_product(line, Placements<BlockCyclic<0, 2>>{}, m, n, k);
      check_product(line, Placements<BlockCyclic<1, 3>>{}, m, n, k);
      check_product(line, Placements<Replicate>{}, m, n, k);
    }
    if (world.size() % 2 != 0) return;
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    for (const auto& [m, n, k] : {std::tuple{7, 5, 6}, {1, 3, 2}, {13, 32, 29}, {2, 1, 1}}) {
      check_product(mesh, Placements<BlockCyclic<0, 2>, BlockCyclic<1, 2>>{}, m, n, k);
      check_product(mesh, Placements<BlockCyclic<1, 3>, BlockCyclic<0, 3>>{}, m, n, k);
      check_product(mesh, Placements<BlockCyclic<0, 2>, BlockCyclic<0, 2>>{}, m, n, k);
      check_product(mesh, Placements<BlockCyclic<1, 64>, Replicate>{}, m, n, k);
    }
    for (const index_t n : {1, 3, 7, 32})  // blocks of equal length along contracted dimensions
      check_product(mesh, Placements<Shard<0>, Shard<1>>{}, n, n, n);
  });
}

TEST_CASE("arrays of ScaLAPACK become DTensors and arrays again at the same address") {
  on_processes({1, 2, 4}, [](World& world) {
    const int columns = world.size() == 1 ? 1 : 2, rows = world.size() / columns;
    const auto mesh = init_device_mesh<dp, tp>(world, {rows, columns});
    int context = Csys2blacs_handle(mpi_handle(mesh.communicator()));
    Cblacs_gridinit(&context, "Row", rows, columns);
    int p = 0, q = 0, row = 0, column = 0;
    Cblacs_gridinfo(context, &p, &q, &row, &column);
    const int m = 7, n = 8, mb = 2, nb = 3, zero = 0;
    const int height = numroc_(&m, &mb, &row, &zero, &rows),
              width = numroc_(&n, &nb, &column, &zero, &columns);
    const int leading = height + 2;  // a gap between columns
    std::vector<double> part(std::size_t(leading * width), -1);
    for (int j = 0; j < width; ++j)
      for (int i = 0; i < height; ++i) {
        const int li = i + 1, lj = j + 1;
        part[std::size_t(i + j * leading)] = left(indxl2g_(&li, &mb, &row, &zero, &rows) - 1,
                                                  indxl2g_(&lj, &nb, &column, &zero, &columns) - 1);
      }
    const scalapack::Descriptor described{1, context, m, n, mb, nb, 0, 0, leading};
    const auto x =
        scalapack::adopt<BlockCyclic<1, mb>, BlockCyclic<0, nb>>(part.data(), described, mesh);
    CHECK(x.to_local().data() == part.data());
    CHECK(x.shape() == std::array<index_t, 2>{n, m});
    const auto whole = x.full_tensor();
    bool same = true;
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < m; ++i) same = same && whole.data()[j * m + i] == left(i, j);
    CHECK(same);
    const auto back = scalapack::descriptor(x);
    CHECK(back[1] != context);                      // the mesh's own, of the same grid
    CHECK(scalapack::descriptor(x)[1] == back[1]);  // made once
    int own[4] = {};
    Cblacs_gridinfo(back[1], own, own + 1, own + 2, own + 3);
    CHECK(std::array{own[0], own[1], own[2], own[3]} == std::array{rows, columns, row, column});
    auto expected = described;
    expected[1] = back[1];
    CHECK(back == expected);

    const auto error = [&](const scalapack::Descriptor& wrong) {
      const std::string text = error_of([&] {
        scalapack::adopt<BlockCyclic<1, mb>, BlockCyclic<0, nb>>(part.data(), wrong, mesh);
      });
      return text.substr(0, text.find(" ["));
    };
    auto wrong = described;
    wrong[4] = 5;
    CHECK(error(wrong) ==
          "scalapack::adopt: the descriptor has blocks of 5 x 3, these placements of 2 x 3");
    wrong = described, wrong[6] = 1;
    CHECK(error(wrong) == "scalapack::adopt: the first block must be on process (0, 0)");
    wrong = described, wrong[8] = 1;
    if (height > 1) CHECK(error(wrong).starts_with("scalapack::adopt: LLD_ is 1, this rank has"));
    if (world.size() > 1) {
      int turned = Csys2blacs_handle(mpi_handle(mesh.communicator()));
      const int handle = turned;
      Cblacs_gridinit(&turned, "Row", columns * rows, 1);
      wrong = described, wrong[1] = turned;
      CHECK(error(wrong) == "scalapack::adopt: the grid of the descriptor is " +
                                std::to_string(world.size()) + " x 1, the ranks are " +
                                std::to_string(rows) + " x " + std::to_string(columns));
      Cblacs_gridexit(turned), Cfree_blacs_system_handle(handle);
    }
    Cblacs_gridexit(context);
  });
}

TEST_CASE("a descriptor of a view whose rows are not contiguous is refused on all ranks") {
  on_processes({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    using X = DTensor<double, 2, DeviceMesh<Host, tp>, Placements<Shard<0>>>;
    // one row per rank but the last, which has none
    const X x = filled<X>(mesh, {world.size() > 1 ? world.size() - 1 : 1, 2}, left);
    auto columns = x.to_local();
    if (world.rank() == 0) columns = Tensor<double, 2>({2, 2}).transpose(0, 1).slice(0, 0, 1);
    const auto strided = X::unchecked(columns, mesh, x.shape());
    const std::string text = error_of([&] { scalapack::descriptor(strided); });
    CHECK(text.starts_with("scalapack::descriptor: the rows of rank 0 are not contiguous"));
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("ranks that are threads have no descriptors") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2});
    using X = DTensor<double, 2, DeviceMesh<Host, tp>, Placements<Shard<0>>>;
    const X x = filled<X>(mesh, {3, 2}, left);
    CHECK(error_of([&] { scalapack::descriptor(x); }).find("by 'thread', not by MPI") !=
          std::string::npos);
  });
}

TEST_SUITE_END();

}  // namespace shared_matrices
