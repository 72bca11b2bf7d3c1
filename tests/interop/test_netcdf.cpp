// DTensors in NetCDF files: values under any placements of either side, records, element types,
// attributes, errors on all ranks, the end of the program at any moment.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/interop/netcdf.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "array_files.hpp"
#include "errors.hpp"
#include "known_arrays.hpp"
#include "naive.hpp"
#include "processes.hpp"
#include "ranks.hpp"
#include "shared_file.hpp"

using namespace cleave;
using cleave::testing::contains;
using cleave::testing::error_of;
using cleave::testing::Processes;
using cleave::testing::SharedFile;
using namespace cleave::axes;

namespace netcdf_files {
namespace {

using namespace known_arrays;

struct Netcdf {
  static constexpr const char *name = "netcdf", *ending = ".nc";
  static auto create(const std::string& path, const auto& mesh) {
    return netcdf::create(path, mesh);
  }
  static auto open(const std::string& path, const auto& mesh) { return netcdf::open(path, mesh); }
  static void write(netcdf::File& file, const char* array, const auto& x) {
    file.write(array, x, {"j", "i"});
  }
};

/// Writes under the placements a, reads under b.
template <class T, int Rank, class Mesh, class A, class B>
void check_pair(World& world, const Mesh& mesh, const std::array<index_t, std::size_t(Rank)>& shape,
                const A& a, const B& b, const netcdf::WriteOptions& options = {}) {
  CAPTURE(to_string(layout_of<normalized_t<A, Rank>, Rank>));
  CAPTURE(to_string(layout_of<normalized_t<B, Rank>, Rank>));
  CAPTURE(to_string(Shape(shape)));
  std::array<std::string, std::size_t(Rank)> dims;
  for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = std::string(1, char('x' - d));
  const SharedFile file(world, ".nc");
  auto written = netcdf::create(file.path, mesh);
  written.write("in/here/v", filled<T, Rank>(mesh, shape, a), dims, options);
  written.close();
  CHECK(!std::filesystem::exists(file.path + ".partial"));
  const auto read = netcdf::open(file.path, mesh);
  const netcdf::Variable found = read.variable("in/here/v");
  CHECK(found.shape == Shape(shape));
  CHECK(found.dtype == dtype_of<T>());
  CHECK(found.dims == std::vector<std::string>(dims.begin(), dims.end()));
  CHECK(!found.has_records);
  CHECK(read.names() == std::vector<std::string>{"in/here/v"});
  const auto x = read.template read<T, Rank>("in/here/v", mesh, b);
  CHECK(Shape(x.shape()) == Shape(shape));
  check_elements(x);
}

using RR = Placements<Replicate, Replicate>;
using S00 = Placements<Shard<0>, Shard<0>>;
using S10 = Placements<Shard<1>, Shard<0>>;
using RS1 = Placements<Replicate, Shard<-1>>;
using Dealt = Placements<BlockCyclic<0, 2>, BlockCyclic<1, 3>>;
using Other = Placements<Owned<1, 0>, Balanced<1>>;

}  // namespace

TEST_CASE("a NetCDF file has the array, whatever the placements on either side") {
  between_processes({1, 2, 3, 4}, [](World& world) {
    const index_t n = world.size(), rows = n == 4 ? 2 : n;
    const auto mesh = init_device_mesh<row, col>(world, {rows, n / rows});
    const std::array<index_t, 2> shape{7, 11};
    const netcdf::WriteOptions chunked{.chunk = {3, 4}, .deflate = 5};
    check_pair<double, 2>(world, mesh, shape, RR{}, S10{});
    check_pair<double, 2>(world, mesh, shape, S10{}, Dealt{}, chunked);
    check_pair<double, 2>(world, mesh, shape, Dealt{}, S00{}, {.chunk = {7, 1}});
    check_pair<double, 2>(world, mesh, shape, S00{}, RS1{}, chunked);
    if (rows > 1) check_pair<double, 2>(world, mesh, shape, Other{}, Other{});
    std::vector<index_t> points{0, 7};
    if (rows > 1) points = {0, 5, 7};
    if (rows > 2) points = {0, 5, 5, 7};
    const Placements<Cuts<0>, BlockCyclic<1>> chosen(Cuts<0>(points), BlockCyclic<1>(2));
    const Placements<Cuts<0>, Shard<1>> cut(Cuts<0>(points), Shard<1>{});
    check_pair<double, 2>(world, mesh, shape, chosen, cut);
    check_pair<double, 2>(world, mesh, shape, cut, chosen);
    check_pair<double, 2>(world, mesh, {1, 3}, S00{}, S10{});  // with empty parts
    check_pair<float, 0>(world, mesh, {}, RR{}, RR{});
    check_pair<std::int32_t, 3>(world, mesh, {3, 2, 5}, RS1{}, Dealt{}, {.chunk = {3, 1, 5}});
  });
}

TEST_CASE("a NetCDF file written by four ranks is read by three, under other placements") {
  between_processes({4}, [](World& world) {
    const auto four = init_device_mesh<row, col>(world, {2, 2});
    const auto three = init_device_mesh<dp>(world, {3}, std::vector<int>{3, 0, 2});
    const SharedFile file(world, ".nc");
    auto written = netcdf::create(file.path, four);
    written.write("v", filled<double, 2>(four, {8, 5}, Dealt{}), {"y", "x"});
    written.close();
    const auto read = netcdf::open(file.path, three);
    const auto x = read.read<double, 2>("v", three, Balanced<1>{});
    if (three.is_member()) check_elements(x);
    const auto dealt = read.read<double, 2>("v", three, BlockCyclic<0, 1>{});
    if (three.is_member()) check_elements(dealt);
    auto again = netcdf::create(file.path, three);
    const auto other = filled<double, 2>(four, {8, 5}, S00{});
    CHECK(contains(error_of([&] { again.write("w", other, {"y", "x"}); }),
                   three.is_member() ? "'w': the array's mesh has other ranks than the file's, dp=3"
                                     : "this rank is outside of the file's mesh"));
  });
}

TEST_CASE("records of NetCDF variables are written in any order, and read one by one or all") {
  between_processes({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const SharedFile file(world, ".nc");
    auto f = netcdf::create(file.path, mesh);
    const auto record = [&](index_t n) {
      const auto x = filled<float, 2>(mesh, {5, 3}, Placements<Shard<0>>{});
      for (index_t i = 0; i < x.to_local().size(); ++i) x.to_local().data()[i] += float(1000 * n);
      return x;
    };
    f.write_record("v", 0, record(0), {"time", "y", "x"});
    f.write_record("v", 3, record(3), {"time", "y", "x"});
    f.write_record("v", 1, record(1), {"time", "y", "x"});
    f.write_record("t", 1, filled<double, 0>(mesh, {}, Placements<Replicate>{}), {"time"});
    f.write("depth", zeros<float>({5, 3}, mesh, Shard<1>{}), {"y", "x"});
    f.close();
    const auto g = netcdf::open(file.path, mesh);
    CHECK(g.variable("v").has_records);
    CHECK(g.variable("v").shape == Shape(std::array<index_t, 3>{4, 5, 3}));
    CHECK(g.variable("v").dims == std::vector<std::string>{"time", "y", "x"});
    CHECK(!g.variable("depth").has_records);
    for (const index_t n : {0, 1, 3}) {
      const auto x = g.read_record<float, 2>("v", n, mesh, Shard<1>{}).full_tensor();
      for (index_t i = 0; i < 5; ++i)
        for (index_t j = 0; j < 3; ++j)
          CHECK(x(i, j) == element_at<float>({i, j}) + float(1000 * n));
    }
    const auto all = g.read<float, 3>("v", mesh, BlockCyclic<0, 1>{}).full_tensor();
    CHECK(all(3, 4, 2) == element_at<float>({4, 2}) + 3000);
    CHECK(all(2, 0, 0) > 9e36f);  // NetCDF's fill value
    CHECK(g.read_record<double, 0>("t", 1, mesh, Replicate{}).item() == element_at<double>({}));
    CHECK(contains(error_of([&] { g.read_record<float, 2>("v", 4, mesh, Shard<0>{}); }),
                   "it has no record 4, but 4 of them"));
    CHECK(contains(error_of([&] { g.read_record<float, 2>("v", -1, mesh, Shard<0>{}); }),
                   "it has no record -1"));
  });
}

TEST_CASE("all element types that NetCDF has are in its files") {
  between_processes({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const SharedFile file(world, ".nc");
    auto written = netcdf::create(file.path, mesh);
    int count = 0;
    const auto each_type = [](const auto& f) {
      std::apply(
          [&](auto... zero) {
            const auto one = [&](auto z) {
              using T = decltype(z);
              if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) f(z);
            };
            (one(zero), ...);
          },
          detail::ElementTypes{});
    };
    each_type([&](auto zero) {
      using T = decltype(zero);
      ++count;
      written.write(name_of(dtype_of<T>()), filled<T, 1>(mesh, {13}, Placements<Shard<0>>{}),
                    {"i"});
    });
    written.close();
    CHECK(count == 10);
    const auto read = netcdf::open(file.path, mesh);
    each_type([&](auto zero) {
      using T = decltype(zero);
      CAPTURE(name_of(dtype_of<T>()));
      CHECK(read.variable(name_of(dtype_of<T>())).dtype == dtype_of<T>());
      check_elements(read.read<T, 1>(name_of(dtype_of<T>()), mesh, Balanced<0>{}));
    });
  });
}

