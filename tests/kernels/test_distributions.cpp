// Distributions: ten million numbers compared with their distribution functions; the orders of
// permutations and the draws of categories compared with their probabilities.
//
// All seeds are fixed. One sample in a thousand exceeds the critical values.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/permutation.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/ops/random/multinomial.hpp>

using namespace cleave;

TEST_SUITE_BEGIN("threads only");

namespace {

constexpr index_t many = 10'000'000;

/// For Kolmogorov's statistic and large samples: 2 exp(-2 x^2) = 0.001.
/// N. Smirnov: Table for estimating the goodness of fit of empirical distributions. Ann. Math.
/// Statist. 19 (1948), 279-281.
double critical_distance(index_t n) { return 1.9495 / std::sqrt(double(n)); }

/// For chi-square: E. B. Wilson, M. M. Hilferty: The distribution of chi-square. Proc. Natl. Acad.
/// Sci. 17 (1931), 684-688; within 0.1 % of the tables from 3 degrees of freedom on.
double critical_chi_square(double freedom) {
  const double a = 2 / (9 * freedom);
  return freedom * std::pow(1 - a + 3.0902 * std::sqrt(a), 3);
}

double chi_square(const std::vector<double>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  return sum;
}
double chi_square(const std::vector<double>& counts) {
  const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
  return chi_square(counts, std::vector<double>(counts.size(), n / double(counts.size())));
}

/// The distance between the distribution of a sample and the given one (Kolmogorov, Smirnov), on a
/// grid of 2^16 points. Between the points it can be larger, by at most the difference between
/// neighbours.
template <class T, class F>
double distance(const Tensor<T, 1>& sample, const F& distribution) {
  constexpr index_t cells = index_t(1) << 16;
  std::vector<double> counts(cells, 0.0);
  for (index_t i = 0; i < sample.size(); ++i) {
    const double p = distribution(double(sample.data()[i]));
    ++counts[std::size_t(std::clamp(index_t(p * double(cells)), index_t(0), cells - 1))];
  }
  double below = 0, worst = 0;
  for (index_t c = 0; c < cells; ++c) {
    below += counts[std::size_t(c)];
    worst =
        std::max(worst, std::abs(below / double(sample.size()) - double(c + 1) / double(cells)));
  }
  return worst;
}

double density(double z) { return std::exp(-z * z / 2) / std::sqrt(8 * std::atan(1.0)); }
double probability(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

}  // namespace

TEST_CASE("ten million uniform and normal numbers follow their distributions") {
  RandomState state{2024, 0};
  const auto uniform = [](double x) { return x; };
  CHECK(distance(rand<double>({many}, state), uniform) < critical_distance(many));
  CHECK(distance(rand<float>({many}, state), uniform) < critical_distance(many));
  CHECK(distance(randn<float>({many}, state), probability) < critical_distance(many));
}

TEST_CASE("ten million integers, and pairs of neighbours, are equally frequent") {
  RandomState state{2025, 0};
  const auto whole = randint<std::int32_t>(-50, 950, {many}, state);
  std::vector<double> counts(1000, 0.0), pairs(10000, 0.0);
  for (index_t i = 0; i < many; ++i) ++counts[std::size_t(whole.data()[i] + 50)];
  for (index_t i = 0; i + 1 < many; i += 2)
    ++pairs[std::size_t((whole.data()[i] + 50) / 10 * 100 + (whole.data()[i + 1] + 50) / 10)];
  CHECK(chi_square(counts) < critical_chi_square(999));
  CHECK(chi_square(pairs) < critical_chi_square(9999));
}

TEST_CASE("the same element of successive draws, and of successive seeds, is independent") {
  std::vector<double> by_draw(1024, 0.0), by_seed(1024, 0.0);
  for (std::uint64_t n = 0; n < 400'000; n += 2) {
    const auto cell = [](const Philox::Counter& a, const Philox::Counter& b) {
      return std::size_t(a[0] >> 27 << 5 | b[0] >> 27);
    };
    ++by_draw[cell(RandomState{1, n}.bits(3), RandomState{1, n + 1}.bits(3))];
    ++by_seed[cell(RandomState{n, 1}.bits(3), RandomState{n + 1, 1}.bits(3))];
  }
  CHECK(chi_square(by_draw) < critical_chi_square(1023));
  CHECK(chi_square(by_seed) < critical_chi_square(1023));
}

TEST_CASE("truth values have their probability") {
  RandomState state{2026, 0};
  constexpr index_t n = 1'000'000;
  for (const double p : {0.25, 0.01}) {
    const auto coins = bernoulli(p, {n}, state);
    const double heads = double(std::count(coins.data(), coins.data() + n, true));
    CHECK(std::abs(heads - n * p) < 3.3 * std::sqrt(n * p * (1 - p)));
  }
}

TEST_CASE("truncated normal numbers have the distribution and the moments of the theory") {
  RandomState state{2027, 0};
  constexpr index_t n = 2'000'000;
  const auto check = [&](double mean, double deviation, double low, double high) {
    const Tensor<double, 1> x({n});
    trunc_normal_(x, state, mean, deviation, low, high);
    const double a = (low - mean) / deviation, b = (high - mean) / deviation;
    const bool upper = a > 0;  // probabilities are finer in the lower tail
    const double mass = upper ? probability(-a) - probability(-b) : probability(b) - probability(a);
    CHECK(distance(x, [&](double v) {
            const double z = (v - mean) / deviation;
            return (upper ? probability(-a) - probability(-z) : probability(z) - probability(a)) /
                   mass;
          }) < critical_distance(n));
    double sum = 0, squares = 0, least = high, most = low;
    for (index_t i = 0; i < n; ++i) {
      const double z = (x.data()[i] - mean) / deviation;
      sum += z;
      squares += z * z;
      least = std::min(least, x.data()[i]);
      most = std::max(most, x.data()[i]);
    }
    CHECK(least >= low);
    CHECK(most <= high);
    const double first = (density(a) - density(b)) / mass;
    const double variance = 1 + (a * density(a) - b * density(b)) / mass - first * first;
    const double found = sum / double(n);
    CHECK(std::abs(found - first) < 3.3 * std::sqrt(variance / double(n)));
    CHECK(squares / double(n) - found * found == doctest::Approx(variance).epsilon(0.01));
  };
  check(0, 1, -2, 2);
  check(1, 0.5, 0, 1.25);
  check(0, 1, 3, 5);
}

TEST_CASE("all orders of a permutation are equally frequent") {
  for (const index_t n : {3, 4, 5}) {
    const std::size_t orders = n == 3 ? 6 : n == 4 ? 24 : 120;
    std::vector<double> counts(orders, 0.0);
    RandomState state{2028, 0};
    for (std::size_t draw = 0; draw < 30 * orders; ++draw) {
      const auto order = permutation(n, state);
      std::size_t number = 0;  // of the permutation, in the factorial number system
      for (index_t i = 0; i < n; ++i) {
        std::size_t smaller = 0;
        for (index_t j = i + 1; j < n; ++j) smaller += order(j) < order(i);
        number = number * std::size_t(n - i) + smaller;
      }
      ++counts.at(number);
    }
    CHECK(chi_square(counts) < critical_chi_square(double(orders - 1)));
  }
}

TEST_CASE("neighbours in a permutation go to all pairs of places; even orders are half of all") {
  for (const index_t n : {16, 19}) {
    std::vector<double> counts;
    std::vector<double> places(std::size_t(n * n), 0.0), signs(2, 0.0);
    for (std::uint64_t draw = 0; draw < 4000; ++draw) {
      RandomState state{2029, draw};
      const auto order = permutation(n, state);
      ++places[std::size_t(order(2) * n + order(3))];
      std::size_t inversions = 0;
      for (index_t i = 0; i < n; ++i)
        for (index_t j = i + 1; j < n; ++j) inversions += order(j) < order(i);
      ++signs[inversions % 2];
    }
    for (index_t i = 0; i < n * n; ++i)
      if (i / n != i % n) counts.push_back(places[std::size_t(i)]);
      else CHECK(places[std::size_t(i)] == 0);
    CHECK(chi_square(counts) < critical_chi_square(double(n * (n - 1) - 1)));
    CHECK(std::abs(signs[0] - 2000) < 3.3 * std::sqrt(1000.0));
  }
}

TEST_CASE("a permutation has every number once, also one of more than 2^32 numbers") {
  RandomState state{2030, 0};
  for (const index_t n : {1, 2, 255, 256, 257, 4096, 70000}) {
    const auto order = permutation(n, state);
    std::vector<index_t> sorted(order.data(), order.data() + n);
    std::sort(sorted.begin(), sorted.end());
    bool is_whole = true;
    for (index_t i = 0; i < n; ++i) is_whole = is_whole && sorted[std::size_t(i)] == i;
    CHECK(is_whole);
  }
  const index_t n = (index_t(1) << 40) + 5;
  const kernels::Permutation large(n, {1, 2});
  std::vector<index_t> some;
  for (index_t i = 0; i < 1000; ++i) some.push_back(large(n - 1 - i));
  std::sort(some.begin(), some.end());
  CHECK(std::adjacent_find(some.begin(), some.end()) == some.end());
  CHECK(some.front() >= 0);
  CHECK(some.back() < n);
}

TEST_CASE("categories are drawn with their probabilities, with and without replacement") {
  constexpr index_t rows = 40'000;
  const std::vector<double> weight{1, 0, 4, 2, 3};
  const Tensor<double, 2> weights({rows, 5});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < 5; ++j) weights(i, j) = weight[std::size_t(j)];
  RandomState state{2031, 0};
  std::vector<double> expected, found(5, 0.0);
  const auto with = multinomial(weights, 3, state, true);
  for (index_t i = 0; i < with.size(); ++i) ++found[std::size_t(with.data()[i])];
  CHECK(found[1] == 0);
  found.erase(found.begin() + 1);
  for (const double w : {1, 4, 2, 3}) expected.push_back(w / 10 * 3 * double(rows));
  CHECK(chi_square(found, expected) < critical_chi_square(3));

  std::vector<double> pairs(25, 0.0), pair_counts, pair_expected;
  const auto without = multinomial(weights, 2, state);
  for (index_t i = 0; i < rows; ++i) ++pairs[std::size_t(without(i, 0) * 5 + without(i, 1))];
  for (std::size_t a = 0; a < 5; ++a)
    for (std::size_t b = 0; b < 5; ++b) {
      const double p = a == b ? 0 : weight[a] / 10 * weight[b] / (10 - weight[a]);
      if (p == 0) CHECK(pairs[a * 5 + b] == 0);
      else pair_counts.push_back(pairs[a * 5 + b]), pair_expected.push_back(p * double(rows));
    }
  CHECK(chi_square(pair_counts, pair_expected) < critical_chi_square(11));
}

TEST_SUITE_END();
