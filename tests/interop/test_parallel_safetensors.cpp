// One DTensor in a safetensors file, which all ranks write, and read under any placements.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/nn/checkpoint.hpp>
#include <cleave/nn/save_safetensors.hpp>

#include "errors.hpp"
#include "known_arrays.hpp"
#include "naive.hpp"
#include "ranks.hpp"
#include "shared_file.hpp"

using namespace cleave;
using cleave::testing::contains;
using cleave::testing::error_of;
using cleave::testing::SharedFile;
using namespace cleave::axes;

namespace safetensors_files {
namespace {

using namespace known_arrays;

template <class X>
struct Holder {
  X x;
  static constexpr nn::names members{"x"};
};
template <class X>
Holder(X) -> Holder<X>;

/// Loads the array `x` of a file under some placements.
template <class T, int Rank, class Mesh, class... P>
auto load(const std::string& path, const Mesh& mesh,
          const std::array<index_t, std::size_t(Rank)>& shape, const Placements<P...>& p) {
  const Holder held{filled<T, Rank>(mesh, shape, p)};
  if (held.x.to_local().size() > 0) held.x.to_local().fill_(T(1));
  nn::load_checkpoint(path, nn::state_dict(held));
  return held.x;
}

}  // namespace

TEST_CASE("a safetensors file written by four ranks is read by three, in long runs and in short") {
  on_ranks({4}, [](World& world) {
    const auto four = init_device_mesh<row, col>(world, {2, 2});
    const auto three = init_device_mesh<dp>(world, {3}, std::vector<int>{3, 0, 2});
    const auto check = [&](const std::array<index_t, 2>& shape, const auto& a, const auto& b) {
      CAPTURE(to_string(Shape(shape)));
      const SharedFile file(world, ".safetensors");
      nn::save_safetensors(file.path, "x", filled<float, 2>(four, shape, a));
      world.barrier();
      const auto x = load<float, 2>(file.path, three, shape, b);
      if (three.is_member()) check_elements(x);
      check_elements(load<float, 2>(file.path, four, shape, a));
      world.barrier();
    };
    const Placements<Shard<0>, Shard<1>> blocks;
    const Placements<Shard<0>, Replicate> rows;
    const Placements<BlockCyclic<0, 2>, BlockCyclic<1, 3>> dealt;
    for (const std::array<index_t, 2>& shape :
         {std::array<index_t, 2>{7, 11}, {7, 54000}, {2, 70000}}) {
      check(shape, blocks, Placements<Shard<1>>{});
      check(shape, rows, Placements<BlockCyclic<0, 2>>{});
      check(shape, dealt, Placements<Shard<0>>{});
      check(shape, rows, Placements<Replicate>{});
    }
  });
}

TEST_CASE("a safetensors file that is too short is an error, also where it is read in place") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    const SharedFile file(world, ".safetensors");
    nn::save_safetensors(file.path, "x", filled<float, 1>(mesh, {40000}, Placements<Shard<0>>{}));
    world.barrier();
    if (world.rank() == 0) std::filesystem::resize_file(file.path, 100000);
    world.barrier();
    CHECK(contains(
        error_of([&] { load<float, 1>(file.path, mesh, {40000}, Placements<Shard<0>>{}); }),
        "is truncated"));
    world.barrier();
  });
}

// The following cases are run by files_killed.py and safetensors_files.py.

TEST_CASE("saves two safetensors files in turn until it is killed" * doctest::skip()) {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    for (int i = 0;; ++i)
      nn::save_safetensors(std::getenv("CLEAVE_TEST_FILE"), "x",
                           full<double>({300, 1000}, i % 2, mesh, Shard<1>{}));
  });
}

TEST_CASE("reads a safetensors file of Python, and writes one for it" * doctest::skip()) {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {3});
    const std::string path = std::getenv("CLEAVE_TEST_FILE");
    const std::array<index_t, 2> shape{5, 54000};
    const auto x = load<float, 2>(path, mesh, shape, Placements<Shard<1>>{});
    check_elements(x);
    check_elements(load<float, 2>(path, mesh, shape, Placements<Shard<0>>{}));
    nn::save_safetensors(path + ".again", "x", x.redistribute(BlockCyclic<0, 2>{}));
  });
}

}  // namespace safetensors_files
