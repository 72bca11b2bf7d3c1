// Ownership compared with lists of indices cut by hand, for every rank, without communication.
#include <algorithm>
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

TEST_CASE("a cut places every index where the list that has it is cut by hand") {
  int places = 0, windows = 0;
  for (index_t extent = 0; extent <= 24; ++extent)
    for (index_t parts = 1; parts <= 7; ++parts) {
      const DimCut cut(extent, parts);
      Indices all, owner(std::size_t(extent), -1);
      for (index_t i = 0; i < extent; ++i) all.push_back(i);
      const auto lists = naive::chunks(all, parts);
      std::size_t longest = 0, shortest = all.size();
      for (index_t part = 0; part < parts; ++part) {
        const Indices& own = lists[std::size_t(part)];
        longest = std::max(longest, own.size()), shortest = std::min(shortest, own.size());
        REQUIRE(cut.range(part).size() == index_t(own.size()));
        for (std::size_t l = 0; l < own.size(); ++l, ++places) {
          std::size_t run = 1;
          while (l + run < own.size() && own[l + run] == own[l] + index_t(run)) ++run;
          REQUIRE(cut.place(own[l]) == DimCut::Place{part, index_t(l), index_t(run)});
          owner[std::size_t(own[l])] = part;
        }
      }
      REQUIRE(cut.is_even() == (longest == shortest));
      REQUIRE(cut.range(0).size() == index_t(longest));
      const SampledParts samples{parts};
      bool has_longest = false, has_shortest = false;
      for (index_t i = 0; i < samples.count(); ++i) {
        const std::size_t size = lists[std::size_t(samples[i])].size();
        has_longest = has_longest || size == longest;
        has_shortest = has_shortest || size == shortest;
        REQUIRE((i == 0 || samples[i - 1] < samples[i]));
      }
      REQUIRE((has_longest && has_shortest));
      for (index_t begin = -2; begin <= extent + 2; ++begin)
        for (index_t end = begin - 1; end <= extent + 2; ++end, ++windows) {
          Indices met;
          for (index_t i = std::max<index_t>(begin, 0); i < std::min(end, extent); ++i)
            if (met.empty() || met.back() != owner[std::size_t(i)])
              met.push_back(owner[std::size_t(i)]);
          const IndexRange found = cut.parts_within({begin, end});
          REQUIRE(found.size() == index_t(met.size()));
          if (!met.empty()) REQUIRE(found == IndexRange{met.front(), met.back() + 1});
        }
    }
  CHECK(SampledParts{3}.count() == 3);
  CHECK((SampledParts{7}.count() == 4 && SampledParts{7}[1] == 1 && SampledParts{7}[2] == 5));
  CHECK(places == 2100);
  CHECK(windows == 34300);
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
  static_assert(DimCut(most, 4).place(most - 1).part == 3);
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
