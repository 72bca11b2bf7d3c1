// All operations of the library, in one list: what documentation and verification run over. An
// operation that is missing here fails a test.
//
// Only tools include this header: the umbrella leaves it out.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <cleave/ops/arg_reduce.hpp>
#include <cleave/ops/map.hpp>
#include <cleave/ops/matmul.hpp>
#include <cleave/ops/one_hot.hpp>
#include <cleave/ops/placement.hpp>
#include <cleave/ops/pointwise.hpp>
#include <cleave/ops/redistribute.hpp>
#include <cleave/ops/reduce.hpp>
#include <cleave/ops/softmax.hpp>
#include <cleave/ops/transpose.hpp>

namespace cleave::ops {

/// Element types that an operation is verified with: a Types per row, with an entry per operand.
template <class... Row>
struct TypeRows {};

namespace listing {

template <int Operands, class T, class... Rest>
struct Repeated : Repeated<Operands - 1, T, T, Rest...> {};
template <class T, class... Rest>
struct Repeated<0, T, Rest...> {
  using type = Types<Rest...>;
};

}  // namespace listing

/// Rows in which all operands have one element type.
template <int Operands, class... T>
using SameTypes = TypeRows<typename listing::Repeated<Operands, T>::type...>;

/// Numbers of dimensions of the operands.
template <int... D>
using DimsOf = std::integer_sequence<int, D...>;

/// An operation, and the function that calls it.
///
/// @tparam Operands  how many arguments of the call are operands of Op, the first ones
template <class Op, class Rows, class Dims, class Call, int Operands>
struct Listed {
  using op = Op;
  using rows = Rows;
  using dims = Dims;
  static constexpr int operands = Operands;

