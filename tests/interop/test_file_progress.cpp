// FileProgress: what it reports of each kind of file, and that it stops all ranks.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/core/file_progress.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/interop/hdf5.hpp>
#include <cleave/interop/netcdf.hpp>
#include <cleave/interop/parallel_npy.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/nn/checkpoint.hpp>
#include <cleave/nn/save_safetensors.hpp>

#include "errors.hpp"
#include "processes.hpp"
#include "ranks.hpp"
#include "shared_file.hpp"

using namespace cleave;
using cleave::testing::contains;
using cleave::testing::error_of;
using cleave::testing::Processes;
using cleave::testing::SharedFile;
using namespace cleave::axes;

namespace file_progress {
namespace {

constexpr std::uint64_t mega = std::uint64_t(1) << 20;
using Reports = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// The reports during f().
template <class F>
Reports reports_of(const F& f) {
  Reports found;
  const FileProgress progress(
      [&](std::uint64_t done, std::uint64_t all) { found.emplace_back(done, all); });
  f();
  return found;
}

/// Ascending numbers of this many bytes, at most 12 MiB apart, up to all of them.
void check_reports(const Reports& found, std::uint64_t bytes) {
  REQUIRE(found.empty() == (bytes == 0));
  std::uint64_t before = 0;
  for (const auto& [done, all] : found) {
    CHECK(all == bytes);
    CHECK(done > before);
    CHECK(done - before <= 12 * mega);
    before = done;
  }
  CHECK(before == bytes);
}

/// The error of f() if the second report of one rank throws.
template <class F>
std::string stopped(World& world, const F& f) {
  int count = 0;
  const FileProgress progress([&](std::uint64_t, std::uint64_t) {
    if (++count == 2 && world.rank() + 1 == world.size()) throw std::runtime_error("cancelled");
  });
  return error_of(f);
}

void check_stopped(World& world, const std::string& message) {
  CHECK(contains(message, world.rank() + 1 == world.size() ? "stopped by FileProgress: cancelled"
                                                           : "another rank"));
}

template <class X>
struct State {
  X x;
  static constexpr nn::names members{"x"};
};

/// Writes, reads and stops files of HDF5 or NetCDF. @param write  (file, name, array, options)
template <class Create, class Open, class Write>
void check_file(World& world, const Create& create, const Open& open, const Write& write) {
  const auto mesh = init_device_mesh<row>(world, {world.size()});
  const std::array<index_t, 2> shape{10007, 500};  // 38 MiB
  const auto x = full<double>({shape[0], shape[1]}, 3, mesh, Shard<0>{});
  const auto bytes = std::uint64_t(x.to_local().size()) * 8;
  const SharedFile file(world, ".file");
  auto f = create(file.path, mesh);
  check_reports(reports_of([&] { write(f, "x", x, {}); }), bytes);
  const Reports compressed =
      reports_of([&] { write(f, "y", x, {.chunk = {100, 500}, .deflate = 1}); });
  CHECK(compressed == Reports{{bytes, bytes}});
  f.close();
  const auto g = open(file.path, mesh);
  const index_t columns = shard_range(shape[1], world.size(), world.rank()).size();
  const auto read = [&] {
    const auto y = g.template read<double, 2>("x", mesh, Shard<1>{}).to_local();
    CHECK(std::all_of(y.data(), y.data() + y.size(), [](double value) { return value == 3; }));
  };
  check_reports(reports_of(read), std::uint64_t(shape[0] * columns) * 8);
  check_stopped(world, stopped(world, read));
  read();
  const auto before = std::filesystem::last_write_time(file.path);
  auto again = create(file.path, mesh);
  check_stopped(world, stopped(world, [&] { write(again, "x", x, {}); }));
  CHECK(contains(error_of([&] { again.close(); }), "is discarded"));
  world.barrier();
  CHECK(!std::filesystem::exists(file.path + ".partial"));
  CHECK(std::filesystem::last_write_time(file.path) == before);
  world.barrier();
}

}  // namespace

TEST_CASE("npy and safetensors files report their bytes, and are stopped without a trace") {
  on_ranks({1, 3}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const auto x = zeros<double>({6, 750, 1000}, mesh, Shard<0>{});  // 34 MiB
    const auto bytes = std::uint64_t(x.to_local().size()) * 8;
    const SharedFile file(world);
    check_reports(reports_of([&] { save_npy(file.path, x); }), bytes);
    const auto load = [&] { load_npy<double, 3>(file.path, mesh, Shard<1>{}); };
    check_reports(reports_of(load),
                  std::uint64_t(shard_range(750, world.size(), world.rank()).size()) * 48000);
    const auto modified = std::filesystem::last_write_time(file.path);
    check_stopped(world, stopped(world, [&] { save_npy(file.path, x); }));
    check_stopped(world, stopped(world, load));
    check_stopped(world, stopped(world, [&] { nn::save_safetensors(file.path, "x", x); }));
    world.barrier();  // the first rank removes files
    CHECK(std::filesystem::last_write_time(file.path) == modified);
    CHECK(!std::filesystem::exists(file.path + ".partial"));
    world.barrier();
    check_reports(reports_of([&] { nn::save_safetensors(file.path, "x", x); }), bytes);
    world.barrier();
  });
}

