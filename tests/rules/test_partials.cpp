// Checks every row of partials that the library's elementwise functions declare on values, and
// shows for every undeclared row that it is wrong for some values.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>

using namespace cleave;

namespace {

template <class T>
T identity(ReduceOp op) {
  if (op == ReduceOp::max) return kernels::lowest<T>();
  if (op == ReduceOp::min) return kernels::highest<T>();
  return op == ReduceOp::product ? T(1) : T(0);
}

template <class T>
T reduce(ReduceOp op, const std::vector<T>& values) {
  using Wide = kernels::wrapping_t<T>;
  T result = values[0];
  for (std::size_t r = 1; r < values.size(); ++r) {
    const T v = values[r];
    if (op == ReduceOp::max) result = v > result || v != v ? v : result;
    else if (op == ReduceOp::min) result = v < result || v != v ? v : result;
    else if (op == ReduceOp::product) result = T(Wide(result) * Wide(v));
    else result = T(Wide(result) + Wide(v));
  }
  return op == ReduceOp::avg ? T(result / T(float(values.size()))) : result;
}

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    if (std::isinf(a) || std::isinf(b)) return a == b;
    return std::abs(a - b) <= 1e-9 * (1 + std::abs(a) + std::abs(b));
  } else {
    return a == b;
  }
}

bool is_extreme(std::int8_t entry) {
  return entry == std::int8_t(ReduceOp::max) || entry == std::int8_t(ReduceOp::min);
}

/// Values that ranks may hold: addends under `entry`, or the same value everywhere for a replicated
/// operand, which is infinite in some trials if `other`, the other operand's entry, is a maximum or
/// minimum.
template <class T>
std::vector<std::vector<T>> trials(std::int8_t entry, std::int8_t other, int ranks, int seed) {
  std::vector<std::vector<T>> result;
  for (int t = 0; t < 12; ++t) {
    std::vector<T> values;
    for (int r = 0; r < ranks; ++r) {
      const int n = (seed * 31 + t * 17 + (entry == Rule::replicate ? 0 : r * 7)) % 11 - 5;
      values.push_back(std::is_unsigned_v<T> ? T((n + 6) * 23) : T(n == 0 ? 1 : n));
    }
    if (std::is_integral_v<T> && t == 5) values.back() = kernels::lowest<T>();
    if (std::is_integral_v<T> && t == 7) values.back() = kernels::highest<T>();
    if (!std::is_integral_v<T> && is_extreme(other)) {
      if (t == 5) values.back() = kernels::lowest<T>();
      if (t == 7) values.back() = kernels::highest<T>();
    }
    if (entry == Rule::replicate) values.assign(values.size(), values.back());
    // a rank without elements
    if (entry != Rule::replicate && ReduceOp(entry) != ReduceOp::avg && t % 3 == 2)
      values[std::size_t(t / 3 % ranks)] = identity<T>(ReduceOp(entry));
    result.push_back(values);
  }
  return result;
}

/// Whether f maps addends under the row's operands to addends under its result.
template <class T, class F>
bool holds_on(int ranks, const Rule::Row& row, const F& f) {
  const std::int8_t of_a = row.operand[0], of_b = row.operand[1];
  const auto as = trials<T>(of_a, of_b, ranks, 1), bs = trials<T>(of_b, of_a, ranks, 2);
  const auto total = [](std::int8_t entry, const std::vector<T>& values) {
    return entry == Rule::replicate ? values[0] : reduce(ReduceOp(entry), values);
  };
  for (const auto& a : as) {
    for (const auto& b : bs) {
      using R = decltype(f(a[0], b[0]));
      std::vector<R> each;
      for (std::size_t r = 0; r < a.size(); ++r) each.push_back(f(a[r], b[r]));
      if (!same(f(total(row.operand[0], a), total(row.operand[1], b)),
                reduce(ReduceOp(row.result[0]), each)))
        return false;
    }
  }
  return true;
}

template <class T, class F>
bool holds(const Rule::Row& row, const F& f) {
  return holds_on<T>(2, row, f) && holds_on<T>(3, row, f);
}

bool averages(const Rule::Row& row) {
  const auto avg = std::int8_t(ReduceOp::avg);
  return row.operand[0] == avg || row.operand[1] == avg || row.result[0] == avg;
}

/// Rows as "sum,R->sum", sorted by construction.
std::string text(const Rule::Row& row, int operands) {
  const auto name = [](std::int8_t entry) {
    return entry == Rule::replicate ? std::string("R") : std::string(name_of(ReduceOp(entry)));
  };
  std::string result = name(row.operand[0]);
  if (operands == 2) result += "," + name(row.operand[1]);
  return result + "->" + name(row.result[0]);
}

