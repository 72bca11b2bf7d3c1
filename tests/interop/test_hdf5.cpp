// DTensors in HDF5 files: values under any placements of either side, element types, attributes,
// errors on all ranks, the end of the program at any moment.
#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/interop/hdf5.hpp>
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

namespace hdf5_files {
namespace {

using namespace known_arrays;

struct Hdf5 {
  static constexpr const char *name = "hdf5", *ending = ".h5";
  static auto create(const std::string& path, const auto& mesh) { return hdf5::create(path, mesh); }
  static auto open(const std::string& path, const auto& mesh) { return hdf5::open(path, mesh); }
  static void write(hdf5::File& file, const char* array, const auto& x) { file.write(array, x); }
};

/// Writes under the placements a, reads under b.
template <class T, int Rank, class Mesh, class A, class B>
void check_pair(World& world, const Mesh& mesh, const std::array<index_t, std::size_t(Rank)>& shape,
                const A& a, const B& b, const hdf5::WriteOptions& options = {}) {
  CAPTURE(to_string(layout_of<normalized_t<A, Rank>, Rank>));
  CAPTURE(to_string(layout_of<normalized_t<B, Rank>, Rank>));
  CAPTURE(to_string(Shape(shape)));
  const SharedFile file(world, ".h5");
  auto written = hdf5::create(file.path, mesh);
  written.write("in/here/x", filled<T, Rank>(mesh, shape, a), options);
  written.close();
  CHECK(!std::filesystem::exists(file.path + ".partial"));
  const auto read = hdf5::open(file.path, mesh);
  const hdf5::Dataset found = read.dataset("in/here/x");
  CHECK(found.shape == Shape(shape));
  CHECK(found.dtype == dtype_of<T>());
  const bool has_chunks = !options.chunk.empty() && Shape(shape).product() > 0;
  CHECK(found.chunk.dims == (has_chunks ? Rank : 0));
  const auto x = read.template read<T, Rank>("in/here/x", mesh, b);
  CHECK(Shape(x.shape()) == Shape(shape));
  check_elements(x);
}

using RR = Placements<Replicate, Replicate>;
using S00 = Placements<Shard<0>, Shard<0>>;
using S10 = Placements<Shard<1>, Shard<0>>;
using RS1 = Placements<Replicate, Shard<-1>>;
using Dealt = Placements<BlockCyclic<0, 2>, BlockCyclic<1, 3>>;
using Nested = Placements<BlockCyclic<1, 3>, BlockCyclic<1, 1>>;
using Other = Placements<Owned<1, 0>, Balanced<1>>;

}  // namespace

TEST_CASE("an HDF5 file has the array, whatever the placements on either side") {
  between_processes({1, 2, 3, 4}, [](World& world) {
    const index_t n = world.size(), rows = n == 4 ? 2 : n;
    const auto mesh = init_device_mesh<row, col>(world, {rows, n / rows});
    const std::array<index_t, 2> shape{7, 11};
    const hdf5::WriteOptions chunked{.chunk = {3, 4}, .deflate = 5};
    check_pair<double, 2>(world, mesh, shape, RR{}, S10{});
    check_pair<double, 2>(world, mesh, shape, S10{}, Dealt{}, chunked);
    check_pair<double, 2>(world, mesh, shape, Dealt{}, Nested{});
    check_pair<double, 2>(world, mesh, shape, Nested{}, S00{}, chunked);
    check_pair<double, 2>(world, mesh, shape, S00{}, RS1{}, {.chunk = {7, 1}});
    if (rows > 1) check_pair<double, 2>(world, mesh, shape, Other{}, Other{});
    std::vector<index_t> points{0, 7};
    if (rows > 1) points = {0, 5, 7};
    if (rows > 2) points = {0, 5, 5, 7};
    const Placements<Cuts<0>, BlockCyclic<1>> chosen(Cuts<0>(points), BlockCyclic<1>(2));
    check_pair<double, 2>(world, mesh, shape, chosen, Dealt{});
    check_pair<double, 2>(world, mesh, shape, RS1{}, chosen);
    check_pair<double, 2>(world, mesh, {1, 3}, S00{}, S10{});  // with empty parts
    check_pair<float, 2>(world, mesh, {0, 4}, S00{}, RS1{}, chunked);
    check_pair<float, 0>(world, mesh, {}, RR{}, RR{});
    check_pair<std::int32_t, 3>(world, mesh, {3, 2, 5}, RS1{}, Dealt{}, {.chunk = {3, 1, 5}});
  });
}

TEST_CASE("an HDF5 file written by four ranks is read by three, under other placements") {
  between_processes({4}, [](World& world) {
    const auto four = init_device_mesh<row, col>(world, {2, 2});
    const auto three = init_device_mesh<dp>(world, {3}, std::vector<int>{3, 0, 2});
    const SharedFile file(world, ".h5");
    auto written = hdf5::create(file.path, four);
    written.write("x", filled<double, 2>(four, {8, 5}, Dealt{}), {.chunk = {2, 5}, .deflate = 1});
    written.close();
    const auto read = hdf5::open(file.path, three);
    const auto x = read.read<double, 2>("x", three, Balanced<1>{});
    CHECK(read.names() ==
          (three.is_member() ? std::vector<std::string>{"x"} : std::vector<std::string>{}));
    if (three.is_member()) check_elements(x);
    auto again = hdf5::create(file.path, three);
    again.write("x", x);
    const auto other = filled<double, 2>(four, {8, 5}, S00{});
    CHECK(contains(error_of([&] { again.write("y", other); }),
                   three.is_member() ? "'y': the array's mesh has other ranks than the file's, dp=3"
                                     : "this rank is outside of the file's mesh"));
    if (three.is_member())
      CHECK(
          contains(error_of([&] { again.close(); }), "discarded, because a call on it has failed"));
    world.barrier();
    check_elements(hdf5::open(file.path, four).read<double, 2>("x", four, S10{}));
  });
}

TEST_CASE("all element types are in HDF5 files") {
  between_processes({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const SharedFile file(world, ".h5");
    auto written = hdf5::create(file.path, mesh);
    const auto each_type = [](const auto& f) {
      std::apply([&](auto... zero) { (f(zero), ...); }, detail::ElementTypes{});
    };
    each_type([&](auto zero) {
      using T = decltype(zero);
      written.write(name_of(dtype_of<T>()),
                    filled<T, 1>(mesh, {13}, Placements<BlockCyclic<0, 2>>{}));
    });
    written.close();
    const auto read = hdf5::open(file.path, mesh);
    CHECK(read.names().size() == std::tuple_size_v<detail::ElementTypes>);
    each_type([&](auto zero) {
      using T = decltype(zero);
      CAPTURE(name_of(dtype_of<T>()));
      CHECK(read.dataset(name_of(dtype_of<T>())).dtype == dtype_of<T>());
      check_elements(read.read<T, 1>(name_of(dtype_of<T>()), mesh, Shard<0>{}));
    });
  });
}

TEST_CASE("compressed HDF5 arrays take less space") {
  between_processes({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    const SharedFile file(world, ".h5");
    std::array<std::size_t, 2> bytes{};
    for (const int deflate : {0, 9}) {
      auto written = hdf5::create(file.path, mesh);
      written.write("x", zeros<double>({100, 100}, mesh, Shard<1>{}),
                    {.chunk = {50, 50}, .deflate = deflate});
      written.close();
      bytes[deflate > 0] = std::size_t(std::filesystem::file_size(file.path));
      world.barrier();
    }
    CHECK(bytes[0] > 80000);
    CHECK(bytes[1] < 20000);
  });
}

TEST_CASE("a block-cyclic dimension is at most two hyperslabs, and any other as few as can be") {
  const auto count_runs = [](const Layout& layout, index_t extent, const Shape& mesh,
                             std::size_t most) {
    CAPTURE(to_string(layout));
    Shape at = Shape::filled(mesh.dims, 0);
    do {
      const DimOwnership own(layout, {0, 1, 2, 3, 4, 5, 6, 7}, 0, extent, mesh);
      const auto runs = detail::hdf5_runs(own, at);
      CHECK(runs.size() <= most);
      std::vector<index_t> found;
      for (const auto& [first, distance, count, length] : runs)
        for (hsize_t c = 0; c < count; ++c)
          for (hsize_t i = 0; i < length; ++i) found.push_back(index_t(first + c * distance + i));
      const auto expected =
          naive::owned(layout, 0, {extent}, naive::to_indices(mesh), naive::to_indices(at));
      CHECK(found == std::vector<index_t>(expected.begin(), expected.end()));
    } while (next_index(mesh, at));
  };
  const Shape three(std::array<index_t, 1>{3}), grid(std::array<index_t, 2>{2, 3});
  for (const index_t extent : {0, 1, 7, 36, 37, 40}) {
    count_runs(layout_of<Placements<Shard<0>>, 1>, extent, three, 1);
    count_runs(layout_of<Placements<BlockCyclic<0, 1>>, 1>, extent, three, 1);
    count_runs(layout_of<Placements<BlockCyclic<0, 4>>, 1>, extent, three, 2);
    count_runs(layout_of<Placements<BlockCyclic<0, 2>, BlockCyclic<0, 2>>, 1>, extent, grid, 2);
    count_runs(layout_of<Placements<BlockCyclic<0, 4>, BlockCyclic<0, 1>>, 1>, extent, grid, 20);
  }
}

TEST_CASE("attributes of HDF5 arrays, groups and files are numbers, vectors and strings") {
  between_processes({1, 3}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const SharedFile file(world, ".h5");
    auto f = hdf5::create(file.path, mesh);
    f.write("group/x", zeros<float>({4}, mesh, Shard<0>{}));
    f.write_attribute("group/x", "unit", "µm");
    f.write_attribute("group/x", "empty", "");
    f.write_attribute("group", "step", std::int64_t(12));
    f.write_attribute("group", "is open", true);
    f.write_attribute("/", "origin", std::vector<double>{0.5, -1, 4});
    f.write_attribute("/", "none", std::vector<std::int16_t>{});
    f.write_attribute("/", "z", std::complex<float>(1, -2));
    f.close();
    const auto g = hdf5::open(file.path, mesh);
    CHECK(g.attribute<std::string>("group/x", "unit") == "µm");
    CHECK(g.attribute<std::string>("group/x", "empty").empty());
    CHECK(g.attribute<std::int64_t>("group", "step") == 12);
    CHECK(g.attribute<bool>("group", "is open"));
    CHECK(g.attribute<std::vector<double>>("/", "origin") == std::vector<double>{0.5, -1, 4});
    CHECK(g.attribute<std::vector<std::int16_t>>("/", "none").empty());
    CHECK(g.attribute<std::complex<float>>("/", "z") == std::complex<float>(1, -2));
    CHECK(contains(error_of([&] { g.attribute<int>("group", "step"); }),
                   "'group@step': it is of type int64, not int32"));
    CHECK(contains(error_of([&] { g.attribute<double>("/", "origin"); }),
                   "it has the shape [3]: it is no single number"));
    CHECK(
        contains(error_of([&] { g.attribute<std::string>("group", "step"); }), "it is no string"));
    CHECK(contains(error_of([&] { g.attribute<int>("group/x", "unit"); }),
                   "its elements are strings"));
    CHECK(contains(error_of([&] { g.attribute<int>("group", "nothing"); }),
                   "can't locate attribute: 'nothing'"));
  });
}

