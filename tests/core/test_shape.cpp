#include <doctest/doctest.h>

#include <string>

#include <cleave/core/shape.hpp>

using namespace cleave;

TEST_CASE("a shape without dimensions has one element, one with an empty dimension none") {
  CHECK(Shape{}.product() == 1);
  CHECK(Shape::filled(3, 0).product() == 0);
}

TEST_CASE("row-major strides count the elements of the dimensions to the right") {
  const Shape strides = row_major_strides(Shape(std::array<index_t, 3>{5, 6, 7}));
  CHECK(to_string(strides) == "[42, 7, 1]");
}