  const char* usage;     ///< how the call is written; after a ';', in which case
  Call call;
  const char* constant;  ///< why there are operands without a gradient; "" where there are none
};

template <class Op, class Rows, class Dims, int Operands = int(Dims::size()), class Call>
constexpr Listed<Op, Rows, Dims, Call, Operands> listed(const char* usage, const Call& call,
                                                        const char* constant = "") {
  return {usage, call, constant};
}

/// Operations that mean something as parts of another one only.
template <class Whole, class... Parts>
struct PartsOf {};

/// Nobody calls these by themselves: a pair of a value and an index is one thing.
using Parts = PartsOf<ArgReduce<Max, 1>, ArgCandidates<Max, 1>, KeyOfPair<Max>, IndexOfKey,
                      IndexOfBest<Max>>;

namespace listing {

using Complex = std::complex<double>;
using Int = std::int64_t;

inline constexpr const char* steps = "constant between its jumps";
inline constexpr const char* of_integers = "the result is an index";

template <class Visit>
constexpr void each_arithmetic(const Visit& visit) {
  using Two = DimsOf<2, 2>;
  using All = SameTypes<2, double, float, Complex, Int, bool>;
  using Numbers = SameTypes<2, double, float, Complex, Int>;
  using Ordered = SameTypes<2, double, float, Int, bool>;
  visit(listed<Add, All, Two>("a + b", [](const auto& a, const auto& b) { return a + b; }));
  visit(listed<Add, SameTypes<2, double>, DimsOf<2, 1>>(
      "a + b; b repeats", [](const auto& a, const auto& b) { return a + b; }));
  visit(listed<Sub, All, Two>("a - b", [](const auto& a, const auto& b) { return a - b; }));
  visit(listed<Mul, All, Two>("a * b", [](const auto& a, const auto& b) { return a * b; }));
  visit(listed<Div, Numbers, Two>("a / b", [](const auto& a, const auto& b) { return a / b; }));
  visit(listed<Maximum, Ordered, Two>(
      "maximum(a, b)", [](const auto& a, const auto& b) { return maximum(a, b); }));
  visit(listed<Minimum, Ordered, Two>(
      "minimum(a, b)", [](const auto& a, const auto& b) { return minimum(a, b); }));
  visit(listed<ShareOfLarger, SameTypes<2, double, float>, Two>(
      "share_of_larger(a, b)", [](const auto& a, const auto& b) { return share_of_larger(a, b); },
      steps));
  visit(listed<Equals, All, Two>(
      "equals(a, b)", [](const auto& a, const auto& b) { return equals(a, b); }, steps));
}

template <class Visit>
constexpr void each_function(const Visit& visit) {
  using One = DimsOf<2>;
  using All = SameTypes<1, double, float, Complex, Int, bool>;
  using Numbers = SameTypes<1, double, float, Complex, Int>;
  using Ordered = SameTypes<1, double, float, Int, bool>;
  using Fractions = SameTypes<1, double, float, Complex>;
  visit(listed<Neg, All, One>("-x", [](const auto& x) { return -x; }));
  visit(listed<Square, Numbers, One>("square(x)", [](const auto& x) { return square(x); }));
  visit(listed<Abs, Numbers, One>("abs(x)", [](const auto& x) { return abs(x); }));
  visit(listed<Sign, Numbers, One>("sign(x)", [](const auto& x) { return sign(x); },
                                     "of real numbers constant between its jumps"));
  visit(listed<Conj, SameTypes<1, Complex>, One>("conj(x)",
                                                 [](const auto& x) { return conj(x); }));
  visit(listed<Real, SameTypes<1, double, Complex>, One>("real(x)",
                                                         [](const auto& x) { return real(x); }));
  visit(listed<Relu, Ordered, One>("relu(x)", [](const auto& x) { return relu(x); }));
  visit(listed<Exp, Fractions, One>("exp(x)", [](const auto& x) { return exp(x); }));
  visit(listed<Log, Fractions, One>("log(x)", [](const auto& x) { return log(x); }));
  visit(listed<Sqrt, Fractions, One>("sqrt(x)", [](const auto& x) { return sqrt(x); }));
  visit(listed<Tanh, Fractions, One>("tanh(x)", [](const auto& x) { return tanh(x); }));
  visit(listed<Sigmoid, Fractions, One>("sigmoid(x)", [](const auto& x) { return sigmoid(x); }));
  visit(listed<IsZero, All, One>("is_zero(x)", [](const auto& x) { return is_zero(x); }, steps));
  visit(listed<OrOne, Numbers, One>("or_one(x)", [](const auto& x) { return or_one(x); }));
  visit(listed<ProductOfOthers, SameTypes<3, double, Complex>, DimsOf<2, 2, 2>>(
      "product_of_others(x, rest, zeros)",
      [](const auto& x, const auto& rest, const auto& zeros) {
        return product_of_others(x, rest, zeros);
      },
      "zeros is a number of elements"));
}

template <class Visit>
constexpr void each_choice(const Visit& visit) {
  using One = DimsOf<2>;
  visit(listed<Where, TypeRows<Types<bool, double, double>, Types<bool, Complex, Complex>,
                               Types<bool, Int, Int>>,
               DimsOf<2, 2, 2>>(
      "where(condition, a, b)",
      [](const auto& condition, const auto& a, const auto& b) { return where(condition, a, b); },
      "a condition is not a number"));
  visit(listed<WherePositive, SameTypes<2, double, float, Int>, DimsOf<2, 2>>(
      "where_positive(a, b)", [](const auto& a, const auto& b) { return where_positive(a, b); },
      "constant in a between its jumps"));
  visit(listed<Cast<double>, SameTypes<1, double, float, Int, bool>, One>(
      "cast<double>(x)", [](const auto& x) { return cast<double>(x); }));
  visit(listed<Cast<float>, SameTypes<1, double, Int>, One>(
      "cast<float>(x)", [](const auto& x) { return cast<float>(x); }));
  visit(listed<Cast<Complex>, SameTypes<1, double, Complex>, One>(
      "cast<std::complex<double>>(x)", [](const auto& x) { return cast<Complex>(x); }));
  visit(listed<Cast<Int>, SameTypes<1, double, bool>, One>(
      "cast<std::int64_t>(x)", [](const auto& x) { return cast<Int>(x); },
      "integers have no gradient"));
  const auto f = [](const auto& u, const auto& v) { return u * v + u; };
  visit(listed<Map<std::remove_const_t<decltype(f)>>, SameTypes<2, double, Int>, DimsOf<2, 2>>(
      "map(f, a, b)", [f](const auto& a, const auto& b) { return map(f, a, b); }));
}

template <class Visit>
constexpr void each_reduction(const Visit& visit) {
  using Two = DimsOf<2>;
  using Numbers = SameTypes<1, double, float, Complex, Int, bool>;
  using Ordered = SameTypes<1, double, float, Int, bool>;
  visit(listed<Reduce<Sum, 2u>, Numbers, Two>("sum(x, dim<1>{})",
                                              [](const auto& x) { return sum(x, dim<1>{}); }));
  visit(listed<Reduce<Sum, 1u>, SameTypes<1, double>, Two>(
      "sum(x, dim<0>{})", [](const auto& x) { return sum(x, dim<0>{}); }));
  visit(listed<Reduce<Sum, 3u>, SameTypes<1, double, Int>, Two>(
      "sum(x)", [](const auto& x) { return sum(x); }));
  visit(listed<Mean<2u>, SameTypes<1, double, float, Complex>, Two>(
      "mean(x, dim<1>{})", [](const auto& x) { return mean(x, dim<1>{}); }));
  visit(listed<Reduce<Product, 2u>, SameTypes<1, double, Complex, Int>, Two>(
      "prod(x, dim<1>{})", [](const auto& x) { return prod(x, dim<1>{}); }));
  visit(listed<Reduce<Max, 2u>, Ordered, Two>("max(x, dim<1>{})",
                                              [](const auto& x) { return max(x, dim<1>{}); }));
  visit(listed<Reduce<Min, 1u>, Ordered, Two>("min(x, dim<0>{})",
                                              [](const auto& x) { return min(x, dim<0>{}); }));
  visit(listed<ArgReduce<Max, 1>, SameTypes<1, double, float, Int>, Two>(
      "argmax(x, dim<1>{})", [](const auto& x) { return argmax(x, dim<1>{}); }, of_integers));
  visit(listed<ArgReduce<Min, 0>, SameTypes<1, double, float, bool>, Two>(
      "argmin(x, dim<0>{})", [](const auto& x) { return argmin(x, dim<0>{}); }, of_integers));
  visit(listed<ArgReduceWhole<Max, 1>, SameTypes<1, double>, Two>(
      "argmax(x, dim<1>{}); rows are whole",
      [](const auto& x) { return call_op(ArgReduceWhole<Max, 1>{}, x); }, of_integers));
}

template <class Visit>
constexpr void each_other(const Visit& visit) {
  visit(listed<Matmul, SameTypes<2, double, float, Complex, Int>, DimsOf<2, 2>>(
      "matmul(x, w)", [](const auto& x, const auto& w) { return matmul(x, w); }));
  visit(listed<LogSoftmax<1>, SameTypes<1, double, float>, DimsOf<2>>(
      "log_softmax(x, dim<1>{})", [](const auto& x) { return log_softmax(x, dim<1>{}); }));
  visit(listed<Softmax<0>, SameTypes<1, double, float>, DimsOf<2>>(
      "softmax(x, dim<0>{})", [](const auto& x) { return softmax(x, dim<0>{}); }));
  visit(listed<OneHot<double>, SameTypes<1, Int>, DimsOf<1>>(
      "one_hot<double>(classes, 4)", [](const auto& x) { return one_hot<double>(x, 4); },
      "classes are indices"));
  visit(listed<Permute<2, 0, 1>, SameTypes<1, double, bool>, DimsOf<3>>(
      "permute(x, dim<2, 0, 1>{})", [](const auto& x) { return permute(x, dim<2, 0, 1>{}); }));
  visit(listed<Permute<1, 0>, SameTypes<1, double, Complex>, DimsOf<2>>(
      "transpose(x)", [](const auto& x) { return transpose(x); }));
  visit(listed<BroadcastDims<2u>, SameTypes<1, double, Int>, DimsOf<2>>(
      "unsqueeze(x, dim<1>{})", [](const auto& x) { return unsqueeze(x, dim<1>{}); }));
  visit(listed<BroadcastDims<2u>, SameTypes<2, double, Complex>, DimsOf<1, 2>, 1>(
      "broadcast_dims<2u>(x, like)",
      [](const auto& x, const auto& like) { return broadcast_dims<2u>(x, like); }));
  visit(listed<Redistribute, SameTypes<1, double, Int>, DimsOf<2>>(
      "resolve(x)", [](const auto& x) { return resolve(x); }));
}

}  // namespace listing

/// Calls `visit(Listed)` for every operation of the library.
template <class Visit>
constexpr void each_operation(const Visit& visit) {
  listing::each_arithmetic(visit);
  listing::each_function(visit);
  listing::each_choice(visit);
  listing::each_reduction(visit);
  listing::each_other(visit);
}

}  // namespace cleave::ops
