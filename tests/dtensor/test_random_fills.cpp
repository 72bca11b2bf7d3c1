// Filling arrays with random numbers: distributions, permutations, initialisers, equal on any mesh.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/initialisers.hpp>
#include <cleave/dtensor/permutation.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/random/multinomial.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

template <class X, class T, int Rank>
void check_equal_to(const X& placed, const Tensor<T, Rank>& local) {
  const auto whole = placed.full_tensor();
  REQUIRE(whole.shape() == local.shape());
  CHECK(std::equal(whole.data(), whole.data() + whole.size(), local.data()));
}

/// Compares every call on a mesh with the same call on one rank from the same state.
template <class T, class Mesh, class... P>
void check_fills(const World& world, const Mesh& mesh, P... p) {
  RandomState state{31, 2};
  set_random_state(world, state);
  const auto here = [&] { return empty<T>({5, 7, 2}, mesh, p...); };
  const auto alone = [] { return Tensor<T, 3>({5, 7, 2}); };
  check_equal_to(uniform_(here(), -1, 2), uniform_(alone(), state, -1, 2));
  check_equal_to(normal_(here(), 1, 3), normal_(alone(), state, 1, 3));
  check_equal_to(trunc_normal_(here(), 0, 2, -1, 3), trunc_normal_(alone(), state, 0, 2, -1, 3));
  check_equal_to(bernoulli_(here(), 0.3), bernoulli_(alone(), state, 0.3));
  check_equal_to(xavier_uniform_(here(), 2), xavier_uniform_(alone(), state, 2));
  check_equal_to(xavier_normal_(here()), xavier_normal_(alone(), state));
  check_equal_to(kaiming_uniform_(here()), kaiming_uniform_(alone(), state));
  check_equal_to(kaiming_normal_(here(), 0.2, Fan::out),
                 kaiming_normal_(alone(), state, 0.2, Fan::out));
  check_equal_to(orthogonal_(here(), 3), orthogonal_(alone(), state, 3));
  const Tensor<T, 3> sevens({5, 7, 2});
  sevens.fill_(T(7));
  check_equal_to(constant_(here(), T(7)), sevens);
  CHECK(random_state(world) == state);
}

template <class Mesh, class... P>
void check_permutations(const World& world, const Mesh& mesh, P... p) {
  RandomState state{32, 0};
  set_random_state(world, state);
  for (const index_t n : {0, 1, 2, 13, 300})
    check_equal_to(permutation(n, mesh, p...), permutation(n, state));
}

}  // namespace

TEST_CASE("arrays filled in place are the same on one rank and on any mesh") {
  on_ranks({1, 4}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    check_fills<float>(world, line, Shard<0>{});
    check_fills<double>(world, line, Shard<1>{});
    check_fills<half>(world, line, Shard<2>{});
    check_fills<double>(world, line, Replicate{});
    check_permutations(world, line, Shard<0>{});
  });
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    check_fills<float>(world, mesh, Shard<0>{}, Shard<1>{});
    check_fills<double>(world, mesh, Shard<1>{}, Shard<1>{});
    check_fills<double>(world, mesh, Replicate{}, Shard<0>{});
    check_permutations(world, mesh, Shard<0>{}, Shard<0>{});
    check_permutations(world, mesh, Shard<0>{}, Replicate{});
  });
  on_ranks({8}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp, pp>(world, {2, 2, 2});
    check_fills<double>(world, mesh, Shard<0>{}, Shard<0>{}, Shard<1>{});
    check_permutations(world, mesh, Shard<0>{}, Shard<0>{}, Shard<0>{});
  });
}

TEST_CASE("categories are drawn alike on any mesh, also where the weights lie by category") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    RandomState state{8, 0};
    manual_seed(world, 8);
    const auto weights = rand<double>({5, 6}, mesh, Shard<0>{});
    const auto alone = rand<double>({5, 6}, state);
    check_equal_to(multinomial(weights, 4), multinomial(alone, 4, state));
    check_equal_to(multinomial(weights, 9, true), multinomial(alone, 9, state, true));
    const auto by_category = weights.redistribute(Shard<1>{});
    check_equal_to(multinomial(by_category, 4), multinomial(alone, 4, state));
    const auto row = rand<float>({11}, mesh, Shard<0>{});
    check_equal_to(multinomial(row, 5), multinomial(rand<float>({11}, state), 5, state));
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("a view is filled where its elements are") {
  RandomState state{1, 0}, again{1, 0};
  const Tensor<double, 2> memory({4, 3});
  const auto transposed = transpose(memory);
  normal_(transposed, state);
  const auto expected = randn<double>({3, 4}, again);
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j) CHECK(memory(j, i) == expected(i, j));
}

