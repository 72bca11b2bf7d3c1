// DTensors in .npy files: bytes as the local save_npy writes them, under any placements of either
// side; errors on all ranks; the end of the program at any moment.
#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/interop/parallel_npy.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "errors.hpp"
#include "ranks.hpp"
#include "shared_file.hpp"

using namespace cleave;
using cleave::testing::contains;
using cleave::testing::error_of;
using cleave::testing::SharedFile;
using namespace cleave::axes;

namespace shared_files {
namespace {

template <class T, int Rank>
Tensor<T, Rank> numbered(const std::array<index_t, std::size_t(Rank)>& shape) {
  const Tensor<T, Rank> x(shape);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = T(float(i % 251));
  return x;
}

/// What the file of an array must be: a header as NumPy writes it, and the elements.
template <class T, int Rank>
std::string expected(const Tensor<T, Rank>& x, const std::string& descr, const std::string& shape) {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  text.resize((text.size() + 11 + 63) / 64 * 64 - 11, ' ');
  text = std::string("\x93NUMPY\x01\0", 8) + char(text.size() + 1) + '\0' + text + '\n';
  return text +
         std::string(reinterpret_cast<const char*>(x.data()), std::size_t(x.size()) * sizeof(T));
}

/// Saves under the placements A, loads under B.
template <class A, class B, class T, int Rank, class Mesh>
void check(World& world, const Mesh& mesh, const Tensor<T, Rank>& x, const std::string& descr,
           const std::string& shape) {
  CAPTURE(to_string(layout_of<A, Rank>));
  CAPTURE(to_string(layout_of<B, Rank>));
  CAPTURE(shape);
  const SharedFile file(world);
  const auto distributed = distribute_tensor(x, mesh, A{});
  save_npy(file.path, distributed);
  CHECK(file.bytes() == expected(x, descr, shape));
  CHECK(!std::filesystem::exists(file.path + ".partial"));
  const auto back = load_npy<T, Rank>(file.path, mesh, B{});
  CHECK(back.shape() == x.shape());
  const auto same = distribute_tensor(x, mesh, B{}).to_local();
  REQUIRE(back.to_local().shape() == same.shape());
  CHECK(std::equal(same.data(), same.data() + same.size(), back.to_local().data()));
  world.barrier();
}

using RR = Placements<Replicate, Replicate>;
using S00 = Placements<Shard<0>, Shard<0>>;
using S10 = Placements<Shard<1>, Shard<0>>;
using RS1 = Placements<Replicate, Shard<1>>;
using S0R = Placements<Shard<0>, Replicate>;
using Dealt = Placements<BlockCyclic<0, 2>, BlockCyclic<1, 3>>;
using Other = Placements<Owned<1, 0>, Balanced<1>>;

}  // namespace

TEST_CASE("a file has NumPy's bytes, whatever the placements, and is read under any others") {
  on_ranks({1, 2, 4}, [](World& world) {
    const index_t n = world.size();
    const auto mesh = init_device_mesh<row, col>(world, {n == 4 ? 2 : n, n == 4 ? 2 : 1});
    const auto x = numbered<double, 2>({5, 7});
    check<RR, S10>(world, mesh, x, "<f8", "(5, 7)");
    check<S10, Dealt>(world, mesh, x, "<f8", "(5, 7)");
    check<S00, RS1>(world, mesh, x, "<f8", "(5, 7)");
    check<Dealt, S00>(world, mesh, x, "<f8", "(5, 7)");
    if (n > 1) check<Other, Other>(world, mesh, x, "<f8", "(5, 7)");
    const auto dealt =
        distribute_tensor(x, mesh, S00{}).redistribute(BlockCyclic<1>(2), Shard<0>{});
    const auto cut = distribute_tensor(x, mesh, S00{})
                         .redistribute(Cuts<0>(n == 1 ? std::vector<index_t>{0, 5}
                                                      : std::vector<index_t>{0, 1, 5}),
                                       Replicate{});
    const SharedFile file(world);
    save_npy(file.path, dealt);
    CHECK(file.bytes() == expected(x, "<f8", "(5, 7)"));
    world.barrier();
    save_npy(file.path, cut);
    CHECK(file.bytes() == expected(x, "<f8", "(5, 7)"));
    world.barrier();
    check<S10, S00>(world, mesh, numbered<double, 2>({1, 3}), "<f8", "(1, 3)");
    check<S0R, S0R>(world, mesh, numbered<double, 2>({0, 4}), "<f8", "(0, 4)");
    check<RR, RR>(world, mesh, Tensor<half, 0>({}, {half(3)}), "<f2", "()");
    check<S00, RR>(world, mesh, numbered<std::complex<float>, 1>({6}), "<c8", "(6,)");
    check<RS1, S10>(world, mesh, numbered<std::int8_t, 3>({2, 3, 4}), "|i1", "(2, 3, 4)");
    check<S0R, RS1>(world, mesh, Tensor<bool, 2>({2, 2}, {true, false, false, true}), "|b1",
                    "(2, 2)");
  });
}

TEST_CASE("long runs are written and read in place, also of blocks and by replicas") {
  on_ranks({1, 4}, [](World& world) {
    const index_t n = world.size() == 4 ? 2 : 1;
    const auto mesh = init_device_mesh<row, col>(world, {n, n});
    const auto x = numbered<float, 3>({3, 2, 140000});  // a run of 70000 floats is 280 kB
    check<Placements<Shard<2>, Replicate>, Placements<BlockCyclic<1, 1>, Shard<0>>>(
        world, mesh, x, "<f4", "(3, 2, 140000)");
    check<Placements<BlockCyclic<0, 2>, Replicate>, Placements<Replicate, BlockCyclic<2, 70000>>>(
        world, mesh, x, "<f4", "(3, 2, 140000)");
  });
}

TEST_CASE("files in Fortran order are read under any placements") {
  on_ranks({1, 2, 4}, [](World& world) {
    const index_t n = world.size();
    const auto mesh = init_device_mesh<row, col>(world, {n == 4 ? 2 : n, n == 4 ? 2 : 1});
    const SharedFile file(world);
    if (world.rank() == 0) {
      std::string bytes = expected(numbered<double, 2>({7, 5}), "<f8", "(5, 7)");
      bytes.replace(bytes.find("False"), 5, "True ");
      std::ofstream(file.path, std::ios::binary) << bytes;
    }
    world.barrier();
    const auto x = load_npy<double, 2>(file.path, mesh, Shard<1>{}, Shard<0>{});
    const auto full = x.full_tensor();
    for (index_t i = 0; i < 5; ++i)
      for (index_t j = 0; j < 7; ++j) CHECK(full(i, j) == double(j * 5 + i));
  });
}

TEST_CASE("a rank that cannot read or write stops all of them, and leaves the old file") {
  on_ranks({1, 3}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {index_t(world.size())});
    const auto x = distribute_tensor(numbered<double, 1>({8}), mesh, Shard<0>{});
    CHECK(contains(error_of([&] { save_npy("/nowhere/x.npy", x); }), "/nowhere/x.npy"));
    CHECK(contains(error_of([&] { load_npy<double, 1>("/nowhere/x.npy", mesh, Shard<0>{}); }),
                   "load_npy: '/nowhere/x.npy' cannot be opened"));
    const SharedFile file(world);
    save_npy(file.path, x);
    CHECK(contains(error_of([&] { load_npy<float, 1>(file.path, mesh, Shard<0>{}); }),
                   "has elements of type float64, not float32"));
    CHECK(contains(error_of([&] { load_npy<double, 2>(file.path, mesh, Shard<0>{}); }),
                   "has 1 dimensions [8], not 2"));
    const std::string before = file.bytes();
    if (world.rank() == 0) std::filesystem::create_directory(file.path + ".partial");
    world.barrier();
    CHECK(contains(error_of([&] { save_npy(file.path, x); }),
                   world.rank() == 0 ? ".partial cannot be opened: Is a directory"
                                     : "another rank could not write"));
    CHECK(file.bytes() == before);
    world.barrier();
    if (world.rank() == 0) std::filesystem::remove(file.path + ".partial");
    world.barrier();
  });
}

// Run by files_killed.py, which kills it.
TEST_CASE("saves two arrays in turn until it is killed" * doctest::skip()) {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    const auto save = [&](double value) {
      const Tensor<double, 2> x({300, 1000});
      x.fill_(value);
      save_npy(std::getenv("CLEAVE_TEST_FILE"), distribute_tensor(x, mesh, Shard<1>{}));
    };
    for (int i = 0;; ++i) save(i % 2);
  });
}

}  // namespace shared_files
