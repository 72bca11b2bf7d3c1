#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/reduce_dims_cuda.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

/// A type in which sums are exact, or nearly so.
template <class T>
using exact_t = std::conditional_t<
    is_complex<T>, std::complex<double>,
    std::conditional_t<!std::is_integral_v<T>, double,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>>;

template <class T>
exact_t<T> exact(const T& value) {
  if constexpr (is_complex<T>) return {double(value.real()), double(value.imag())};
  else return exact_t<T>(accumulator_t<T>(value));
}

template <class Op, class E>
E combined(const E& a, const E& b) {
  if constexpr (std::is_same_v<Op, Sum>) return a + b;
  else if constexpr (std::is_same_v<Op, Product>) return a * b;
  else if constexpr (std::is_same_v<Op, Max>) return b > a ? b : a;
  else return b < a ? b : a;
}

Shape kept_extents(const Shape& extents, unsigned mask) {
  Shape kept;
  for (int d = 0; d < extents.dims; ++d)
    if (!(mask >> d & 1u)) kept[kept.dims++] = extents[d];
  return kept;
}

/// The reduction, element by element in row-major order.
template <class Op, class R, class T>
std::vector<exact_t<R>> reduced(const Placed<T>& in, unsigned mask) {
  const Shape& extents = in.place().extents;
  const Shape kept = kept_extents(extents, mask), strides = row_major_strides(kept);
  std::vector<exact_t<R>> result(std::size_t(kept.product()),
                                 exact(Fold<Op>::template identity<R>()));
  const HostArray<T> values = in.values();
  Shape index = Shape::filled(extents.dims, 0);
  for (index_t i = 0; i < values.size; ++i) {
    index_t at = 0;
    for (int d = 0, k = 0; d < extents.dims; ++d)
      if (!(mask >> d & 1u)) at += index[d] * strides[k++];
    auto& e = result[std::size_t(at)];
    e = combined<Op>(e, exact_t<R>(exact(values[i])));
    for (int d = extents.dims - 1; d >= 0 && ++index[d] == extents[d]; --d) index[d] = 0;
  }
  return result;
}

/// The number of results that differ from the naive ones by more than `tolerance`, relatively.
template <class Op, class T, class R = T, class Epilogue = Same>
index_t misreduced(const Place& place, unsigned mask, double tolerance = 0,
                   const Epilogue& epilogue = {}) {
  const Placed<T> in(place, 11);
  const Placed<R> out(Place::of(kept_extents(place.extents, mask), {}, {}, 1));
  reduce_dims<Op>(On<Cuda>{}, in.read(), mask, out.write(), epilogue);
  const auto expected = reduced<Op, R>(in, mask);
  return out.wrong(expected, [&](const R& actual, const exact_t<R>& e) {
    const R rounded = R(epilogue(accumulator_t<R>(e)));
    if constexpr (!std::is_integral_v<R>) {
      const double off = std::abs(exact(actual) - exact(rounded));
      if (tolerance > 0 && off <= tolerance * std::abs(exact(rounded))) return true;
    }
    return actual == rounded;
  });
}

}  // namespace

TEST_CASE_TEMPLATE("sums equal naive sums over any dimensions of any layout", T, float, half,
                   std::complex<float>, std::int32_t) {
  for (const Shape& extents :
       {shape({2, 3, 5}), shape({1, 1, 1}), shape({4, 1, 7}), shape({0, 3, 2}), shape({3, 0, 2}),
        shape({2, 40, 33}), shape({3, 2, 300}), shape({260, 2, 3}), shape({5, 64, 8})})
    for (unsigned mask = 0; mask < 8; ++mask)
      for (const std::vector<int>& order :
           {std::vector<int>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}})
        for (const int gap : {0, 3}) {
          CAPTURE(to_string(extents));
          CAPTURE(mask);
          CAPTURE(gap);
          const double tolerance = std::is_same_v<T, half> ? 2e-3 : 0;
          CHECK(misreduced<Sum, T>(Place::of(extents, order, {0, 0, gap}, gap), mask, tolerance) ==
                0);
        }
}

TEST_CASE_TEMPLATE("maxima and minima equal naive ones", T, double, bfloat16, std::int8_t,
                   std::uint64_t, bool) {
  for (const Shape& extents : {shape({7, 40, 3}), shape({1, 300, 2}), shape({33, 1, 66})})
    for (unsigned mask = 1; mask < 8; ++mask)
      for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 0, 1}}) {
        CAPTURE(to_string(extents));
        CAPTURE(mask);
        CHECK(misreduced<Max, T>(Place::of(extents, order), mask) == 0);
        CHECK(misreduced<Min, T>(Place::of(extents, order, {}, 1), mask) == 0);
      }
}