TEST_CASE("what HDF5 refuses is an error on all ranks, and leaves the old file") {
  between_processes({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const auto x = filled<double, 2>(mesh, {6, 4}, Placements<Shard<0>>{});
    check_missing_folder<Hdf5>(world, mesh);
    const SharedFile file(world, ".h5");
    const auto refuse = [&](const std::string& what, const auto& f) {
      auto written = hdf5::create(file.path, mesh);
      written.write("x", x);
      CHECK(contains(error_of([&] { f(written); }), what));
      CHECK(contains(error_of([&] { written.close(); }), "is discarded"));
      CHECK(!std::filesystem::exists(file.path));
      world.barrier();
    };
    refuse("'x': H5Dcreate: unable to create dataset",
           [&](hdf5::File& f) { f.write("x", x, {.chunk = {2, 2}}); });
    refuse("[shapes [6, 4]; placements (Shard(0)); mesh row=",
           [&](hdf5::File& f) { f.write("x/y", x); });
    refuse("chunk has 1 extents, the array 2",
           [&](hdf5::File& f) { f.write("y", x, {.chunk = {2}}); });
    refuse("must be 1 to those of the array, not 7",
           [&](hdf5::File& f) { f.write("y", x, {.chunk = {7, 4}}); });
    refuse("chunk must have their extents",
           [&](hdf5::File& f) { f.write("y", x, {.deflate = 1}); });
    refuse("deflate must be 0 to 9",
           [&](hdf5::File& f) { f.write("y", x, {.chunk = {2, 2}, .deflate = 10}); });
    refuse("object header message is too large",
           [&](hdf5::File& f) { f.write_attribute("x", "many", std::vector<double>(10000)); });

    check_old_file_stays<Hdf5>(world, mesh, file, x);
    auto f = hdf5::open(file.path, mesh);
    CHECK(contains(error_of([&] { f.read<double, 2>("y", mesh, Shard<0>{}); }),
                   "'y': H5Dopen: unable to open dataset"));
    check_refused_reads<Hdf5>(world, mesh, f, x);
  });
}

