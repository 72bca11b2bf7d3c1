#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/reduce_views_cuda.hpp>
#include <cleave/tensor/cuda/cuda_graph.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// Reduces one more operand, as the host does for its ranks.
template <class A>
A combined(ReduceOp op, const A& a, const A& b) {
  if constexpr (is_complex<A>) {
    return op == ReduceOp::product ? A(a * b) : A(a + b);
  } else if constexpr (std::is_same_v<A, bool>) {
    return op == ReduceOp::sum || op == ReduceOp::max ? a || b : a && b;
  } else {
    if (op == ReduceOp::product) return A(kernels::wrapping_t<A>(a) * kernels::wrapping_t<A>(b));
    if (op == ReduceOp::max) return a != a || a > b ? a : b;
    if (op == ReduceOp::min) return a != a || a < b ? a : b;
    return A(kernels::wrapping_t<A>(a) + kernels::wrapping_t<A>(b));
  }
}

/// The number of wrong elements after reducing elements [begin, end) over ranks.
template <class T>
index_t misreduced(ReduceOp op, const std::vector<Place>& from, const Place& to, index_t begin,
                   index_t end) {
  using A = accumulator_t<T>;
  std::vector<std::unique_ptr<Placed<T>>> arrays;
  std::vector<ConstView> operands;
  for (const Place& place : from) {
    arrays.push_back(std::make_unique<Placed<T>>(place, 31 * index_t(arrays.size())));
    operands.push_back(arrays.back()->view());
  }
  const Placed<T> result(to, 4000);
  std::vector<HostArray<T>> values;
  for (const auto& array : arrays) values.push_back(array->values());
  HostArray<T> expected = result.values();
  for (index_t i = begin; i < end; ++i) {
    A sum = A(values[0][i]);
    for (std::size_t r = 1; r < values.size(); ++r) sum = combined(op, sum, A(values[r][i]));
    if constexpr (!std::is_integral_v<A>)
      if (op == ReduceOp::avg) sum /= decltype(std::abs(A{}))(index_t(values.size()));
    expected[i] = T(sum);
  }
  reduce_range(Cuda{}, op, operands, result.view(), begin, end);
  return result.wrong(expected);
}

template <class T>
index_t misreduced(ReduceOp op, int ranks, const Place& from, const Place& to) {
  return misreduced<T>(op, std::vector<Place>(std::size_t(ranks), from), to, 0,
                       to.extents.product());
}

}  // namespace

TEST_CASE_TEMPLATE("a reduction combines the ranks' elements in rank order", T, bool, std::int8_t,
                   std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, half,
                   bfloat16, float, double, std::complex<float>, std::complex<double>) {
  for (const ReduceOp op :
       {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min, ReduceOp::product}) {
    if (op == ReduceOp::avg && std::is_integral_v<T>) continue;
    if ((op == ReduceOp::max || op == ReduceOp::min) && is_complex<T>) continue;
    if (op == ReduceOp::product && is_complex<T>) continue;  // rounds differently; tested below
    for (const int ranks : {2, 7})
      for (const index_t n : {0, 5, 67})
        for (const index_t first : {0, 1}) {
          CAPTURE(name_of(op));
          CAPTURE(ranks);
          CAPTURE(n);
          const Place dense = Place::of(shape({2, n}), {}, {}, first);
          const Place rows = Place::of(shape({2, n}), {}, {0, 8}, 2 * first);
          const Place transposed = Place::of(shape({2, n}), {1, 0});
          CHECK(misreduced<T>(op, ranks, dense, dense) == 0);
          CHECK(misreduced<T>(op, ranks, rows, dense) == 0);
          CHECK(misreduced<T>(op, ranks, transposed, rows) == 0);
        }
  }
}

TEST_CASE_TEMPLATE("products of complex numbers", T, std::complex<float>, std::complex<double>) {
  const Place place = Place::of(shape({30}));
  const Placed<T> a(place, 1), b(place, 9), result(place);
  const ConstView operands[] = {a.view(), b.view()};
  reduce_range(Cuda{}, ReduceOp::product, operands, result.view(), 0, 30);
  HostArray<T> expected(30);
  for (index_t i = 0; i < 30; ++i) expected[i] = a.values()[i] * b.values()[i];
  CHECK(result.wrong(expected, [](const T& x, const T& y) {
    return std::abs(x - y) <= 1e-5 * std::abs(y);
  }) == 0);
}

