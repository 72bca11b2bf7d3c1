// Tensors from and to vectors, spans and arrays: what is copied, what is shared, what is refused.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/core/error.hpp>
#include <cleave/tensor/spans.hpp>

#include "errors.hpp"

using namespace cleave;
using cleave::testing::error_of;

TEST_CASE("to_tensor copies values, which may be const, row-major") {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto matrix = to_tensor(values, {2, 3});
  static_assert(std::is_same_v<decltype(matrix), const Tensor<float, 2>>);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) CHECK(matrix(i, j) == values[std::size_t(3 * i + j)]);
  matrix(1, 2) = 9;
  CHECK(values[5] == 6);

  CHECK(to_tensor(std::span<const float>(values).subspan(2)).shape() == std::array<index_t, 1>{4});
  const int c_array[] = {7, 8};
  CHECK(to_tensor(c_array)(1) == 8);
  CHECK(to_tensor(std::array<long long, 2>{5, 6})(0) == 5);
  CHECK(to_tensor(std::vector<std::uint16_t>{65535}, matrix.slice(0, 0, 1).slice(1, 0, 1).shape())
            .item() == 65535);
  CHECK(to_tensor(std::vector<double>{}, {0, 4}).size() == 0);
}

TEST_CASE("as_tensor shares memory with what it was made from") {
  std::vector<short> values{1, 2, 3, 4};
  const auto matrix = as_tensor(values, {2, 2});
  matrix(1, 0) = 30;
  CHECK(values[2] == 30);
  values[0] = 10;
  CHECK(matrix(0, 0) == 10);
  const auto tail = as_tensor(std::span(values).last(1));
  tail(0) = 40;
  CHECK(matrix(1, 1) == 40);
}

TEST_CASE("adopt keeps the vector in the tensor, without a copy") {
  std::vector<double> values(1000, 2.5);
  const double* const data = values.data();
  Tensor<double, 1> row;
  {
    const auto matrix = adopt(std::move(values), {10, 100});
    CHECK(matrix.data() == data);
    row = matrix.select(0, 9);
  }
  CHECK(row.data() == data + 900);
  CHECK(row(99) == 2.5);
  CHECK(adopt(std::vector<float>{}, {0}).empty());
}

TEST_CASE("to_vector copies elements of any strides; as_span shows those of contiguous tensors") {
  const auto matrix = to_tensor(std::vector<int>{1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(to_vector(matrix) == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(to_vector(matrix.transpose(0, 1)) == std::vector<int>{1, 4, 2, 5, 3, 6});
  CHECK(to_vector(matrix.slice(0, 1, 1)).empty());
  const Tensor<bool, 1> truth({2}, {true, false});
  CHECK(to_vector(truth) == std::vector<bool>{true, false});

  const std::span<int> all = as_span(matrix);
  CHECK(all.size() == 6);
  all[4] = 50;
  CHECK(matrix(1, 1) == 50);
  CHECK(as_span(matrix.select(0, 1))[1] == 50);
  CHECK(error_of([&] { (void)as_span(matrix.transpose(0, 1)); }) ==
        "as_span: the tensor is not contiguous; clone it, or copy it: to_vector [shapes [3, 2]]");
}

TEST_CASE("the numbers of values and elements must be equal") {
  std::vector<float> values(5);
  const std::string rest = ": 5 values for 6 elements [shapes [2, 3]]";
  CHECK(error_of([&] { (void)to_tensor(values, {2, 3}); }) == "to_tensor" + rest);
  CHECK(error_of([&] { (void)as_tensor(values, {2, 3}); }) == "as_tensor" + rest);
  CHECK(error_of([&] { (void)adopt(std::vector<float>(5), {2, 3}); }) == "adopt" + rest);
  CHECK(error_of([&] { (void)to_tensor(values, {-1, 5}); }) != "");
}