TEST_CASE("ranks that call HDF5 files differently get errors, and none waits") {
  between_processes({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const auto x = filled<double, 1>(mesh, {6}, Placements<Shard<0>>{});
    const SharedFile file(world, ".h5");
    const bool is_last = world.rank() + 1 == world.size();
    const std::string differ = "ranks 0 and " + std::to_string(world.size() - 1) + " differ";
    CHECK(
        contains(error_of([&] { hdf5::create(file.path + (is_last ? "5" : ""), mesh); }), differ));
    const auto refuse = [&](const auto& f) {
      auto written = hdf5::create(file.path, mesh);
      CHECK(contains(error_of([&] { f(written); }), differ));
    };
    refuse([&](hdf5::File& f) { f.write(is_last ? "y" : "x", x); });
    refuse([&](hdf5::File& f) { f.write("x", x, {.chunk = {is_last ? 2 : 3}}); });
    refuse(
        [&](hdf5::File& f) { f.write_attribute("/", "rank", world.rank() / (world.size() - 1)); });
    CHECK(!std::filesystem::exists(file.path));
    CHECK(error_of([&] {  // which the comparison of all calls reports
            if (is_last) hdf5::open(file.path, mesh);
            else hdf5::create(file.path, mesh);
          }) != "");
  });
}