TEST_CASE("attributes of NetCDF variables, groups and files are numbers, vectors and strings") {
  between_processes({1, 3}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const SharedFile file(world, ".nc");
    auto f = netcdf::create(file.path, mesh);
    f.write("group/x", zeros<float>({4}, mesh, Shard<0>{}), {"i"});
    f.write_attribute("group/x", "units", "µm");
    f.write_attribute("group/x", "empty", "");
    f.write_attribute("group", "step", std::int64_t(11));
    f.write_attribute("group", "step", std::int64_t(12));
    f.write_attribute("/", "origin", std::vector<double>{0.5, -1, 4});
    f.close();
    const auto g = netcdf::open(file.path, mesh);
    CHECK(g.attribute<std::string>("group/x", "units") == "µm");
    CHECK(g.attribute<std::string>("group/x", "empty").empty());
    CHECK(g.attribute<std::int64_t>("group", "step") == 12);
    CHECK(g.attribute<std::vector<double>>("/", "origin") == std::vector<double>{0.5, -1, 4});
    CHECK(contains(error_of([&] { g.attribute<int>("group", "step"); }),
                   "'group@step': it is of type int64, not int32"));
    CHECK(contains(error_of([&] { g.attribute<double>("/", "origin"); }),
                   "it has the shape [3]: it is no single number"));
    CHECK(
        contains(error_of([&] { g.attribute<std::string>("group", "step"); }), "it is no string"));
    CHECK(
        contains(error_of([&] { g.attribute<int>("group/x", "units"); }), "its elements are text"));
    CHECK(
        contains(error_of([&] { g.attribute<int>("group/x", "nothing"); }), "Attribute not found"));
    CHECK(contains(error_of([&] { g.attribute<int>("nobody", "nothing"); }), "Variable not found"));
  });
}