TEST_CASE("the rows of an orthogonal matrix are orthonormal, or its columns if they are fewer") {
  RandomState state{3, 0};
  const auto check = [&](index_t rows, index_t columns) {
    const auto x = orthogonal_(Tensor<double, 2>({rows, columns}), state, 2);
    const bool by_row = rows <= columns;
    const index_t few = by_row ? rows : columns, many = by_row ? columns : rows;
    for (index_t i = 0; i < few; ++i)
      for (index_t k = 0; k < few; ++k) {
        double product = 0;
        for (index_t j = 0; j < many; ++j)
          product += by_row ? x(i, j) * x(k, j) : x(j, i) * x(j, k);
        CHECK(std::abs(product - (i == k ? 4 : 0)) < 1e-14);
      }
  };
  check(1, 1);
  check(6, 6);
  check(5, 23);
  check(40, 13);
  check(0, 3);
}

TEST_CASE("an orthogonal matrix keeps the direction of the normal numbers that it is made of") {
  RandomState state{3, 0}, again{3, 0};
  const auto q = orthogonal_(Tensor<double, 2>({4, 9}), state);
  const auto a = randn<double>({4, 9}, again);
  for (index_t i = 0; i < 4; ++i) {  // A = L Q with a positive diagonal, Q's rows from A's
    double along = 0, length = 0;
    for (index_t j = 0; j < 9; ++j) along += a(i, j) * q(i, j);
    CHECK(along > 0);
    for (index_t j = 0; j < 9; ++j) {
      double rest = a(i, j);
      for (index_t k = 0; k <= i; ++k) {
        double part = 0;
        for (index_t l = 0; l < 9; ++l) part += a(i, l) * q(k, l);
        rest -= part * q(k, j);
      }
      length += rest * rest;
    }
    CHECK(length < 1e-26);
  }
}

TEST_CASE("initial values have the deviations of their inputs and outputs") {
  RandomState state{6, 0};
  const auto deviation = [](const auto& x) {
    double sum = 0, squares = 0;
    for (index_t i = 0; i < x.size(); ++i) {
      sum += x.data()[i];
      squares += x.data()[i] * x.data()[i];
    }
    CHECK(std::abs(sum) < 4 * std::sqrt(squares));
    return std::sqrt(squares / double(x.size()));
  };
  const auto fresh = [] { return Tensor<double, 3>({80, 50, 5}); };  // 250 inputs, 400 outputs
  const auto is = [](double expected) { return doctest::Approx(expected).epsilon(0.03); };
  CHECK(deviation(xavier_uniform_(fresh(), state)) == is(std::sqrt(2.0 / 650)));
  CHECK(deviation(xavier_normal_(fresh(), state, 3)) == is(3 * std::sqrt(2.0 / 650)));
  CHECK(deviation(kaiming_uniform_(fresh(), state)) == is(std::sqrt(2.0 / 250)));
  CHECK(deviation(kaiming_uniform_(fresh(), state, 1, Fan::out)) == is(std::sqrt(1.0 / 400)));
  CHECK(deviation(kaiming_normal_(fresh(), state, 0, Fan::in, Nonlinearity::tanh)) ==
        is(5 / (3 * std::sqrt(250.0))));
  CHECK(gain_of(Nonlinearity::relu) == doctest::Approx(1.4142135623730951));
  CHECK(gain_of(Nonlinearity::leaky_relu, 0.2) == doctest::Approx(1.3867504905630728));
  CHECK(gain_of(Nonlinearity::selu) == 0.75);
  CHECK(gain_of(Nonlinearity::linear) == 1);
  const auto bounded = xavier_uniform_(fresh(), state);
  const double bound = std::sqrt(6.0 / 650);
  CHECK(std::all_of(bounded.data(), bounded.data() + bounded.size(),
                    [&](double x) { return x >= -bound && x < bound; }));
}

TEST_CASE("invalid arguments of in-place draws are an error") {
  RandomState state;
  const Tensor<float, 2> x({2, 3});
  CHECK(contains(error_of([&] { uniform_(x, state, 2, 2); }), "uniform: no number lies in [2"));
  CHECK(contains(error_of([&] { normal_(x, state, 0, -1); }),
                 "normal: the standard deviation is -1"));
  CHECK(contains(error_of([&] { trunc_normal_(x, state, 0, 1, 2, -2); }),
                 "trunc_normal_: the bounds must be finite, with low < high"));
  CHECK(contains(error_of([&] { trunc_normal_(x, state, 0, 1, 50, 60); }),
                 "almost never falls into [50.000000, 60.000000]"));
  CHECK(contains(error_of([&] { bernoulli_(x, state, 2); }), "the probability is 2"));
  CHECK(contains(error_of([&] { permutation(-1, state); }), "negative"));
  CHECK(contains(error_of([&] { multinomial(x, 4, state); }),
                 "multinomial: cannot draw 4 of 3 categories without replacement"));
  CHECK(contains(error_of([&] { multinomial(x, -1, state, true); }),
                 "multinomial: the number of draws must not be negative: -1"));
  CHECK(state == RandomState{0, 0});
  x.fill_(0);
  x(0, 1) = x(0, 2) = x(1, 0) = 1;
  CHECK(contains(error_of([&] { multinomial(x, 2, state); }),
                 "multinomial: row 1: 1 categories have a positive weight, for 2 draws without "
                 "replacement"));
  x(0, 0) = -1;
  CHECK(contains(error_of([&] { multinomial(x, 1, state); }), "row 0: a weight is -1.000000"));
}

TEST_SUITE_END();