TEST_CASE("products, means and sums of bools") {
  const Placed<double> x(Place::of(shape({2, 3})));
  CHECK(misreduced<Product, double>(Place::of(shape({3, 4})), 2u, 1e-12) == 0);
  CHECK(misreduced<Product, std::complex<double>>(Place::of(shape({4, 3})), 1u, 1e-12) == 0);
  CHECK(misreduced<Product, std::uint8_t>(Place::of(shape({40, 3})), 0u) == 0);
  CHECK(misreduced<Sum, float>(Place::of(shape({8, 5})), 1u, 0, DividedBy<float>(8)) == 0);
  CHECK(misreduced<Sum, half>(Place::of(shape({8, 5})), 2u, 1e-3, DividedBy<half>(5)) == 0);
  CHECK(misreduced<Sum, bool, index_t>(Place::of(shape({9, 1000})), 2u) == 0);
  CHECK(misreduced<Sum, bool, index_t>(Place::of(shape({1000, 9})), 1u) == 0);
}

TEST_CASE("long reductions are split over blocks, along memory and across it") {
  for (const index_t n : {20000, 70001})
    for (const Shape& extents : {shape({1, n}), shape({3, n})}) {
      CAPTURE(n);
      CHECK(misreduced<Sum, std::int64_t>(Place::of(extents), 2u) == 0);
      CHECK(misreduced<Sum, float>(Place::of(extents, {}, {0, 4}), 2u, 1e-6) == 0);
      CHECK(misreduced<Max, half>(Place::of(extents, {}, {0, 1}), 2u) == 0);
      CHECK(misreduced<Sum, std::int64_t>(Place::of(extents), 3u) == 0);
      CHECK(misreduced<Sum, std::int32_t>(Place::of(extents, {1, 0}), 2u) == 0);
      CHECK(misreduced<Sum, float>(Place::of(extents, {1, 0}, {0, 5}), 2u, 1e-6) == 0);
      CHECK(misreduced<Sum, half>(Place::of(extents, {1, 0}), 2u, 2e-3) == 0);
    }
  CHECK(misreduced<Sum, std::int64_t>(Place::of(shape({4000, 36}), {}, {0, 1}), 1u) == 0);
  CHECK(misreduced<Sum, std::complex<double>>(Place::of(shape({4000, 11})), 1u, 1e-12) == 0);
}

TEST_CASE("the error of a long float sum does not grow with the number of elements") {
  constexpr index_t n = 1 << 20;
  const auto error = [](const Shape& extents, unsigned mask) {
    Placed<float> in(Place::of(extents));
    strided_fill(Cuda{}, in.view(), 0.1f);
    const Placed<float> out(Place::of(shape({1})));
    reduce_dims<Sum>(On<Cuda>{}, in.read(), mask, out.write());
    const double expected = double(0.1f) * double(n);
    return std::abs(double(out.result()[0]) - expected) / expected;
  };
  CHECK(error(shape({1, n}), 2u) < 1e-6);
  CHECK(error(shape({n, 1}), 1u) < 1e-6);
}

TEST_CASE("a NaN is the maximum and the minimum, wherever it stands") {
  for (const index_t n : {3, 50, 3000})
    for (index_t at = 0; at < n; at += n / 3)
      for (const std::vector<int>& order : {std::vector<int>{0, 1}, {1, 0}}) {
        const Place place = Place::of(shape({n, 2}), order);
        HostArray<float> buffer(place.size);
        for (index_t i = 0; i < buffer.size; ++i) buffer[i] = float(i % 5);
        buffer[at * place.strides[0]] = std::nanf("");
        const Placed<float> in(place, std::move(buffer));
        const Placed<float> most(Place::of(shape({2}))), least(Place::of(shape({2})));
        reduce_dims<Max>(On<Cuda>{}, in.read(), 1u, most.write());
        reduce_dims<Min>(On<Cuda>{}, in.read(), 1u, least.write());
        CHECK(std::isnan(most.result()[0]));
        CHECK(std::isnan(least.result()[0]));
        CHECK(!std::isnan(most.result()[1]));
        CHECK(!std::isnan(least.result()[1]));
      }
}

TEST_CASE("sums of integers wrap") {
  const Place place = Place::of(shape({2, 1}));
  HostArray<std::int32_t> buffer(place.size);
  buffer[0] = std::numeric_limits<std::int32_t>::max();
  buffer[1] = 1;
  const Placed<std::int32_t> in(place, std::move(buffer)), out(Place::of(shape({1})));
  reduce_dims<Sum>(On<Cuda>{}, in.read(), 1u, out.write());
  CHECK(out.result()[0] == std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("a reduction has the same bits in every run") {
  for (const std::vector<int>& order : {std::vector<int>{0, 1}, {1, 0}})
    for (const unsigned mask : {1u, 2u, 3u}) {
      const Placed<float> in(Place::of(shape({301, 257}), order));
      const Shape kept = kept_extents(in.place().extents, mask);
      const Placed<float> first(Place::of(kept)), second(Place::of(kept));
      reduce_dims<Sum>(On<Cuda>{}, in.read(), mask, first.write());
      reduce_dims<Sum>(On<Cuda>{}, in.read(), mask, second.write());
      CHECK(second.wrong(first.result()) == 0);
    }
}