TEST_CASE("a range of elements is reduced, the others stay") {
  const Shape extents = shape({3, 4, 5});
  const Place dense = Place::of(extents), rows = Place::of(extents, {}, {0, 0, 3}, 1);
  for (index_t begin = 0; begin <= 60; begin += 7)
    for (index_t end = begin; end <= 60; end += 5) {
      CAPTURE(begin);
      CAPTURE(end);
      for (const std::size_t ranks : {1, 3}) {
        CHECK(misreduced<float>(ReduceOp::sum, std::vector<Place>(ranks, dense), dense, begin,
                                end) == 0);
        CHECK(misreduced<float>(ReduceOp::max, std::vector<Place>(ranks, rows), dense, begin,
                                end) == 0);
        CHECK(misreduced<half>(ReduceOp::avg, std::vector<Place>(ranks, dense), rows, begin, end) ==
              0);
      }
    }
}

TEST_CASE("operands may have strides of their own, and be more than fit into a launch") {
  const Shape extents = shape({9, 11});
  const Place dense = Place::of(extents), transposed = Place::of(extents, {1, 0}),
              rows = Place::of(extents, {}, {0, 2}, 5);
  CHECK(misreduced<float>(ReduceOp::sum, {dense, transposed, rows}, dense, 0, 99) == 0);
  CHECK(misreduced<float>(ReduceOp::sum, {rows, dense}, transposed, 13, 57) == 0);
  for (const std::size_t ranks : {64, 65, 130}) {
    CHECK(misreduced<float>(ReduceOp::sum, std::vector<Place>(ranks, dense), dense, 0, 99) == 0);
    CHECK(misreduced<half>(ReduceOp::avg, std::vector<Place>(ranks, rows), rows, 0, 99) == 0);
  }
}

TEST_CASE("a graph of a reduction of many operands finds them at every launch") {
  constexpr std::size_t ranks = 130;
  const Place place = Place::of(shape({50}));
  std::vector<std::unique_ptr<Placed<float>>> arrays;
  std::vector<ConstView> operands;
  HostArray<float> expected(50);
  for (index_t i = 0; i < 50; ++i) expected[i] = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    arrays.push_back(std::make_unique<Placed<float>>(place, index_t(r)));
    operands.push_back(arrays.back()->view());
    for (index_t i = 0; i < 50; ++i) expected[i] += arrays.back()->values()[i];
  }
  const Placed<float> result(place, 7);
  const cuda::Graph graph(
      [&] { reduce_range(Cuda{}, ReduceOp::sum, operands, result.view(), 0, 50); });
  const std::vector<const void*> other(ranks, &result);  // reuses the memory of the host's table
  for (int i = 0; i < 2; ++i) {
    graph.launch();
    CHECK(result.wrong(expected) == 0);
  }
  CHECK(other.size() == ranks);
}

TEST_CASE("the result may be where an operand is") {
  const Place place = Place::of(shape({50}));
  const Placed<float> a(place, 1), b(place, 2);
  const ConstView operands[] = {a.view(), b.view()};
  HostArray<float> expected(50);
  for (index_t i = 0; i < 50; ++i) expected[i] = a.values()[i] + b.values()[i];
  reduce_range(Cuda{}, ReduceOp::sum, operands, b.view(), 0, 50);
  CHECK(b.wrong(expected) == 0);
}

TEST_CASE("a NaN of any rank is the maximum and the minimum") {
  const Place place = Place::of(shape({8}));
  const auto with_nan = [&](index_t at) {
    HostArray<float> buffer(place.size);
    buffer[at] = std::nanf("");
    return buffer;
  };
  const Placed<float> a(place, with_nan(1)), b(place, with_nan(3)), c(place, with_nan(6)),
      result(place);
  const ConstView operands[] = {a.view(), b.view(), c.view()};
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    reduce_range(Cuda{}, op, operands, result.view(), 0, 8);
    const HostArray<float> values = result.result();
    for (index_t i = 0; i < 8; ++i) CHECK(std::isnan(values[i]) == (i == 1 || i == 3 || i == 6));
  }
}
