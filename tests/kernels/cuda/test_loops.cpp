#include <cstdint>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/loops.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::testing;
using cuda::detail::FastDivision;
using cuda::detail::LoopNest;
using cuda::detail::Loops;

TEST_CASE("a divisor gives the quotients of all numbers below 2^31") {
  std::mt19937 random(3);
  constexpr std::uint32_t most = 0x7fffffff;
  index_t wrong = 0;
  for (const std::uint32_t d :
       {1u, 2u, 3u, 7u, 64u, 641u, 65535u, 65537u, 1u << 30, most - 1, most})
    for (int i = 0; i < 2000; ++i) {
      const std::uint32_t n = i < 8    ? std::uint32_t(i)
                              : i < 16 ? most - std::uint32_t(i - 8)
                                       : std::uint32_t(random()) & most;
      wrong += FastDivision(d).quotient(n) != n / d;
      const std::uint32_t edge = n / d * d;  // where the quotient changes
      wrong += FastDivision(d).quotient(edge) != edge / d;
      if (edge > 0) wrong += FastDivision(d).quotient(edge - 1) != (edge - 1) / d;
    }
  CHECK(wrong == 0);
}

TEST_CASE("the steps of merged loops visit every element of both arrays once") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    CAPTURE(trial);
    const int dims = int(random() % 9);
    Shape extents = Shape::filled(dims, 1);
    std::vector<int> order, gaps;
    for (int d = 0; d < dims; ++d) {
      extents[d] = 1 + index_t(random() % 4);
      order.insert(order.begin() + index_t(random() % (order.size() + 1)), d);
      gaps.push_back(int(random() % 2));
    }
    const Place a = Place::of(extents, order, gaps), b = Place::of(extents);
    const LoopNest<2> nest(extents, {&a.strides, &b.strides});
    const Loops<2> loops(nest);
    std::set<std::pair<index_t, index_t>> visited, expected;
    for (std::uint32_t step = 0; step < loops.size(); ++step) {
      const auto at = loops.at(step);
      visited.emplace(at.offset[0], at.offset[1]);
    }
    const auto from = a.offsets(), to = b.offsets();
    for (std::size_t i = 0; i < from.size(); ++i) expected.emplace(from[i], to[i]);
    CHECK(loops.size() == from.size());
    CHECK(visited == expected);
  }
}

TEST_CASE("dimensions dense in all arrays are one loop, in steps of several elements") {
  const Shape extents = shape({2, 3, 1, 5}), none = Shape::filled(4, 0);
  const Shape dense = row_major_strides(extents);
  const LoopNest<2> merged(extents, {&dense, &none});
  CHECK(merged.dims == 1);
  CHECK(merged.extents[0] == 30);
  const Loops<2> loops(merged, 4);
  CHECK(loops.size() == 8);
  CHECK(loops.at(7).offset[0] == 28);
  CHECK(loops.at(7).offset[1] == 0);
}

TEST_CASE("loops of more than 2^31 steps are cut into pieces that make them up") {
  constexpr index_t large = (index_t{1} << 32) + 1037;
  for (const Shape& extents : {shape({large}), shape({3, large}), shape({large, 3}),
                               shape({5, 1, 70000, 70001}), shape({large - 1, 2, 2})}) {
    CAPTURE(to_string(extents));
    const Shape dense = row_major_strides(extents);
    Shape gaps = dense;
    for (int d = 0; d + 1 < gaps.dims; ++d) gaps[d] = dense[d] * 2 + 7 * (d + 1);
    index_t steps = 0, pieces = 0, first = 0, last = 0, unaligned = 0, too_large = 0;
    const LoopNest<2> nest(extents, {&dense, &gaps});
    cuda::detail::in_pieces(nest, [&](const LoopNest<2>& piece) {
      const Loops<2> loops(piece);
      ++pieces;
      steps += piece.size();
      too_large += piece.size() >= cuda::detail::max_steps;
      first += piece.start[0] == 0;
      unaligned += piece.dims == 1 && piece.start[0] % 1024 != 0;
      // the pieces follow each other in the contiguous array
      CHECK(loops.at(0).offset[0] == steps - piece.size());
      CHECK(loops.at(loops.size() - 1).offset[0] == steps - 1);
      index_t end = 0;
      for (int d = 0; d < extents.dims; ++d) end += (extents[d] - 1) * gaps[d];
      last += loops.at(loops.size() - 1).offset[1] == end;
    });
    CHECK(pieces > 1);
    CHECK(steps == extents.product());
    CHECK(first == 1);
    CHECK(last == 1);
    CHECK(unaligned == 0);
    CHECK(too_large == 0);
  }
}
