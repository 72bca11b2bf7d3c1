#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/core/require_reduction.hpp>
#include <cleave/kernels/host/reduce_views.hpp>

#include "../comm/fields.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// The reduction of one element from each operand.
template <class T>
T reduce_values(ReduceOp op, const std::vector<T>& values) {
  std::vector<ConstView> operands;
  for (std::size_t i = 0; i < values.size(); ++i)
    operands.push_back(ConstView::dense(values.data() + i, dtype_of<T>(), Shape::filled(1, 1)));
  T result{};
  cleave::detail::reduce_range(op, operands,
                               View::dense(&result, dtype_of<T>(), Shape::filled(1, 1)), 0, 1);
  return result;
}

template <class T>
std::string refusal(ReduceOp op) {
  try {
    cleave::detail::require_reduction("all_reduce", dtype_of<T>(), op);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("halves are summed in float and rounded once") {
  // 2048 + 1 rounds back to 2048 in binary16
  CHECK(float(reduce_values<half>(ReduceOp::sum, {2048, 1, 1, 1, 1})) == 2052);
  CHECK(float(reduce_values<bfloat16>(ReduceOp::sum, {256, 1, 1, 1, 1})) == 260);
  CHECK(float(reduce_values<half>(ReduceOp::avg, {60000, 60000})) == float(half(60000)));
}

TEST_CASE("operands are added from the first to the last") {
  const auto sum = [](std::vector<float> v) { return reduce_values<float>(ReduceOp::sum, v); };
  CHECK(sum({1e8f, 1, -1e8f}) == 0);
  CHECK(sum({1e8f, -1e8f, 1}) == 1);
  CHECK(sum({1, 1e8f, -1e8f, 1}) == 1);
}

TEST_CASE("integers wrap in sums and products") {
  CHECK(reduce_values<std::int8_t>(ReduceOp::sum, {127, 1}) == -128);
  CHECK(reduce_values<std::uint8_t>(ReduceOp::sum, {255, 2}) == 1);
  CHECK(reduce_values<std::int32_t>(ReduceOp::product, {1 << 30, 4}) == 0);
  CHECK(reduce_values<std::int64_t>(ReduceOp::sum, {std::numeric_limits<std::int64_t>::max(), 1}) ==
        std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("signed and unsigned integers are ordered by their values") {
  CHECK(reduce_values<std::int8_t>(ReduceOp::max, {-1, 1, -128}) == 1);
  CHECK(reduce_values<std::uint8_t>(ReduceOp::max, {255, 1, 128}) == 255);
  CHECK(reduce_values<std::int64_t>(ReduceOp::min, {-1, 1}) == -1);
  CHECK(reduce_values<std::uint32_t>(ReduceOp::min, {0xffffffffu, 7}) == 7);
}

TEST_CASE("a NaN among the operands of max or min is the result, wherever it stands") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    CHECK(std::isnan(reduce_values<double>(op, {nan, 1, 2})));
    CHECK(std::isnan(reduce_values<double>(op, {1, nan, 2})));
    CHECK(std::isnan(reduce_values<double>(op, {1, 2, nan})));
    CHECK(std::isnan(float(reduce_values<half>(op, {1, float(nan), 2}))));
  }
}

TEST_CASE("sums of bools are or, products are and") {
  const auto all = [](ReduceOp op, bool a, bool b, bool c) {
    const bool values[] = {a, b, c};
    const ConstView operands[] = {
        ConstView::dense(values, DType::boolean, Shape::filled(1, 1)),
        ConstView::dense(values + 1, DType::boolean, Shape::filled(1, 1)),
        ConstView::dense(values + 2, DType::boolean, Shape::filled(1, 1))};
    bool result = false;
    cleave::detail::reduce_range(op, operands,
                                 View::dense(&result, DType::boolean, Shape::filled(1, 1)), 0, 1);
    return result;
  };
  for (int bits = 0; bits < 8; ++bits) {
    const bool a = bits & 1, b = bits & 2, c = bits & 4;
    CHECK(all(ReduceOp::sum, a, b, c) == (a || b || c));
    CHECK(all(ReduceOp::max, a, b, c) == (a || b || c));
    CHECK(all(ReduceOp::product, a, b, c) == (a && b && c));
    CHECK(all(ReduceOp::min, a, b, c) == (a && b && c));
  }
}

TEST_CASE("complex numbers are multiplied as such and averaged by parts") {
  using C = std::complex<double>;
  CHECK(reduce_values<C>(ReduceOp::product, {C(0, 1), C(0, 1), C(2, 3)}) == C(-2, -3));
  CHECK(reduce_values<C>(ReduceOp::avg, {C(1, 2), C(3, 5)}) == C(2, 3.5));
}

TEST_CASE("a range of long strided operands is reduced, and nothing outside of it is written") {
  // 83 x 101 doubles are several blocks; the range begins and ends within rows
  const index_t rows = 83, columns = 101, begin = 333, end = 8111;
  for (const Style from : all_styles)
    for (const Style to : all_styles)
      for (const int ranks : {1, 2, 3}) {
        std::vector<Field<double>> fields;
        std::vector<ConstView> operands;
        for (int r = 0; r < ranks; ++r) {
          fields.emplace_back(rows, columns, r == 1 ? Style::dense : from,
                              [&](index_t i, index_t j) { return sample<double>(r, i, j); });
          operands.push_back(fields.back().view());
        }
        const Field<double> result(rows, columns, to);
        cleave::detail::reduce_range(ReduceOp::sum, operands, result.view(), begin, end);
        CHECK(result.difference([&](index_t i, index_t j) {
          const index_t at = i * columns + j;
          if (at < begin || at >= end) return Field<double>::mark();
          double sum = 0;
          for (int r = 0; r < ranks; ++r) sum += sample<double>(r, i, j);
          return sum;
        }) == "");
      }
}

TEST_CASE_TEMPLATE("a long result arrives whole and alone, also where its rows bypass the caches",
                   T, half, float, std::complex<double>) {
  constexpr std::size_t row_bytes = 2 * cleave::detail::streaming_run_bytes;
  const auto rows = index_t(cleave::detail::streaming_array_bytes / row_bytes) + 7;
  const auto columns = index_t(row_bytes / sizeof(T));
  const index_t begin = 7, end = rows * columns - 13;
  REQUIRE(std::size_t(rows * columns) * sizeof(T) >= cleave::detail::streaming_array_bytes);
  std::vector<Field<T>> fields;
  std::vector<ConstView> operands;
  for (int r = 0; r < 2; ++r) {
    fields.emplace_back(rows, columns, Style::dense,
                        [&](index_t i, index_t j) { return sample<T>(r, i, j); });
    operands.push_back(fields.back().view());
  }
  for (const Style style : {Style::dense, Style::margin}) {
    const Field<T> result(rows, columns, style);
    cleave::detail::reduce_range(ReduceOp::sum, operands, result.view(), begin, end);
    CHECK(result.difference([&](index_t i, index_t j) {
      const index_t at = i * columns + j;
      if (at < begin || at >= end) return Field<T>::mark();
      return T(sample<T>(0, i, j) + sample<T>(1, i, j));
    }) == "");
  }
}

TEST_CASE_TEMPLATE("the result may be one of the operands", T, half, float, double) {
  for (const Style style : {Style::dense, Style::margin})
    for (const int ranks : {2, 3, 4})
      for (int aliased = 0; aliased < ranks; ++aliased) {
        std::vector<Field<T>> fields;
        std::vector<ConstView> operands;
        for (int r = 0; r < ranks; ++r) {
          fields.emplace_back(90, 91, style,
                              [&](index_t i, index_t j) { return sample<T>(r, i, j); });
          operands.push_back(fields.back().view());
        }
        const Field<T>& result = fields[std::size_t(aliased)];
        cleave::detail::reduce_range(ReduceOp::avg, operands, result.view(), 0, 90 * 91);
        CHECK(result.difference([&](index_t i, index_t j) {
          using A = accumulator_t<T>;
          A sum = 0;
          for (int r = 0; r < ranks; ++r) sum += A(sample<T>(r, i, j));
          return T(sum / A(ranks));
        }) == "");
      }
}

TEST_CASE("a reduction that the element type does not support is refused with the reason") {
  CHECK(
      refusal<std::int32_t>(ReduceOp::avg) ==
      "all_reduce: avg of int32 is not defined: an average requires a floating-point element type");
  CHECK(refusal<bool>(ReduceOp::avg) ==
        "all_reduce: avg of bool is not defined: an average requires numbers");
  CHECK(refusal<std::complex<float>>(ReduceOp::max) ==
        "all_reduce: max of complex64 is not defined: complex numbers have no order");
  CHECK(refusal<std::complex<double>>(ReduceOp::min) ==
        "all_reduce: min of complex128 is not defined: complex numbers have no order");
  CHECK(refusal<float8_e5m2>(ReduceOp::sum) ==
        "all_reduce: sum of float8_e5m2 is not defined: floats of 8 bits are for storage; "
        "dequantize or cast them");
  for_element_types([](auto zero) {
    using T = decltype(zero);
    for (const ReduceOp op : all_reductions) CHECK((refusal<T>(op) == "") == has_reduction<T>(op));
  });
}
