// What HDF5 and NetCDF files have in common: when an old file stays, and what reading refuses.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/core/error.hpp>
#include <cleave/dtensor/factories.hpp>

#include "errors.hpp"
#include "known_arrays.hpp"
#include "shared_file.hpp"

namespace known_arrays {

using cleave::testing::contains;
using cleave::testing::error_of;
using cleave::testing::SharedFile;

/// @param Library  has the functions create, open, and write(file, name, array of two dimensions);
///                 the namespace of these functions, and the ending of names
template <class Library>
void check_missing_folder(const World& world, const auto& mesh) {
  const std::string path = std::string("/nowhere/x") + Library::ending;
  CHECK(
      contains(error_of([&] { Library::open(path, mesh); }),
               std::string(Library::name) + "::open: " + path + " cannot be opened: No such file"));
  const std::string message = error_of([&] { Library::create(path, mesh); });
  CHECK(contains(message, world.rank() == 0 ? path + ".partial cannot be opened"
                                            : "another rank could not open " + path));
  CHECK(contains(message, "rank " + std::to_string(world.rank())));
}

/// Leaves a file with the array x.
template <class Library>
void check_old_file_stays(const World& world, const auto& mesh, const SharedFile& file,
                          const auto& x) {
  auto written = Library::create(file.path, mesh);
  Library::write(written, "x", x);
  written.write_attribute("x", "text", "text");
  written.close();
  CHECK(contains(error_of([&] { Library::write(written, "y", x); }), "the file is closed"));
  const std::string before = file.bytes();
  {
    auto discarded = Library::create(file.path, mesh);
    Library::write(discarded, "other", x);
  }
  CHECK(error_of([&] {
          auto discarded = Library::create(file.path, mesh);
          Library::write(discarded, "other", x);
          discarded.template read<float, 2>("other", mesh, Shard<0>{});
        }) != "");
  for (int i = 0; i < 2; ++i)  // also if the error is not one of the file
    CHECK(error_of([&] {
            auto discarded = Library::create(file.path, mesh);
            Library::write(discarded, "other", x);
            throw Error("a test", "stops");
          }) == "a test: stops");
  {
    const auto discarded = Library::create(file.path, mesh);
  }
  world.barrier();
  CHECK(file.bytes() == before);
  CHECK(!std::filesystem::exists(file.path + ".partial"));
}

/// Reads x, of [6, 4], wrongly, and then rightly. @param f  open for reading
template <class Library>
void check_refused_reads(const World& world, const auto& mesh, auto& f, const auto& x) {
  CHECK(contains(error_of([&] { f.template read<float, 2>("x", mesh, Shard<0>{}); }),
                 "'x': it has elements of type float64, not float32"));
  CHECK(contains(error_of([&] { f.template read<double, 3>("x", mesh, Shard<0>{}); }),
                 "it has 2 dimensions [6, 4], not 3"));
  std::vector<index_t> points(std::size_t(world.size()) + 1, 0);
  points.back() = 5;
  CHECK(contains(error_of([&] { f.template read<double, 2>("x", mesh, Cuts<0>(points)); }),
                 std::string(Library::name) + "::File::read: "));
  CHECK(contains(
      error_of([&] { Library::write(f, "y", x); }),
      "the file is open for reading; " + std::string(Library::name) + "::create writes a new one"));
  check_elements(f.template read<double, 2>("x", mesh, Shard<1>{}));  // after all these errors
}

/// In two arrays in turn, until the program is killed. @see files_killed.py
template <class Library>
[[noreturn]] void save_in_turn(const auto& mesh) {
  for (int i = 0;; ++i) {
    auto f = Library::create(std::getenv("CLEAVE_TEST_FILE"), mesh);
    Library::write(f, "x", full<double>({300, 1000}, i % 2, mesh, Shard<1>{}));
    f.close();
  }
}

}  // namespace known_arrays
