#include <algorithm>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <string>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/add_rows_cuda.hpp>
#include <cleave/kernels/cuda/gather_rows_cuda.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

/// Indices into `rows` rows; each row occurs at least once if there are enough indices.
template <class I>
Placed<I> indices_at(const Place& place, index_t rows) {
  HostArray<I> buffer(place.size);
  for (index_t i = 0; i < buffer.size; ++i) buffer[i] = I((i * 5 + 3) % rows);
  return Placed<I>(place, std::move(buffer));
}

index_t row_size(const Place& table) { return table.extents.product() / table.extents[0]; }

template <class I, class T>
index_t misgathered(const Place& from, const Place& by, const Place& to) {
  const Placed<T> table(from, 3), out(to, 40);
  const Placed<I> indices = indices_at<I>(by, from.extents[0]);
  gather_rows(On<Cuda>{}, table.read(), indices.read(), out.write(), {0, from.extents[0]});
  const index_t row = row_size(from);
  const HostArray<T> rows = table.values();
  const HostArray<I> chosen = indices.values();
  HostArray<T> expected(chosen.size * row);
  for (index_t i = 0; i < chosen.size; ++i)
    for (index_t k = 0; k < row; ++k) expected[i * row + k] = rows[index_t(chosen[i]) * row + k];
  return out.wrong(expected);
}

template <class I, class T>
index_t misadded(const Place& from, const Place& by, const Place& to) {
  const Placed<T> values(from, 3), table(to, 40);
  const Placed<I> indices = indices_at<I>(by, to.extents[0]);
  scatter_add_rows(On<Cuda>{}, values.read(), indices.read(), table.write(), {0, to.extents[0]});
  const index_t row = row_size(to);
  const HostArray<T> rows = values.values();
  const HostArray<I> chosen = indices.values();
  HostArray<T> expected = table.values();
  for (index_t i = 0; i < chosen.size; ++i)
    for (index_t k = 0; k < row; ++k) {
      T& sum = expected[index_t(chosen[i]) * row + k];
      sum = plus(sum, rows[i * row + k]);
    }
  return table.wrong(expected);
}

}  // namespace

TEST_CASE_TEMPLATE("gathered rows are those of the indices, whatever the strides", T, std::uint8_t,
                   half, float, std::complex<double>) {
  for (const index_t cols : {0, 1, 3, 8, 33, 64})
    for (const index_t first : {0, 1}) {
      CAPTURE(cols);
      CAPTURE(first);
      const Shape table = shape({7, cols}), indices = shape({3, 6}), out = shape({3, 6, cols});
      CHECK(misgathered<std::int64_t, T>(Place::of(table), Place::of(indices),
                                         Place::of(out, {}, {}, first)) == 0);
      CHECK(misgathered<std::int32_t, T>(Place::of(table, {}, {0, 16}, first),
                                         Place::of(indices, {1, 0}), Place::of(out)) == 0);
      CHECK(misgathered<std::uint8_t, T>(Place::of(table, {1, 0}), Place::of(indices, {}, {0, 2}),
                                         Place::of(out, {2, 0, 1}, {0, 1, 0})) == 0);
    }
}

TEST_CASE("rows may have several dimensions, or none") {
  CHECK(misgathered<std::int32_t, float>(Place::of(shape({5, 4, 6}), {0, 2, 1}),
                                         Place::of(shape({11})),
                                         Place::of(shape({11, 4, 6}))) == 0);
  CHECK(misgathered<std::int32_t, float>(Place::of(shape({5})), Place::of(shape({2, 40})),
                                         Place::of(shape({2, 40}), {1, 0})) == 0);
  CHECK(misgathered<std::int32_t, double>(Place::of(shape({5, 3})), Place::of(shape({})),
                                          Place::of(shape({3}))) == 0);
  CHECK(misgathered<std::int32_t, double>(Place::of(shape({5, 3})), Place::of(shape({0})),
                                          Place::of(shape({0, 3}))) == 0);
}

TEST_CASE_TEMPLATE("rows are added where the indices say, others stay", T, std::int8_t, half,
                   std::int64_t, float, std::complex<double>) {
  for (const index_t cols : {1, 5, 32})
    for (const index_t first : {0, 1}) {
      CAPTURE(cols);
      const Shape values = shape({6, cols}), table = shape({9, cols});
      CHECK(misadded<std::int64_t, T>(Place::of(values), Place::of(shape({6})),
                                      Place::of(table, {}, {}, first)) == 0);
      CHECK(misadded<std::uint8_t, T>(Place::of(values, {1, 0}), Place::of(shape({6})),
                                      Place::of(table, {}, {0, 4})) == 0);
    }
}

