#include <cstdint>

#include <doctest/doctest.h>

#include <cleave/kernels/host/gather_rows.hpp>

using namespace cleave;
using namespace cleave::kernels;

namespace {

Tensor<float, 2> counting(index_t rows, index_t cols) {
  Tensor<float, 2> t({rows, cols});
  for (index_t i = 0; i < t.size(); ++i) t.data()[i] = float(i + 1);
  return t;
}

}  // namespace

TEST_CASE("gathered rows are those of the indices, whatever the strides") {
  const auto table = counting(5, 3), transposed = counting(3, 5).transpose(0, 1);
  const Tensor<std::int64_t, 2> plain({2, 3}, {4, 0, 2, 2, 1, 3});
  for (const auto& indices : {plain, plain.transpose(0, 1).clone().transpose(0, 1)})
    for (const auto& rows : {table, transposed}) {
      const Tensor<float, 3> out({2, 3, 3}), spaced = Tensor<float, 3>({3, 2, 3}).transpose(0, 1);
      CHECK(!gather_rows(On<Host>{}, read(rows), read(indices), write(out), {0, 5}));
      CHECK(!gather_rows(On<Host>{}, read(rows), read(indices), write(spaced), {0, 5}));
      index_t wrong = 0;
      for (index_t i = 0; i < 2; ++i)
        for (index_t j = 0; j < 3; ++j)
          for (index_t k = 0; k < 3; ++k) {
            wrong += out(i, j, k) != rows(indices(i, j), k);
            wrong += spaced(i, j, k) != rows(indices(i, j), k);
          }
      CHECK(wrong == 0);
    }
}

TEST_CASE("rows are added where the indices say, others stay") {
  const auto values = counting(3, 3);
  const Tensor<std::uint8_t, 1> indices({3}, {3, 1, 3});
  const Tensor<float, 2> table({5, 3}), transposed = Tensor<float, 2>({3, 5}).transpose(0, 1);
  for (const auto& to : {table, transposed}) {
    to.fill_(-1.0f);
    CHECK(!scatter_add_rows(On<Host>{}, read(values), read(indices), write(to), {0, 5}));
    for (index_t k = 0; k < 3; ++k) {
      CHECK(to(3, k) == values(0, k) + values(2, k) - 1);
      CHECK(to(1, k) == values(1, k) - 1);
      CHECK(to(0, k) + to(2, k) + to(4, k) == -3.0f);
    }
  }
}

TEST_CASE("rows of any length are added") {
  for (const index_t n : {1, 15, 16, 17, 50}) {
    const auto values = counting(6, n);
    const Tensor<std::int32_t, 1> indices({6}, {1, 0, 1, 1, 0, 1});
    const Tensor<float, 2> table({2, n});
    table.fill_(0.5f);
    CHECK(!scatter_add_rows(On<Host>{}, read(values), read(indices), write(table), {0, 2}));
    for (index_t k = 0; k < n; ++k) {
      CHECK(table(0, k) == values(1, k) + values(4, k) + 0.5f);
      CHECK(table(1, k) == values(0, k) + values(2, k) + values(3, k) + values(5, k) + 0.5f);
    }
  }
}

TEST_CASE("an index that is out of range is reported; its row is zeros, or left out") {
  const auto table = counting(4, 2).clone();
  const Tensor<std::int32_t, 1> indices({4}, {1, 4, -2, 0});
  const Tensor<float, 2> out({4, 2});
  out.fill_(9.0f);
  CHECK(gather_rows(On<Host>{}, read(table), read(indices), write(out), {0, 4}) == 4);
  CHECK(out(1, 0) + out(1, 1) + out(2, 0) + out(2, 1) == 0.0f);
  CHECK(out(3, 1) == table(0, 1));
  CHECK(scatter_add_rows(On<Host>{}, read(out), read(indices), write(table), {0, 4}) == 4);
  CHECK(table(1, 0) == 6.0f);  // doubled
  CHECK(table(3, 1) == 8.0f);  // unchanged
}

TEST_CASE("indices of rows on other ranks are not errors") {
  const auto table = counting(2, 2).clone();  // rows 3 and 4 of 6
  const Tensor<std::int32_t, 1> indices({4}, {3, 0, 4, 6});
  const Tensor<float, 2> out({4, 2});
  out.fill_(9.0f);
  CHECK(gather_rows(On<Host>{}, read(table), read(indices), write(out), {3, 6}) == 6);
  CHECK(out(0, 1) == 2.0f);
  CHECK(out(2, 0) == 3.0f);
  CHECK(out(1, 0) + out(1, 1) + out(3, 0) + out(3, 1) == 0.0f);
  CHECK(scatter_add_rows(On<Host>{}, read(out), read(indices), write(table), {3, 6}) == 6);
  CHECK(table(0, 1) == 4.0f);
  CHECK(table(1, 0) == 6.0f);
}

TEST_CASE("a table of numbers has rows of one; a table without rows has no index") {
  const Tensor<double, 1> table({3}, {5, 6, 7}), out({2}), none({0});
  const Tensor<std::int32_t, 1> indices({2}, {2, 0}), no_indices({0});
  CHECK(!gather_rows(On<Host>{}, read(table), read(indices), write(out), {0, 3}));
  CHECK(out(0) == 7.0);
  CHECK(out(1) == 5.0);
  CHECK(gather_rows(On<Host>{}, read(none), read(indices), write(out), {0, 0}) == 2);
  CHECK(!gather_rows(On<Host>{}, read(none), read(no_indices), write(none), {0, 0}));
}
