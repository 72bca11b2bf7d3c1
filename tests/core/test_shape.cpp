#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/core/shape.hpp>

using namespace cleave;

namespace {

Shape shape(std::initializer_list<index_t> values) {
  Shape result;
  for (const index_t value : values) result[result.dims++] = value;
  return result;
}

// All indices of a box, computed one by one; none if an extent is negative.
std::vector<std::array<index_t, 2>> indices(const Box& box) {
  std::vector<std::array<index_t, 2>> all;
  for (index_t i = box.begin[0]; i < box.end[0]; ++i)
    for (index_t j = box.begin[1]; j < box.end[1]; ++j) all.push_back({i, j});
  return all;
}

bool has(const Box& box, const std::array<index_t, 2>& index) {
  for (const auto& candidate : indices(box))
    if (candidate == index) return true;
  return false;
}

// Boxes in a small plane, including empty and inverted ones.
std::vector<Box> small_boxes() {
  std::vector<Box> all;
  for (index_t a = 0; a <= 3; ++a)
    for (index_t b = 0; b <= 3; ++b)
      for (index_t c = 0; c <= 2; ++c)
        for (index_t d = 0; d <= 2; ++d) all.push_back({shape({a, c}), shape({b, d})});
  return all;
}

}  // namespace

TEST_CASE("a shape without dimensions has one element, one with an empty dimension none") {
  CHECK(Shape{}.product() == 1);
  CHECK(Shape::filled(3, 0).product() == 0);
  CHECK(shape({4, 0, 7}).product() == 0);
  CHECK(shape({4, 5, 7}).product() == 140);
  CHECK(shape({1000000, 1000000}).product() == 1000000000000);
}

TEST_CASE("shapes are equal if their dimensions are, in number and in value") {
  CHECK(shape({2, 3}) == Shape(std::array<index_t, 2>{2, 3}));
  CHECK(shape({2, 3}) != shape({2, 3, 1}));
  CHECK(shape({2, 3}) != shape({3, 2}));
  CHECK(Shape{} == Shape::filled(0, 9));
  Shape rest = shape({2, 3});
  rest.values[5] = 77;  // beyond the shape's dimensions
  CHECK(rest == shape({2, 3}));
}

TEST_CASE("row-major strides count the elements of the dimensions to the right") {
  CHECK(to_string(row_major_strides(shape({5, 6, 7}))) == "[42, 7, 1]");
  CHECK(to_string(row_major_strides(shape({5, 0, 7}))) == "[0, 7, 1]");
  CHECK(row_major_strides(Shape{}) == Shape{});
}

TEST_CASE("a shape prints as a list and converts to an array") {
  CHECK(to_string(shape({5, -1})) == "[5, -1]");
  CHECK(to_string(Shape{}) == "[]");
  CHECK(to_array<2>(shape({8, 9})) == std::array<index_t, 2>{8, 9});
}

TEST_CASE("a box has as many indices as can be listed, and extents") {
  for (const Box& box : small_boxes()) {
    const auto listed = indices(box);
    CHECK(box.volume() == index_t(listed.size()));
    CHECK(box.empty() == listed.empty());
    CHECK(box.extents() == shape({box.end[0] - box.begin[0], box.end[1] - box.begin[1]}));
  }
  CHECK(Box::of(shape({4, 5})).volume() == 20);
  CHECK(Box{}.volume() == 1);
  CHECK(!Box{}.empty());
}

TEST_CASE("the intersection has the indices that both boxes have") {
  const auto boxes = small_boxes();
  int wrong = 0;
  for (const Box& a : boxes)
    for (const Box& b : boxes) {
      const Box common = intersect(a, b);
      index_t expected = 0;
      for (const auto& index : indices(a)) {
        expected += has(b, index);
        if (has(b, index)) wrong += !has(common, index);
      }
      wrong += common.volume() != expected;
      if (a.extent(0) >= 0 && a.extent(1) >= 0)
        wrong += common.extent(0) < 0 || common.extent(1) < 0;
    }
  CHECK(wrong == 0);
}

TEST_CASE("a box contains another if it has all of its indices") {
  const auto boxes = small_boxes();
  int wrong = 0;
  for (const Box& a : boxes)
    for (const Box& b : boxes) {
      bool all = true;
      for (const auto& index : indices(b)) all = all && has(a, index);
      wrong += a.contains(b) != all;
    }
  CHECK(wrong == 0);
}

TEST_CASE("a box relative to an origin keeps its extents") {
  const Box box{shape({4, 2}), shape({6, 5})};
  CHECK(box.relative_to(shape({4, 1})) == Box{shape({0, 1}), shape({2, 4})});
}
