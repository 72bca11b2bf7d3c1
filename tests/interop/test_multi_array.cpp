// Boost.MultiArray's arrays and views as tensors, and tensors as references: the same memory.
#include <cstdint>
#include <memory>

#include <doctest/doctest.h>

#include <cleave/interop/multi_array.hpp>

#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Array = boost::multi_array<double, 3>;

/// Element (i, j, k) is 100 i + 10 j + k, by Boost's own indices.
void fill(Array& values) {
  const auto* base = values.index_bases();
  for (int i = 0; i < int(values.shape()[0]); ++i)
    for (int j = 0; j < int(values.shape()[1]); ++j)
      for (int k = 0; k < int(values.shape()[2]); ++k)
        values[i + base[0]][j + base[1]][k + base[2]] = 100 * i + 10 * j + k;
}

void check(const Tensor<double, 3>& x, const Array& values) {
  CHECK(x.data() == values.data());
  CHECK(x.shape() == std::array<index_t, 3>{2, 3, 4});
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) CHECK(x(i, j, k) == 100 * i + 10 * j + k);
}

}  // namespace

TEST_CASE("arrays of any storage order and first indices are tensors of the same memory") {
  Array c(boost::extents[2][3][4]);
  fill(c);
  check(multi_array::as_tensor(c), c);
  Array fortran(boost::extents[2][3][4], boost::fortran_storage_order());
  fill(fortran);
  check(multi_array::as_tensor(fortran), fortran);
  using Range = Array::extent_range;
  Array shifted(boost::extents[Range(-3, -1)][Range(5, 8)][4]);
  fill(shifted);
  check(multi_array::as_tensor(shifted), shifted);
  multi_array::as_tensor(c)(1, 2, 3) = -1;
  CHECK(c[1][2][3] == -1);
}

TEST_CASE("views of arrays are tensors with strides") {
  Array values(boost::extents[2][3][4]);
  fill(values);
  using Range = Array::index_range;
  auto part = values[boost::indices[1][Range(0, 3, 2)][Range(1, 4)]];
  const auto x = multi_array::as_tensor(part);
  static_assert(decltype(x)::dims == 2);
  CHECK(x.shape() == std::array<index_t, 2>{2, 3});
  for (int j = 0; j < 2; ++j)
    for (int k = 0; k < 3; ++k) CHECK(&x(j, k) == &values[1][2 * j][k + 1]);
}

TEST_CASE("a tensor keeps the owner of its elements") {
  const auto values = std::make_shared<Array>(boost::extents[2][3][4]);
  {
    const auto x = multi_array::as_tensor(*values, values);
    CHECK(values.use_count() == 2);
  }
  CHECK(values.use_count() == 1);
}

TEST_CASE("references to tensors have their memory; others are errors") {
  const Tensor<std::int32_t, 2> x({2, 3});
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) x(i, j) = 10 * i + j;
  auto reference = multi_array::reference(x);
  CHECK((reference.data() == x.data() && reference.shape()[1] == 3 && reference[1][2] == 12));
  reference[0][1] = 7;
  CHECK(x(0, 1) == 7);
  CHECK(contains(error_of([&] { multi_array::reference(x.transpose(0, 1)); }), "not contiguous"));
}
