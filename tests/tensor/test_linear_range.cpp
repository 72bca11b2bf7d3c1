#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/tensor/linear_range.hpp>
#include <cleave/tensor/tensor.hpp>

using namespace cleave;

namespace {

/// A view of 3 x 4 x 5 elements with the given strides, and its elements in row-major order.
struct Sample {
  std::vector<std::int32_t> memory = std::vector<std::int32_t>(400);
  Shape extents = Shape(std::array<index_t, 3>{3, 4, 5});
  Shape strides;

  explicit Sample(std::array<index_t, 3> s) : strides(s) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = std::int32_t(i * 13 % 401);
  }

  std::size_t offset(index_t flat) const {
    return std::size_t(flat / 20 * strides[0] + flat / 5 % 4 * strides[1] + flat % 5 * strides[2]);
  }
  View view() { return {memory.data(), DType::int32, extents, strides}; }
};

const std::array<index_t, 3> all_strides[] = {{20, 5, 1}, {1, 3, 12}, {60, 10, 2},
                                              {30, 7, 1}, {5, 20, 1}, {20, 5, 0}};

}  // namespace

TEST_CASE("every range of a strided view is packed in row-major order") {
  for (const auto& strides : all_strides) {
    Sample sample(strides);
    index_t wrong = 0;
    for (index_t begin = 0; begin <= 60; ++begin)
      for (index_t count = 0; begin + count <= 60; ++count) {
        std::vector<std::int32_t> packed(62, -1);
        detail::pack_range(sample.view(), begin, count, packed.data() + 1);
        wrong += packed[0] != -1 || packed[std::size_t(count) + 1] != -1;
        for (index_t i = 0; i < count; ++i)
          wrong += packed[std::size_t(i) + 1] != sample.memory[sample.offset(begin + i)];
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a range is unpacked to where it was packed from, and nowhere else") {
  for (const auto& strides : all_strides) {
    if (strides[2] == 0) continue;  // elements with stride 0 share one address
    for (const auto& [begin, count] :
         {std::pair<index_t, index_t>{0, 60}, {7, 31}, {59, 1}, {4, 0}}) {
      Sample sample(strides);
      std::vector<std::int32_t> expected = sample.memory, dense(60);
      for (index_t i = 0; i < count; ++i) {
        dense[std::size_t(i)] = std::int32_t(1000 + i);
        expected[sample.offset(begin + i)] = dense[std::size_t(i)];
      }
      detail::unpack_range(dense.data(), sample.view(), begin, count);
      CHECK(sample.memory == expected);
    }
  }
}

TEST_CASE("a range is copied between views of any strides, block by block") {
  // 20,001 numbers are several blocks
  const index_t n = 20001;
  std::vector<double> from(2 * std::size_t(n)), to(3 * std::size_t(n), -1.0);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = double(i);
  const ConstView source{from.data(), DType::float64, Shape::filled(1, n), Shape::filled(1, 2)};
  const View destination{to.data(), DType::float64, Shape::filled(1, n), Shape::filled(1, 3)};
  detail::copy_range(source, destination, 5, n - 7);
  index_t wrong = 0;
  for (index_t i = 0; i < 3 * n; ++i) {
    const bool inside = i % 3 == 0 && i / 3 >= 5 && i / 3 < n - 7;
    wrong += to[std::size_t(i)] != (inside ? double(i / 3 * 2) : -1.0);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a scalar is a range of one element") {
  const float from = 3;
  float to = 0;
  detail::copy_range(ConstView::dense(&from, DType::float32, {}),
                     View::dense(&to, DType::float32, {}), 0, 1);
  CHECK(to == 3);
}
