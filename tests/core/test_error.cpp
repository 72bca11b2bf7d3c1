#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include <cleave/core/error.hpp>

using namespace cleave;

TEST_CASE("an error without context is its operation and its message") {
  const Error error("matmul", "inner extents differ");
  CHECK(std::string(error.what()) == "matmul: inner extents differ");
  CHECK(error.operation() == "matmul");
  CHECK(error.message() == "inner extents differ");
  CHECK(error.context().rank == -1);
}

TEST_CASE("an error's text ends with the known shapes, placements, mesh and rank") {
  const Error all("matmul", "inner extents differ",
                  {.shapes = "[5, 6] and [7, 8]",
                   .placements = "(Shard(0), Replicate)",
                   .mesh = "dp=2 x tp=2",
                   .rank = 3});
  CHECK(std::string(all.what()) ==
        "matmul: inner extents differ [shapes [5, 6] and [7, 8]; placements (Shard(0), Replicate); "
        "mesh dp=2 x tp=2; rank 3]");
  const Error some("sum", "no", {.mesh = "dp=2", .rank = 0});
  CHECK(std::string(some.what()) == "sum: no [mesh dp=2; rank 0]");
  CHECK(some.context().mesh == "dp=2");
}

TEST_CASE("an error is a runtime_error and can be copied") {
  try {
    throw Error("slice", "out of range", {.rank = 1});
  } catch (const std::runtime_error& caught) {
    CHECK(std::string(caught.what()) == "slice: out of range [rank 1]");
  }
  const Error first("a", "b", {.rank = 2});
  const Error second = first;
  CHECK(std::string(second.what()) == first.what());
  CHECK(second.context().rank == 2);
}
