// Ownership compared with lists of indices cut by hand, for every rank, without communication.
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/placement/ownership.hpp>

#include "naive.hpp"

using namespace cleave;
using naive::Indices;
using naive::shape_of;

namespace {

/// All layouts of `axes` axes over R and S(d), d < dims.
std::vector<Layout> all_layouts(int axes, int dims) {
  std::vector<Layout> result;
  for (const Indices& choice : naive::all_indices(Indices(std::size_t(axes), dims + 1))) {
    Layout layout;
    layout.axes = axes;
    for (int a = 0; a < axes; ++a)
      if (const auto c = choice[std::size_t(a)]; c > 0) layout[a] = Placement::shard(int(c - 1));
    result.push_back(layout);
  }
  return result;
}

}  // namespace

TEST_CASE("every rank owns the indices that cutting lists by hand gives it") {
  int compared = 0;
  for (const Indices& mesh :
       std::vector<Indices>{{1}, {4}, {7}, {2, 2}, {2, 3}, {1, 3}, {2, 2, 2}, {3, 1, 2}})
    for (const Indices& shape :
         std::vector<Indices>{{5}, {0}, {8}, {1}, {5, 6}, {3, 0}, {2, 7}, {4, 3, 5}})
      for (const Layout& layout : all_layouts(int(mesh.size()), int(shape.size())))
        for (const Indices& coordinate : naive::all_indices(mesh)) {
          const Box box = owned_box(layout, shape_of(shape), shape_of(mesh), shape_of(coordinate));
          for (int d = 0; d < int(shape.size()); ++d) {
            const Indices expected = naive::owned(layout, d, shape, mesh, coordinate);
            REQUIRE(box.extent(d) == index_t(expected.size()));
            if (!expected.empty()) REQUIRE(box.begin[d] == expected.front());
            REQUIRE(box.begin[d] >= 0);
            REQUIRE(box.end[d] <= shape[std::size_t(d)]);
            ++compared;
          }
        }
  CHECK(compared == 7394);
}

TEST_CASE("a shard of an extent smaller than the axis is empty, not absent") {
  static_assert(shard_range(3, 4, 2) == IndexRange{2, 3});
  static_assert(shard_range(3, 4, 3) == IndexRange{3, 3});
  static_assert(shard_range(5, 4, 2) == IndexRange{4, 5});
  static_assert(shard_range(5, 4, 3) == IndexRange{5, 5});
  static_assert(shard_range(0, 3, 1) == IndexRange{0, 0});
  constexpr index_t most = std::numeric_limits<index_t>::max();
  static_assert(shard_range(most, 4, 2).end == shard_range(most, 4, 3).begin);
  static_assert(shard_range(most, 4, 3).end == most);
  CHECK(shard_range(3, 4, 3).size() == 0);
}

TEST_CASE("axes that shard one dimension apply in the order of the mesh") {
  // 8 rows over 2 x 2: rows 0-3 and 4-7 over the first axis, each halved over the second
  constexpr Layout layout = layout_of<Placements<Shard<0>, Shard<0>>, 1>;
  constexpr Shape mesh(std::array<index_t, 2>{2, 2});
  constexpr Shape at(std::array<index_t, 2>{1, 0});
  constexpr Box box = owned_box(layout, Shape(std::array<index_t, 1>{8}), mesh, at);
  static_assert(box.begin[0] == 4 && box.end[0] == 6);
  CHECK(box.volume() == 2);
}

TEST_CASE("ownership counts past 32 bits") {
  constexpr index_t extent = index_t(1) << 40;
  static_assert(shard_range(extent, 3, 2).end == extent);
  CHECK(shard_range(extent, 3, 1).begin == (extent + 2) / 3);
}
