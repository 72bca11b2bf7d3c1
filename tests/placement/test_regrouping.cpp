// Where shards of merged and split dimensions end, and the boxes of ranges, by naive loops.
#include <array>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/placement/regrouping.hpp>

#include "naive.hpp"

using namespace cleave;

TEST_CASE("shards of a group agree where those of its first factor have the same elements") {
  int agree = 0, differ = 0;
  for (const naive::Indices& mesh : {naive::Indices{1, 1}, {2, 1}, {3, 1}, {2, 2}, {3, 2}, {2, 4}})
    for (index_t outer = 0; outer <= 13; ++outer)
      for (const index_t inner : {0, 1, 2, 3, 5}) {
        const Layout layout{{Placement::shard(0), Placement::shard(0)}, 2};
        bool expected = true;
        for (const naive::Indices& here : naive::all_indices(mesh)) {
          naive::Indices wanted;
          for (const index_t i : naive::owned(layout, 0, {outer}, mesh, here))
            for (index_t j = 0; j < inner; ++j) wanted.push_back(i * inner + j);
          expected = expected && naive::owned(layout, 0, {outer * inner}, mesh, here) == wanted;
        }
        CAPTURE(outer);
        CAPTURE(inner);
        CHECK(detail::shards_agree(outer, inner, outer * inner, 1, mesh.data(), 2) == expected);
        CHECK(detail::shards_agree(outer * inner, 1, outer, inner, mesh.data(), 2) == expected);
        ++(expected ? agree : differ);
      }
  CHECK(agree > 50);
  CHECK(differ > 50);
}

TEST_CASE("a range of elements is few boxes of several dimensions") {
  for (const naive::Indices& extents :
       {naive::Indices{7}, {3, 4}, {2, 3, 4}, {1, 5, 1}, {3, 1, 2}}) {
    const Shape shape = naive::shape_of(extents);
    const auto all = naive::all_indices(extents);
    for (std::size_t begin = 0; begin <= all.size(); ++begin)
      for (std::size_t end = begin; end <= all.size(); ++end) {
        std::vector<naive::Indices> found;
        int boxes = 0;
        detail::each_box_of_range(
            shape, 0, shape.dims, {index_t(begin), index_t(end)}, Box::of(shape),
            [&](const Box& box) {
              ++boxes;
              for (naive::Indices i : naive::all_indices(naive::to_indices(box.extents()))) {
                for (std::size_t d = 0; d < i.size(); ++d) i[d] += box.begin[int(d)];
                found.push_back(i);
              }
            });
        CHECK(found ==
              std::vector<naive::Indices>(all.begin() + long(begin), all.begin() + long(end)));
        CHECK(boxes <= 2 * shape.dims - 1);
      }
  }
}
