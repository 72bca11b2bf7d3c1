// Targets of functions that are not elementwise: sum(out(y), x, dim<1>{}). Elementwise ones are in
// test_forms.cpp.
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/comparisons.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/ops/losses/mse_loss.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/reductions/cumsum.hpp>
#include <cleave/ops/reductions/exact_reductions.hpp>
#include <cleave/ops/reductions/norm.hpp>
#include <cleave/ops/shapes/cat.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

constexpr index_t target_rows = 5, target_cols = 3;

/// The global array: positive, negative, different.
double number_at(index_t i, index_t j) { return 0.25 * double(i * target_cols + j) - 1.6; }

/// The sum of f over a row.
template <class F>
double over_row(index_t i, const F& f) {
  double total = 0;
  for (index_t j = 0; j < target_cols; ++j) total += f(number_at(i, j));
  return total;
}
double exponential(double x) { return std::exp(x); }

/// A target without numbers yet.
template <class T, int Rank, class Mesh, class P>
auto unset(const index_t (&extents)[Rank], const Mesh& mesh, P placement) {
  return full<T>(extents, std::numeric_limits<T>::quiet_NaN(), mesh, placement);
}

/// How many elements of this rank's part are not those of an array of the whole.
template <class Y, class F>
index_t unlike(const Y& y, const F& expected) {
  index_t wrong = 0;
  const Box box = y.local_box();
  const auto differs = [](double a, double b) { return !(std::fabs(a - b) <= 1e-6); };
  for (index_t i = 0; i < y.to_local().extent(0); ++i)
    if constexpr (Y::dims == 1) wrong += differs(y.to_local()(i), expected(box.begin[0] + i));
    else
      for (index_t j = 0; j < y.to_local().extent(1); ++j)
        wrong += differs(y.to_local()(i, j), expected(box.begin[0] + i, box.begin[1] + j));
  return wrong;
}

template <class Mesh>
auto numbers_on(const Mesh& mesh) {
  const auto x = zeros<double>({target_rows, target_cols}, mesh, Shard<0>{});
  for (index_t i = 0; i < x.to_local().extent(0); ++i)
    for (index_t j = 0; j < target_cols; ++j)
      x.to_local()(i, j) = number_at(x.local_box().begin[0] + i, j);
  return x;
}

}  // namespace

TEST_CASE(
    "functions of a dimension, with attributes, of several operations and views take targets") {
  on_ranks({1, 2, 3, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = numbers_on(mesh);
    const auto row = [&](const auto& f, const auto& expected) {
      const auto y = unset<double>({target_rows}, mesh, Shard<0>{});
      static_assert(std::is_same_v<decltype(f(out(y))), decltype(y)&>);
      CHECK(&f(out(y)) == &y);
      CHECK(unlike(y, expected) == 0);
    };
    row([&](auto y) -> auto& { return sum(y, x, dim<1>{}); },
        [](index_t i) { return over_row(i, [](double a) { return a; }); });
    row([&](auto y) -> auto& { return sum<exact>(y, x, dim<1>{}); },
        [](index_t i) { return over_row(i, [](double a) { return a; }); });
    row([&](auto y) -> auto& { return sum<explicit_communication>(y, x, dim<1>{}); },
        [](index_t i) { return over_row(i, [](double a) { return a; }); });
    row([&](auto y) -> auto& { return norm<1>(y, x, dim<1>{}); },
        [](index_t i) { return over_row(i, [](double a) { return std::fabs(a); }); });

    const auto matrix = [&](const auto& f, const auto& expected) {
      const auto y = unset<double>({target_rows, target_cols}, mesh, Shard<0>{});
      CHECK(&f(out(y)) == &y);
      CHECK(unlike(y, expected) == 0);
    };
    matrix(
        [&](auto y) -> auto& { return softmax(y, x, dim<1>{}); },
        [](index_t i, index_t j) { return std::exp(number_at(i, j)) / over_row(i, exponential); });
    matrix([&](auto y) -> auto& { return cumsum(y, x, dim<0>{}); },  // along shards
           [](index_t i, index_t j) {
             double total = 0;
             for (index_t k = 0; k <= i; ++k) total += number_at(k, j);
             return total;
           });
    matrix([&](auto y) -> auto& { return leaky_relu(y, x, 0.25); },
           [](index_t i, index_t j) { return number_at(i, j) * (number_at(i, j) > 0 ? 1 : 0.25); });
    matrix([&](auto y) -> auto& { return where(y, greater(x, 0), x, 7); },
           [](index_t i, index_t j) { return number_at(i, j) > 0 ? number_at(i, j) : 7; });
    matrix([&](auto y) -> auto& { return mse_loss<Reduction::none>(y, x, square(x)); },
           [](index_t i, index_t j) {
             return std::pow(number_at(i, j) - number_at(i, j) * number_at(i, j), 2);
           });

    const auto single = unset<float>({target_rows, target_cols}, mesh, Shard<0>{});
    cast<float>(out(single), x);
    CHECK(unlike(single, number_at) == 0);
    const auto turned = unset<double>({target_cols, target_rows}, mesh, Shard<1>{});
    transpose(out(turned), x);
    CHECK(unlike(turned, [](index_t i, index_t j) { return number_at(j, i); }) == 0);
    const auto twice = unset<double>({target_rows, 2 * target_cols}, mesh, Shard<0>{});
    cat(out(twice), dim<1>{}, x, x);
    CHECK(unlike(twice, [](index_t i, index_t j) { return number_at(i, j % target_cols); }) == 0);
  });
}

TEST_CASE("targets of functions may be views, and operands") {
  const Tensor<double, 2> all({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  sum(out(all.select(1, 3)), all, dim<1>{});
  CHECK(all(0, 3) == 10);
  CHECK(all(1, 3) == 26);
  CHECK(all(1, 2) == 7);
  const auto square = all.slice(1, 0, 2);
  transpose(out(square), square);
  CHECK(all(0, 1) == 5);
  CHECK(all(1, 0) == 2);
}

TEST_CASE("targets that a function's result does not fit are refused, and left unchanged") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {1, 2});
    const auto x = full<double>({4, 3}, 1.0, mesh, Shard<0>{}, Replicate{});
    const auto longer = full<double>({5}, 2.0, mesh, Shard<0>{}, Replicate{});
    const std::string error = error_of([&] { sum(out(longer), x, dim<1>{}); });
    CHECK(contains(error, "sum: the target and the result differ in mesh or extents"));
    CHECK(contains(error, "[4] into [5]"));
    CHECK(contains(error, "dp=1"));
    const auto tall = init_device_mesh<dp, tp>(world, {2, 1});
    const auto elsewhere = full<double>({4}, 2.0, tall, Shard<0>{}, Replicate{});
    CHECK(contains(error_of([&] { sum(out(elsewhere), x, dim<1>{}); }),
                   "sum: the target and the result differ in mesh or extents"));
    for (const auto& y : {longer, elsewhere})
      for (index_t i = 0; i < y.to_local().size(); ++i) CHECK(y.to_local()(i) == 2);
  });
  const Tensor<double, 2> x({2, 2}, {1, 2, 3, 4});
  CHECK(contains(error_of([&] { sum(out(Tensor<double, 1>({3})), x, dim<1>{}); }),
                 "sum: the target and the result differ in mesh or extents"));
  const auto repeated = Tensor<double, 1>::adopt(x.data(), {2}, {0});
  CHECK(contains(error_of([&] { sum(out(repeated), x, dim<1>{}); }),
                 "sum: the target repeats elements; clone it first"));
  CHECK(x(0, 0) == 1);
}
