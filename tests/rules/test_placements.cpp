// Every rule of the library under all placements of its operands.
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/indices/one_hot.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "rule_simulation.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

Array product(const std::vector<Array>& x) {
  Array result({x[0].shape[0], x[1].shape[1]});
  for (const Indices& at : naive::all_indices(result.shape)) {
    double sum = 0;
    for (index_t k = 0; k < x[0].shape[1]; ++k) sum += x[0].at({at[0], k}) * x[1].at({k, at[1]});
    result.at(at) = sum;
  }
  return result;
}

/// f applied elementwise, with operands aligned at their last dimension.
template <class F>
Operation elementwise(const F& f) {
  return [f](const std::vector<Array>& x) {
    Indices shape;
    for (const Array& a : x)
      if (a.shape.size() > shape.size()) shape = a.shape;
    Array result(shape);
    for (const Indices& at : naive::all_indices(shape)) {
      std::vector<double> v;
      for (const Array& a : x)
        v.push_back(a.at(Indices(at.end() - std::ptrdiff_t(a.shape.size()), at.end())));
      result.at(at) = f(v);
    }
    return result;
  };
}

Operation reduction(ReduceOp op, unsigned mask) {
  return [=](const std::vector<Array>& x) {
    Indices shape;
    for (std::size_t d = 0; d < x[0].shape.size(); ++d)
      if (!(mask >> d & 1u)) shape.push_back(x[0].shape[d]);
    Array result(shape);
    const double infinity = std::numeric_limits<double>::infinity();
    for (double& v : result.values)
      v = op == ReduceOp::max   ? -infinity
          : op == ReduceOp::min ? infinity
                                : op == ReduceOp::product;
    for (const Indices& at : naive::all_indices(x[0].shape)) {
      Indices to;
      for (std::size_t d = 0; d < at.size(); ++d)
        if (!(mask >> d & 1u)) to.push_back(at[d]);
      result.at(to) = combine(op, result.at(to), x[0].at(at));
    }
    return result;
  };
}

const std::vector<Indices> one_axis{{1}, {2}, {3}, {4}};
const std::vector<Indices> two_axes{{2, 2}, {3, 2}};

template <class F, int... Dims>
inline constexpr const Rule& binary_rule = rule_for<F, Types<double, double>, Dims...>;

template <class F>
void check_binary() {
  const auto f = elementwise([](const std::vector<double>& v) { return F{}(v[0], v[1]); });
  constexpr bool positive = std::is_same_v<F, ops::Div>;  // no addends sum to zero
  const auto run = [&](const Rule& rule, const std::vector<std::vector<Indices>>& shapes, int axes,
                       const std::vector<Indices>& meshes) {
    check({rule, f, shapes, {}, positive}, axes, meshes);
  };
  run(binary_rule<F, 2, 2>, {{{3, 2}, {3, 2}}, {{5, 1}, {5, 1}}}, 1, one_axis);
  run(binary_rule<F, 2, 2>, {{{3, 2}, {3, 2}}}, 2, {{2, 2}});
  run(binary_rule<F, 2, 1>, {{{3, 4}, {4}}}, 1, one_axis);
  run(binary_rule<F, 1, 2>, {{{4}, {3, 4}}}, 1, one_axis);
  run(binary_rule<F, 0, 1>, {{{}, {5}}}, 2, two_axes);
}

template <class F>
void check_unary() {
  const auto f = elementwise([](const std::vector<double>& v) { return F{}(v[0]); });
  const Case c{rule_for<F, Types<double>, 2>, f, {{{5, 3}}, {{1, 4}}}};
  check(c, 1, one_axis);
  check(c, 2, two_axes);
}

template <class Op, unsigned Mask>
void check_reduction() {
  const Case c{rule_for<ops::Reduce<Op, Mask>, Types<double>, 2>,
               reduction(Op::value, Mask),
               {{{5, 3}}, {{1, 4}}, {{2, 2}}}};
  check(c, 1, one_axis);
  check(c, 2, two_axes);
}

}  // namespace