TEST_CASE("what NetCDF refuses is an error on all ranks, and leaves the old file") {
  between_processes({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const auto x = filled<double, 2>(mesh, {6, 4}, Placements<Shard<0>>{});
    check_missing_folder<Netcdf>(world, mesh);
    const SharedFile file(world, ".nc");
    using File = netcdf::File;
    const auto refuse = [&](const std::string& what, const auto& f) {
      auto written = netcdf::create(file.path, mesh);
      written.write("x", x, {"j", "i"});
      CHECK(contains(error_of([&] { f(written); }), what));
      CHECK(contains(error_of([&] { written.close(); }), "is discarded"));
      CHECK(!std::filesystem::exists(file.path));
      world.barrier();
    };
    refuse("'x': nc_def_var: NetCDF: String match to name in use",
           [&](File& f) { f.write("x", x, {"j", "i"}); });
    refuse("[shapes [6, 4]; placements (Shard(0)); mesh row=",
           [&](File& f) { f.write("x", x, {"j", "i"}); });
    refuse("'y': its dimension 'i' has length 4, not 6",
           [&](File& f) { f.write("y", x, {"i", "j"}); });
    refuse("nc_def_dim: NetCDF: Name contains illegal characters",
           [&](File& f) { f.write("y", x, {"j"}); });
    refuse("'y': its array has no elements",
           [&](File& f) { f.write("y", zeros<double>({0, 4}, mesh, Shard<0>{}), {"none", "i"}); });
    refuse("chunk must have their extents",
           [&](File& f) { f.write("y", x, {"j", "i"}, {.deflate = 1}); });
    refuse("the index of a record must be 0 or more, not -1",
           [&](File& f) { f.write_record("y", -1, x, {"t", "j", "i"}); });
    refuse("its records have another type, shape or other dimensions", [&](File& f) {
      f.write_record("y", 0, x, {"t", "j", "i"});
      f.write_record("y", 1, x, {"t", "i", "j"});
    });
    refuse("its records have another type",
           [&](File& f) { f.write_record("x", 0, x, {"t", "j", "i"}); });

    check_old_file_stays<Netcdf>(world, mesh, file, x);
    auto f = netcdf::open(file.path, mesh);
    CHECK(contains(error_of([&] { f.read<double, 2>("y", mesh, Shard<0>{}); }),
                   "'y': nc_inq_varid: NetCDF: Variable not found"));
    CHECK(contains(error_of([&] { f.read<double, 2>("g/y", mesh, Shard<0>{}); }),
                   "'g/y': nc_inq_grp_ncid: NetCDF: No group found"));
    check_refused_reads<Netcdf>(world, mesh, f, x);
  });
}

