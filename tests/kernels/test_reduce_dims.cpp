#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/host/reduce_dims.hpp>

#include "reduced_extents.hpp"

using namespace cleave;
using namespace cleave::kernels;

namespace {

template <class T>
T entry(index_t i) {
  const int value = int(i * 7 % 11) - 5;
  if constexpr (is_complex<T>) return T(float(value), float(i % 3));
  else return T(float(value));
}

/// Extents and strides of a tensor without the reduced dimensions, by brute force.
template <class Op, class T>
void check(const Tensor<T, 3>& in, unsigned mask) {
  std::vector<index_t> kept;
  for (int d = 0; d < 3; ++d)
    if (!(mask >> d & 1u)) kept.push_back(in.extent(d));
  Shape extents;
  for (const index_t e : kept) extents[extents.dims++] = e;
  std::vector<T> out(std::size_t(extents.product()) + 1, T(99));
  const Strided<T> target{out.data(), extents, row_major_strides(extents)};
  reduce_dims<Op>(On<Host>{}, read(in), mask, target);

  using A = accumulator_t<T>;
  std::vector<A> expected(std::size_t(extents.product()), Fold<Op>::template identity<A>());
  for (index_t i = 0; i < in.extent(0); ++i) {
    for (index_t j = 0; j < in.extent(1); ++j) {
      for (index_t k = 0; k < in.extent(2); ++k) {
        index_t at = 0;
        if (!(mask & 1u)) at = at * in.extent(0) + i;
        if (!(mask & 2u)) at = at * in.extent(1) + j;
        if (!(mask & 4u)) at = at * in.extent(2) + k;
        A& e = expected[std::size_t(at)];
        const A x = A(in(i, j, k));
        if constexpr (std::is_same_v<Op, Sum>) e = A(e + x);
        else if constexpr (std::is_same_v<Op, Max>) e = x > e ? x : e;
        else e = x < e ? x : e;
      }
    }
  }
  index_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) wrong += !(out[i] == T(expected[i]));
  CHECK(wrong == 0);
  CHECK(out.back() == T(99));  // nothing is written past the result
}

template <class Op, class T>
void check_all() {
  for (const std::array<index_t, 3>& extents : reduced_extents) {
    const Tensor<T, 3> plain(extents);
    for (index_t i = 0; i < plain.size(); ++i) plain.data()[i] = entry<T>(i);
    const auto transposed = plain.transpose(0, 2), skewed = plain.permute({1, 2, 0});
    for (unsigned mask = 0; mask < 8; ++mask) {
      CAPTURE(mask);
      CAPTURE(to_string(Shape(extents)));
      check<Op>(plain, mask);
      check<Op>(transposed, mask);
      check<Op>(skewed, mask);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("sums equal naive sums over any dimensions", T, float, double, half, bfloat16,
                   std::complex<float>, std::int32_t, std::int64_t) {
  check_all<Sum, T>();
}

TEST_CASE_TEMPLATE("maxima and minima equal naive ones over any dimensions", T, float, double, half,
                   std::int64_t, std::int8_t) {
  check_all<Max, T>();
  check_all<Min, T>();
}

TEST_CASE("a product multiplies every element") {
  const Tensor<double, 2> x({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor<double, 1> rows({2}), cols({3});
  reduce_dims<Product>(On<Host>{}, read(x), 2u, write(rows));
  CHECK(rows(0) == 6);
  CHECK(rows(1) == 120);
  reduce_dims<Product>(On<Host>{}, read(x), 1u, write(cols));
  CHECK(cols(2) == 18);
}

TEST_CASE("a NaN is the maximum and the minimum, wherever it stands") {
  for (index_t n : {3, 50, 3000}) {
    for (index_t at = 0; at < n; at += n / 3) {
      Tensor<float, 2> x({n, 2});
      x.fill_(1.0f);
      x(at, 0) = std::nanf("");
      Tensor<float, 1> out({2});
      reduce_dims<Max>(On<Host>{}, read(x), 1u, write(out));
      CHECK(std::isnan(out(0)));
      CHECK(out(1) == 1.0f);
      const auto transposed = x.transpose(0, 1).clone();
      reduce_dims<Min>(On<Host>{}, read(transposed), 2u, write(out));
      CHECK(std::isnan(out(0)));
      CHECK(out(1) == 1.0f);
    }
  }
}

TEST_CASE("the error of a long float sum does not grow with the number of elements") {
  constexpr index_t n = 1 << 22;
  Tensor<float, 2> row({1, n}), col({n, 1});
  row.fill_(0.1f);
  col.fill_(0.1f);
  Tensor<float, 1> out({1});
  const double exact = double(0.1f) * double(n);
  reduce_dims<Sum>(On<Host>{}, read(row), 2u, write(out));
  CHECK(std::abs(double(out(0)) - exact) / exact < 1e-6);
  reduce_dims<Sum>(On<Host>{}, read(col), 1u, write(out));
  CHECK(std::abs(double(out(0)) - exact) / exact < 1e-6);
  Tensor<float, 2> wide({1 << 16, 3});
  wide.fill_(0.1f);
  Tensor<float, 1> three({3});
  reduce_dims<Sum>(On<Host>{}, read(wide), 1u, write(three));
  const double part = double(0.1f) * double(1 << 16);
  CHECK(std::abs(double(three(2)) - part) / part < 1e-5);
}

TEST_CASE("sums of bools count") {
  const Tensor<bool, 1> x({5}, {true, false, true, true, false});
  const Tensor<index_t, 0> out;
  reduce_dims<Sum>(On<Host>{}, read(x), 1u, write(out));
  CHECK(out() == 3);
}

TEST_CASE("sums of integers wrap") {
  const Tensor<std::int32_t, 1> x({2}, {std::numeric_limits<std::int32_t>::max(), 1});
  const Tensor<std::int32_t, 0> out;
  reduce_dims<Sum>(On<Host>{}, read(x), 1u, write(out));
  CHECK(out() == std::numeric_limits<std::int32_t>::min());
}

TEST_CASE_TEMPLATE(
    "infinities of both signs are not taken for NaN, however many elements there are", T, float,
    double) {
  const T inf = std::numeric_limits<T>::infinity();
  for (const index_t n : {2, 10, 31, 64, 1000}) {
    const Tensor<T, 2> x({3, n});
    for (index_t i = 0; i < x.size(); ++i) x.data()[i] = T(i % 7);
    x(1, 0) = inf;
    x(1, n - 1) = -inf;
    x(2, n / 2) = std::numeric_limits<T>::quiet_NaN();
    const auto check = [n, inf](const Tensor<T, 2>& of, unsigned mask) {
      const Tensor<T, 1> most({3}), least({3});
      reduce_dims<Max>(On<Host>{}, read(of), mask, write(most));
      reduce_dims<Min>(On<Host>{}, read(of), mask, write(least));
      CHECK(most(1) == inf);
      CHECK(least(1) == -inf);
      CHECK(most(2) != most(2));
      CHECK(least(2) != least(2));
      CHECK(most(0) == T(n < 7 ? n - 1 : 6));
      CHECK(least(0) == 0);
    };
    check(x, 2u);
    check(x.transpose(0, 1).clone(), 1u);
  }
}