TEST_CASE("HDF5 files refuse ranks that are threads" * doctest::test_suite("threads only")) {
  if (Processes::get().launched()) return skip("ranks are processes");
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    CHECK(contains(error_of([&] { hdf5::create("x.h5", mesh); }), "not by MPI"));
  });
}

// The following cases are run by files_killed.py and hdf5_files.py.

TEST_CASE("saves two HDF5 files in turn until it is killed" * doctest::skip()) {
  between_processes({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    save_in_turn<Hdf5>(mesh);
  });
}

TEST_CASE("throws on one rank between two HDF5 arrays" * doctest::skip()) {
  between_processes({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    auto f = hdf5::create(std::getenv("CLEAVE_TEST_FILE"), mesh);
    f.write("x", zeros<double>({30}, mesh, Shard<0>{}));
    if (world.rank() == 1) throw std::runtime_error("rank 1 has had enough");
    f.write("y", zeros<double>({30}, mesh, Shard<0>{}));
    f.close();
  });
}

TEST_CASE("reads an HDF5 file of h5py, and writes one for it" * doctest::skip()) {
  between_processes({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    const std::string path = std::getenv("CLEAVE_TEST_FILE");
    auto written = hdf5::create(path + ".again", mesh);
    const auto read = hdf5::open(path, mesh);
    for (const std::string& name : read.names()) {
      CAPTURE(name);
      const hdf5::Dataset found = read.dataset(name);
      REQUIRE(found.shape == Shape(std::array<index_t, 2>{5, 4}));
      visit_dtype(found.dtype, [&]<class T>() {
        const auto x = read.read<T, 2>(name, mesh, BlockCyclic<1, 1>{});
        check_elements(x);
        written.write(name, x, {.chunk = {2, 3}, .deflate = 6});
      });
    }
    written.write("bf/bfloat16", filled<bfloat16, 2>(mesh, {5, 4}, Placements<Shard<0>>{}));
    CHECK(read.attribute<std::string>("/", "fixed") == "fixed text");
    CHECK(read.attribute<std::string>("/", "text") == "τext");
    written.write_attribute("/", "text", read.attribute<std::string>("/", "text"));
    written.write_attribute("/", "number", read.attribute<double>("/", "number"));
    written.write_attribute("/", "numbers",
                            read.attribute<std::vector<std::int64_t>>("/", "numbers"));
    CHECK(contains(error_of([&] { read.attribute<double>("/", "table"); }), "compounds"));
    written.close();
  });
}

}  // namespace hdf5_files
