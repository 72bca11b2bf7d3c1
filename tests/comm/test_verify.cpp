#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/verify.hpp>

#include "collective_cases.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// The message of the error that running `c` throws.
std::string error_of_run(Communicator& group, const Collective& c) {
  try {
    group.run(c);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const Collective& c, int rank, int size) {
  try {
    detail::verify_call(c, rank, size);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Box interval(index_t begin, index_t end) {
  return {Shape::filled(1, begin), Shape::filled(1, end)};
}

}  // namespace

TEST_CASE("with checks on, different calls are errors on all ranks that show both") {
  on_ranks({2, 3, 4}, [](World& world) {
    Communicator& group = world.communicator();
    group.state().check = CheckLevel::collective;
    const int last = group.size() - 1, rank = group.rank();
    const std::string who = " [rank " + std::to_string(rank) + "]";
    const std::string first = "ranks of group 'world' disagree: rank 0 runs ";
    Tensor<float, 1> a({6}), b({6});
    Tensor<double, 1> wide({6}), wide_sum({6});
    a.fill_(1);
    wide.fill_(1);

    Collective c = call(CollectiveKind::all_reduce);
    c.source = a.view();
    c.destination = b.view();
    Collective other = c;
    other.op = ReduceOp::max;
    CHECK(error_of_run(group, rank == last ? other : c) ==
          "collective: " + first + "all_reduce of 6 float32 (op sum, root 0, call 0), rank " +
              std::to_string(last) + " runs all_reduce of 6 float32 (op max, root 0, call 0)" +
              who);

    other = c;
    other.source = wide.view();
    other.destination = wide_sum.view();
    CHECK(error_of_run(group, rank == last ? other : c) ==
          "collective: " + first + "all_reduce of 6 float32 (op sum, root 0, call 0), rank " +
              std::to_string(last) + " runs all_reduce of 6 float64 (op sum, root 0, call 0)" +
              who);

    other = c;
    other.source = a.slice(0, 0, 5).view();
    other.destination = b.slice(0, 0, 5).view();
    CHECK(error_of_run(group, rank == last ? other : c) ==
          "collective: " + first + "all_reduce of 6 float32 (op sum, root 0, call 0), rank " +
              std::to_string(last) + " runs all_reduce of 5 float32 (op sum, root 0, call 0)" +
              who);

    other = call(CollectiveKind::broadcast);
    other.root = 1;
    other.source = a.view();
    other.destination = b.view();
    other.operation = "from_local";
    CHECK(error_of_run(group, rank == last ? other : c) ==
          (rank == last ? "from_local: " : "collective: ") + first +
              "all_reduce of 6 float32 (op sum, root 0, call 0), rank " + std::to_string(last) +
              " runs broadcast of 0 float32 (op sum, root 1, call 0) for from_local of [6]" + who);

    CHECK(error_of_run(group, c) == "");
    CHECK(b(5) == float(group.size()));
  });
}

TEST_CASE("an invalid call that one rank can detect is refused on that rank") {
  Tensor<float, 1> six({6}), two({2});
  const Box halves[] = {interval(0, 4), interval(4, 6)};
  const Box outside[] = {interval(0, 4), interval(4, 7)};

  Collective c = call(CollectiveKind::scatter);
  c.root = 2;
  CHECK(refusal(c, 0, 2) == "scatter: the root is rank 2 of 2");
  c.root = 0;
  c.source = six.view();
  c.pieces = std::span<const Box>(halves, 1);
  CHECK(refusal(c, 0, 2) == "scatter: 1 pieces for 2 ranks");
  c.pieces = outside;
  c.operation = "distribute_tensor";
  CHECK(refusal(c, 0, 2) ==
        "distribute_tensor: the box [4] to [7] exceeds the source [shapes [6]]");
  CHECK(refusal(c, 1, 2) == "");

  c = call(CollectiveKind::all_gather);
  c.source = six.view();
  c.destination = six.view();
  c.pieces = halves;
  CHECK(refusal(c, 1, 2) ==
        "all_gather: this rank's piece does not match its source [shapes [2] float32 and [6] "
        "float32]");
  c.source = two.view();
  CHECK(refusal(c, 1, 2) == "");

  c = call(CollectiveKind::reduce_scatter);
  c.source = six.view();
  c.destination = six.view();
  c.pieces = halves;
  CHECK(refusal(c, 0, 2) ==
        "reduce_scatter: this rank's piece does not match its destination "
        "[shapes [4] float32 and [6] float32]");
  Tensor<double, 1> wide({4});
  c.destination = wide.view();
  CHECK(refusal(c, 0, 2) ==
        "reduce_scatter: this rank's piece does not match its destination "
        "[shapes [4] float32 and [4] float64]");

  c = call(CollectiveKind::all_reduce);
  c.source = six.view();
  c.destination = two.view();
  CHECK(refusal(c, 0, 2) ==
        "all_reduce: source and destination differ [shapes [6] float32 and [2] float32]");
  Tensor<std::int32_t, 1> whole({6});
  c.source = whole.view();
  c.destination = whole.view();
  c.op = ReduceOp::avg;
  CHECK(
      refusal(c, 0, 2) ==
      "all_reduce: avg of int32 is not defined: an average requires a floating-point element type");

  c = call(CollectiveKind::exchange);
  c.source = six.view();
  c.destination = six.view();
  const Transfer nobody[] = {{2, interval(0, 1), interval(0, 1)}};
  c.sends = nobody;
  CHECK(refusal(c, 0, 2) == "exchange: there is no rank 2");
  const Transfer uneven_boxes[] = {{1, interval(0, 2), interval(0, 1)}};
  c.sends = {};
  c.receives = uneven_boxes;
  CHECK(
      refusal(c, 0, 2) ==
      "exchange: a transfer's source and destination have different extents [shapes [2] and [1]]");
  const Transfer beyond[] = {{1, interval(0, 2), interval(5, 7)}};
  c.receives = beyond;
  CHECK(refusal(c, 0, 2) == "exchange: the box [5] to [7] exceeds the destination [shapes [6]]");
}

TEST_CASE("a reduction that the element type does not support is refused on every rank") {
  on_ranks({1, 2, 4}, [](World& world) {
    Tensor<std::complex<float>, 1> values({4});
    values.fill_(1);
    Collective c = call(CollectiveKind::all_reduce);
    c.source = values.view();
    c.destination = values.view();
    c.op = ReduceOp::max;
    CHECK(error_of_run(world.communicator(), c) ==
          "all_reduce: max of complex64 is not defined: complex numbers have no order");
    c.op = ReduceOp::sum;
    CHECK(error_of_run(world.communicator(), c) == "");
    CHECK(values(3) == std::complex<float>(float(world.size())));
  });
}

TEST_CASE("an invalid list of ranks for a subgroup is refused") {
  on_ranks({2, 3}, [](World& world) {
    Communicator& group = world.communicator();
    const auto text = [&](std::vector<int> ranks) -> std::string {
      try {
        group.subgroup(ranks, "tp");
      } catch (const Error& error) {
        return error.message();
      }
      return "";
    };
    const int n = group.size(), rank = group.rank(), other = (rank + 1) % n;
    const std::string where = ", in a group of the " + std::to_string(n) + " ranks of 'world'";
    const std::string me = "rank " + std::to_string(rank);
    CHECK(text({rank, n}) == "rank " + std::to_string(n) + " does not exist" + where);
    CHECK(text({-1, rank}) == "rank -1 does not exist" + where);
    CHECK(text({rank, rank}) == me + " is listed twice" + where);
    CHECK(text({other}) == me + " is not in its own list" + where);
    CHECK(text({}) == me + " is not in its own list" + where);
    world.barrier();
  });
}