/// Compares the declared rows with those that hold in all trials. Rows in `omitted` hold but are
/// not declared.
template <class T, class F>
void check_rows(const char* declared, int operands, const F& f,
                const std::vector<std::string>& omitted = {}) {
  Rule rule;
  rule.operands = operands;
  rule.results = 1;
  REQUIRE(detail::read_rows(rule, declared));
  const auto is_declared = [&](const Rule::Row& row) {
    for (int i = 0; i < rule.rows; ++i)
      if (text(rule.row[std::size_t(i)], operands) == text(row, operands)) return true;
    return false;
  };
  const std::int8_t last = operands == 2 ? std::int8_t(ReduceOp::product) : Rule::replicate;
  int found = 0;
  for (std::int8_t a = Rule::replicate; a <= std::int8_t(ReduceOp::product); ++a) {
    for (std::int8_t b = Rule::replicate; b <= last; ++b) {
      if (a == Rule::replicate && b == Rule::replicate) continue;
      for (std::int8_t r = 0; r <= std::int8_t(ReduceOp::product); ++r) {
        Rule::Row row;
        row.operand[0] = a;
        row.operand[1] = b;
        row.result[0] = r;
        if (std::is_integral_v<T> && averages(row)) continue;  // integers have no avg
        const std::string name = text(row, operands);
        CAPTURE(name);
        bool known = false;
        for (const std::string& o : omitted) known = known || o == name;
        if (known) {
          CHECK(holds<T>(row, f));
        } else {
          found += is_declared(row);
          CHECK(is_declared(row) == holds<T>(row, f));
        }
      }
    }
  }
  int expected = 0;
  for (int i = 0; i < rule.rows; ++i)
    expected += !(std::is_integral_v<T> && averages(rule.row[std::size_t(i)]));
  CHECK(found == expected);
}

template <class T, class F>
void check_unary(const std::vector<std::string>& omitted = {}) {
  check_rows<T>(
      detail::partials_of<F, T>(), 1, [](const T& a, const T&) { return F{}(a); }, omitted);
}

template <class T, class F>
void check_binary(const std::vector<std::string>& omitted = {}) {
  check_rows<T>(detail::partials_of<F, T, T>(), 2, F{}, omitted);
}

}  // namespace

TEST_CASE("the partials of sums, differences, products and quotients are exactly the true ones") {
  check_binary<double, ops::Add>();
  check_binary<double, ops::Sub>();
  check_binary<double, ops::Mul>();
  check_binary<double, ops::Div>();
}

TEST_CASE("integers wrap: maxima do not pass through their sums") {
  check_binary<std::int32_t, ops::Add>();
  check_binary<std::int32_t, ops::Sub>();
  check_binary<std::int32_t, ops::Mul>();
  check_binary<std::uint8_t, ops::Add>();
  check_binary<std::uint8_t, ops::Mul>();
  check_unary<std::int32_t, ops::Neg>();
}

TEST_CASE("the partials of maximum and minimum are exactly the true ones") {
  check_binary<double, ops::Maximum>();
  check_binary<double, ops::Minimum>();
  check_binary<std::int32_t, ops::Maximum>();
  check_binary<std::int32_t, ops::Minimum>();
}

TEST_CASE("the partials of unary functions are true") {
  check_unary<double, ops::Neg>();
  check_unary<double, ops::Relu>();
  check_unary<double, ops::Tanh>();
  check_unary<double, ops::Sigmoid>();
  check_unary<double, ops::Exp>({"sum->product"});
  check_unary<double, ops::Abs>({"product->product"});
  check_unary<double, ops::Square>({"product->product"});
}

TEST_CASE("functions that are not defined everywhere keep no partial") {
  CHECK(std::string(detail::partials_of<ops::Log, double>()).empty());
  CHECK(std::string(detail::partials_of<ops::Sqrt, double>()).empty());
}

TEST_CASE("the partials of a choice are true") {
  for (const bool condition : {true, false}) {
    const auto choose = [condition](double a, double b) { return ops::Where{}(condition, a, b); };
    Rule rule;
    rule.operands = 3;
    rule.results = 1;
    REQUIRE(detail::read_rows(rule, ops::Where::partials));
    CHECK(rule.rows == 11);
    for (int i = 0; i < rule.rows; ++i) {
      const Rule::Row& row = rule.row[std::size_t(i)];
      CHECK(row.operand[0] == Rule::replicate);
      Rule::Row values;
      values.operand[0] = row.operand[1];
      values.operand[1] = row.operand[2];
      values.result[0] = row.result[0];
      CAPTURE(text(values, 2));
      CHECK(holds<double>(values, choose));
    }
    const auto sum = std::int8_t(ReduceOp::sum);
    Rule::Row counted;  // a replicated value would count once per rank
    counted.operand[0] = condition ? Rule::replicate : sum;
    counted.operand[1] = condition ? sum : Rule::replicate;
    counted.result[0] = sum;
    CHECK(!holds<double>(counted, choose));
  }
}

TEST_CASE("casts keep the partials that they commute with") {
  using ops::Cast;
  const auto rows = [](const char* text) { return std::string(text); };
  CHECK(rows(Cast<double>::partials_for<float>()) == "sum->sum; avg->avg; max->max; min->min");
  CHECK(rows(Cast<float>::partials_for<half>()) == "sum->sum; avg->avg; max->max; min->min");
  CHECK(rows(Cast<half>::partials_for<float>()) == "max->max; min->min");
  CHECK(rows(Cast<std::int32_t>::partials_for<float>()) == "");
  CHECK(rows(Cast<float>::partials_for<std::int32_t>()) == "max->max; min->min");
  CHECK(rows(Cast<std::int64_t>::partials_for<std::int32_t>()) == "max->max; min->min");
  CHECK(rows(Cast<std::uint32_t>::partials_for<std::int32_t>()) == "");
  CHECK(rows(Cast<std::int32_t>::partials_for<std::uint8_t>()) == "max->max; min->min");
  CHECK(rows(Cast<bool>::partials_for<float>()) == "");
  CHECK(rows(Cast<std::complex<float>>::partials_for<float>()) == "sum->sum; avg->avg");
  CHECK(rows(Cast<std::complex<float>>::partials_for<double>()) == "");
  CHECK(rows(Cast<bfloat16>::partials_for<half>()) == "max->max; min->min");
}