TEST_CASE("ranks that call NetCDF files differently get errors, and none waits") {
  between_processes({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const auto x = filled<double, 1>(mesh, {6}, Placements<Shard<0>>{});
    const SharedFile file(world, ".nc");
    const bool is_last = world.rank() + 1 == world.size();
    const std::string differ = "ranks 0 and " + std::to_string(world.size() - 1) + " differ";
    const auto refuse = [&](const auto& f) {
      auto written = netcdf::create(file.path, mesh);
      CHECK(contains(error_of([&] { f(written); }), differ));
    };
    refuse([&](netcdf::File& f) { f.write(is_last ? "y" : "x", x, {"i"}); });
    refuse([&](netcdf::File& f) { f.write("x", x, {is_last ? "j" : "i"}); });
    refuse(
        [&](netcdf::File& f) { f.write_record("x", world.rank() / 9 + is_last, x, {"t", "i"}); });
    refuse([&](netcdf::File& f) { f.write_attribute("/", "rank", is_last ? "1" : "0"); });
    CHECK(!std::filesystem::exists(file.path));
  });
}

TEST_CASE("NetCDF files refuse ranks that are threads" * doctest::test_suite("threads only")) {
  if (Processes::get().launched()) return skip("ranks are processes");
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    CHECK(contains(error_of([&] { netcdf::create("x.nc", mesh); }), "not by MPI"));
  });
}

// The following cases are run by files_killed.py and netcdf_files.py.

TEST_CASE("saves two NetCDF files in turn until it is killed" * doctest::skip()) {
  between_processes({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    save_in_turn<Netcdf>(mesh);
  });
}

TEST_CASE("reads a NetCDF file of Python, and writes one for it" * doctest::skip()) {
  between_processes({3}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {3});
    const std::string path = std::getenv("CLEAVE_TEST_FILE");
    auto written = netcdf::create(path + ".again", mesh);
    const auto read = netcdf::open(path, mesh);
    for (const std::string& name : read.names()) {
      CAPTURE(name);
      const netcdf::Variable found = read.variable(name);
      CHECK(found.dims.back() == "x");
      visit_dtype(found.dtype, [&]<class T>() {
        if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
          if (found.has_records) {
            for (index_t n = 0; n < found.shape[0]; ++n) {
              const auto x = read.read_record<T, 2>(name, n, mesh, BlockCyclic<1, 1>{});
              check_elements(x);
              written.write_record(name, n, x, {"time", "y", "x"}, {.chunk = {5, 2}, .deflate = 3});
            }
          } else {
            const auto x = read.read<T, 2>(name, mesh, Shard<1>{});
            check_elements(x);
            written.write(name, x, {"y", "x"}, {.chunk = {2, 3}, .deflate = 6});
          }
        } else {
          CHECK(false);
        }
      });
    }
    CHECK(read.attribute<std::string>("/", "text") == "τext");
    CHECK(read.attribute<std::string>("/", "string") == "of any length");
    written.write_attribute("/", "text", read.attribute<std::string>("/", "text"));
    written.write_attribute("of", "number", read.attribute<double>("of", "number"));
    written.write_attribute("/", "numbers",
                            read.attribute<std::vector<std::int64_t>>("/", "numbers"));
    written.close();
  });
}

}  // namespace netcdf_files