TEST_CASE("checkpoints report their bytes, and are stopped without a trace") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const auto x = zeros<double>({40, 100000}, mesh, Shard<0>{});  // 31 MiB
    const State<std::remove_const_t<decltype(x)>> module{x};
    const auto bytes = std::uint64_t(module.x.to_local().size()) * 8;
    const nn::StateDict state = nn::state_dict(module);
    const SharedFile file(world, ".d");
    check_stopped(world, stopped(world, [&] { nn::save_checkpoint(world, file.path, state); }));
    CHECK(!std::filesystem::exists(file.path));
    check_reports(reports_of([&] { nn::save_checkpoint(world, file.path, state); }), bytes);
    CHECK(reports_of([&] { nn::load_checkpoint(file.path, state); }) == Reports{{bytes, bytes}});
    world.barrier();
    if (world.rank() == 0) std::filesystem::remove_all(file.path);
    world.barrier();
  });
}

TEST_CASE("what any file reports is heard by the innermost FileProgress of a thread") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {1});
    const auto x = zeros<float>({4}, mesh, Shard<0>{});
    const SharedFile file(world);
    Reports inner;
    const Reports outer = reports_of([&] {
      inner = reports_of([&] { save_npy(file.path, x); });
      save_npy(file.path, zeros<float>({0}, mesh, Shard<0>{}));  // nothing to report
      save_npy(file.path, x);
    });
    CHECK(inner == Reports{{16, 16}});
    CHECK(outer == Reports{{16, 16}});
    const FileProgress progress([](auto, auto) { throw Error("a test", "its own text"); });
    CHECK(contains(error_of([&] { save_npy(file.path, x); }), "its own text"));
  });
}

#if CLEAVE_HAS_HDF5
TEST_CASE("HDF5 files report their bytes, and are stopped on all ranks") {
  if (!Processes::get().launched()) return skip("the ranks of an HDF5 file are MPI processes");
  on_ranks({2, 3}, [](World& world) {
    check_file(
        world, [](const auto&... to) { return hdf5::create(to...); },
        [](const auto&... from) { return hdf5::open(from...); },
        [](hdf5::File& f, const std::string& name, const auto& x, const hdf5::WriteOptions& how) {
          f.write(name, x, how);
        });
  });
}
#endif

#if CLEAVE_HAS_NETCDF
TEST_CASE("NetCDF files report their bytes, and are stopped on all ranks") {
  if (!Processes::get().launched()) return skip("the ranks of a NetCDF file are MPI processes");
  on_ranks({2, 3}, [](World& world) {
    check_file(
        world, [](const auto&... to) { return netcdf::create(to...); },
        [](const auto&... from) { return netcdf::open(from...); },
        [](netcdf::File& f, const std::string& name, const auto& x,
           const netcdf::WriteOptions& how) { f.write(name, x, {"y", "x"}, how); });
  });
}
#endif

}  // namespace file_progress