TEST_CASE("the rule of matmul holds for all placements") {
  const Case c{rule_for<ops::Matmul, Types<double, double>, 2, 2>,
               product,
               {{{3, 5}, {5, 2}}, {{1, 2}, {2, 3}}, {{4, 4}, {4, 4}}}};
  check(c, 1, one_axis);
  check({c.rule, product, {{{3, 5}, {5, 2}}}}, 2, {{2, 2}});
  check({c.rule, product, {{{1, 3}, {3, 2}}}}, 2, {{3, 2}});
}

TEST_CASE("the rules of binary elementwise operations hold for all placements") {
  SUBCASE("add") { check_binary<ops::Add>(); }
  SUBCASE("mul") { check_binary<ops::Mul>(); }
  SUBCASE("sub") { check_binary<ops::Sub>(); }
  SUBCASE("div") { check_binary<ops::Div>(); }
  SUBCASE("maximum") { check_binary<ops::Maximum>(); }
  SUBCASE("minimum") { check_binary<ops::Minimum>(); }
}

TEST_CASE("the rules of unary elementwise operations hold for all placements") {
  check_unary<ops::Neg>();
  check_unary<ops::Relu>();
  check_unary<ops::Exp>();
  check_unary<ops::Tanh>();
  check_unary<ops::Sigmoid>();
  check_unary<ops::Abs>();
  check_unary<ops::Square>();
}

TEST_CASE("the rule of where holds for all placements") {
  const auto f = elementwise([](const std::vector<double>& v) { return v[0] > 0 ? v[1] : v[2]; });
  using T = Types<bool, double, double>;
  check({rule_for<ops::Where, T, 2, 2, 1>, f, {{{3, 2}, {3, 2}, {2}}}, {false, true, true}}, 1,
        one_axis);
  check({rule_for<ops::Where, T, 1, 1, 1>, f, {{{3}, {3}, {3}}}, {false, true, true}}, 2, {{2, 2}});
}

TEST_CASE("a function of three operands without partials holds for all placements") {
  const auto f =
      elementwise([](const std::vector<double>& v) { return v[0] * v[1] * v[1] + 3 * v[2] - 1; });
  check({rule_of<detail::OpSignature<detail::PlainElementwise, Types<>, 2, 1, 2>>,
         f,
         {{{3, 2}, {2}, {3, 2}}}},
        1, one_axis);
}

TEST_CASE("the rules of reductions hold for all placements") {
  check_reduction<Sum, 1>();
  check_reduction<Sum, 2>();
  check_reduction<Sum, 3>();
  check_reduction<Max, 1>();
  check_reduction<Max, 2>();
  check_reduction<Max, 3>();
  check_reduction<Min, 1>();
  check_reduction<Min, 3>();
  check_reduction<Product, 2>();
  check_reduction<Product, 3>();
}

TEST_CASE("the rule of arg reductions holds for the values of the candidates") {
  const Case c{rule_for<ops::ArgCandidates<Min, 1>, Types<double>, 2>,
               reduction(ReduceOp::min, 2u),
               {{{5, 3}}, {{1, 4}}}};
  check(c, 1, one_axis);
  check(c, 2, two_axes);
}

TEST_CASE("the rule of one_hot holds for all placements") {
  const Operation hot = [](const std::vector<Array>& x) {
    Array result({x[0].shape[0], 4});
    for (const Indices& at : naive::all_indices(result.shape))
      result.at(at) = x[0].at({at[0]}) == double(at[1]);
    return result;
  };
  check({rule_for<ops::OneHot<double>, Types<index_t>, 1>, hot, {{{5}}, {{1}}}}, 2, two_axes);
  check({rule_for<ops::OneHot<double>, Types<index_t>, 1>, hot, {{{5}}, {{1}}}}, 2,
        {{1, 3}, {4, 1}});
}

TEST_CASE("the simulation detects a wrong row") {
  Rule rule = rule_for<ops::Relu, Types<double>, 2>;
  const auto f = elementwise([](const std::vector<double>& v) { return std::max(v[0], 0.0); });
  Rule::Row& row = rule.row[std::size_t(rule.rows++)];
  row.operand[0] = row.result[0] = std::int8_t(ReduceOp::sum);
  OperandLayouts layouts{};
  layouts[0].axes = 1;
  layouts[0][0] = Placement::partial(ReduceOp::sum);
  CHECK(simulate({rule, f, {}}, layouts, {{5, 3}}, {3}) == "the values are wrong");
}