TEST_CASE_TEMPLATE("values of one index are added in the order of their positions, rounded once", T,
                   float, half, bfloat16) {
  // Any other order, or rounding in between, gives other sums: large values cancel, small ones
  // stay.
  constexpr index_t count = 1500, cols = 3, rows = 4;
  HostArray<T> elements(count * cols + 9);
  HostArray<int> chosen(count + 10);
  for (index_t i = 0; i < count; ++i) {
    chosen[i] = int(i % 3);
    for (index_t k = 0; k < cols; ++k)
      elements[i * cols + k] = T(i % 7 == 0   ? 3000.0f
                                 : i % 7 == 3 ? -3000.0f
                                              : 0.01f * float(i % 11 + k));
  }
  const Placed<T> values(Place::of(shape({count, cols})), std::move(elements));
  const Placed<int> indices(Place::of(shape({count})), std::move(chosen));
  HostArray<T> zeros(rows * cols + 9);
  const Placed<T> table(Place::of(shape({rows, cols})), std::move(zeros));
  scatter_add_rows(On<Cuda>{}, values.read(), indices.read(), table.write(), {0, rows});
  const HostArray<T> terms = values.values();
  HostArray<float> sums(rows * cols);
  HostArray<T> expected(rows * cols);
  for (index_t i = 0; i < count; ++i)
    for (index_t k = 0; k < cols; ++k) sums[i % 3 * cols + k] += float(terms[i * cols + k]);
  for (index_t k = 0; k < rows * cols; ++k) expected[k] = T(sums[k]);
  CHECK(table.wrong(expected) == 0);
}

TEST_CASE("an index that is out of range is reported; its row is zeros, or left out") {
  const Place place = Place::of(shape({2, 40}), {1, 0});
  HostArray<std::int32_t> buffer(place.size);
  for (index_t i = 0; i < 80; ++i) buffer[i] = std::int32_t(i % 5);
  buffer[31] = -7;  // at [1, 15]
  buffer[14] = 5;   // at [0, 7]
  buffer[20] = 90;  // at [0, 10]
  const Placed<std::int32_t> indices(place, std::move(buffer));
  const Placed<float> table(Place::of(shape({5, 8}))), out(Place::of(shape({2, 40, 8})));
  const auto is_one_of = [](const std::string& text, std::initializer_list<const char*> allowed) {
    return std::find(allowed.begin(), allowed.end(), text) != allowed.end();
  };
  gather_rows(On<Cuda>{}, table.read(), indices.read(), out.write(), {0, 5, "rows"});
  CHECK(is_one_of(reported(), {"rows: index 5 is not in [0, 5)", "rows: index 90 is not in [0, 5)",
                               "rows: index -7 is not in [0, 5)"}));
  const HostArray<float> rows = table.values(), now = out.result();
  const HostArray<std::int32_t> chosen = indices.values();
  index_t wrong = 0;
  for (index_t i = 0; i < 80; ++i)
    for (index_t k = 0; k < 8; ++k)
      wrong += now[i * 8 + k] != (chosen[i] >= 0 && chosen[i] < 5 ? rows[chosen[i] * 8 + k] : 0.0f);
  CHECK(wrong == 0);

  const Placed<float> target(Place::of(shape({5, 8})), 70);
  const HostArray<float> before = target.values();
  // the kernel sees the user's index plus 3 if the index is too large; the error has the user's
  scatter_add_rows(On<Cuda>{}, out.read(), indices.read(), target.write(), {0, 5, "sums", 3});
  CHECK(is_one_of(reported(), {"sums: index 2 is not in [0, 2)", "sums: index 87 is not in [0, 2)",
                               "sums: index -7 is not in [0, 2)"}));
  HostArray<float> sums(40);
  for (index_t i = 0; i < 40; ++i) sums[i] = before[i];
  for (index_t i = 0; i < 80; ++i)
    for (index_t k = 0; k < 8 && chosen[i] >= 0 && chosen[i] < 5; ++k)
      sums[chosen[i] * 8 + k] += now[i * 8 + k];
  CHECK(target.wrong(sums) == 0);

  // this part has rows 2 to 6 of 9
  gather_rows(On<Cuda>{}, table.read(), indices.read(), out.write(), {2, 9});
  CHECK(is_one_of(reported(),
                  {"index: index 90 is not in [0, 9)", "index: index -7 is not in [0, 9)"}));
  const HostArray<float> parts = out.result();
  for (index_t i = 0; i < 80; ++i)
    for (index_t k = 0; k < 8; ++k)
      wrong += parts[i * 8 + k] !=
               (chosen[i] >= 2 && chosen[i] < 7 ? rows[(chosen[i] - 2) * 8 + k] : 0.0f);
  CHECK(wrong == 0);
}
