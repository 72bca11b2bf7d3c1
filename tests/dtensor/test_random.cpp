// Random arrays: the same elements on any mesh, distributions that are what they say.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/random.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

template <class T, int Rank>
bool same_bits(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  return a.shape() == b.shape() && std::equal(a.data(), a.data() + a.size(), b.data());
}

/// Draws on a mesh what has been drawn on one device, and compares.
template <class T, class Mesh, class... P>
void check_draws(const World& world, const Mesh& mesh, P... p) {
  RandomState state{99, 3};
  set_random_state(world, state);
  const auto u = rand<T>({5, 7}, mesh, p...).full_tensor();
  const auto n = randn<T>({5, 7}, mesh, p...).full_tensor();
  CHECK(same_bits(u, rand<T>({5, 7}, state)));
  CHECK(same_bits(n, randn<T>({5, 7}, state)));
  CHECK(random_state(world) == state);
}

template <class Mesh, class... P>
void check_all_types(const World& world, const Mesh& mesh, P... p) {
  check_draws<float>(world, mesh, p...);
  check_draws<double>(world, mesh, p...);
  check_draws<half>(world, mesh, p...);
  check_draws<std::complex<double>>(world, mesh, p...);
  RandomState state{7, 0};
  manual_seed(mesh, 7);
  const auto k = randint<std::int32_t>(-3, 12, {5, 7}, mesh, p...).full_tensor();
  const auto b = bernoulli(0.3, {5, 7}, mesh, p...).full_tensor();
  CHECK(same_bits(k, randint<std::int32_t>(-3, 12, {5, 7}, state)));
  CHECK(same_bits(b, bernoulli(0.3, {5, 7}, state)));
}

/// The largest distance between the distribution of a sample and another one (Kolmogorov, Smirnov).
template <class F>
double distance(std::vector<double> sample, const F& distribution) {
  std::sort(sample.begin(), sample.end());
  double worst = 0;
  const double n = double(sample.size());
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double expected = distribution(sample[i]);
    worst = std::max({worst, std::abs(expected - double(i) / n),
                      std::abs(expected - double(i + 1) / n)});
  }
  return worst;
}

template <class T>
std::vector<double> sample_of(const Tensor<T, 1>& x) {
  std::vector<double> sample;
  for (index_t i = 0; i < x.size(); ++i) sample.push_back(double(x(i)));
  return sample;
}

}  // namespace

TEST_CASE("random elements are the same on one device and on any mesh, shards uneven or empty") {
  on_ranks({1, 4}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    check_all_types(world, line, Shard<0>{});
    check_all_types(world, line, Shard<1>{});
    check_all_types(world, line, Replicate{});
  });
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    check_all_types(world, mesh, Shard<0>{}, Shard<1>{});
    check_all_types(world, mesh, Shard<1>{}, Shard<1>{});
    check_all_types(world, mesh, Replicate{}, Shard<0>{});
  });
  on_ranks({8}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp, pp>(world, {2, 2, 2});
    check_all_types(world, mesh, Shard<0>{}, Shard<0>{}, Shard<1>{});
    check_all_types(world, mesh, Shard<1>{}, Replicate{}, Shard<1>{});
  });
}

TEST_CASE("draws follow each other without using a counter twice; a state can be set again") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    manual_seed(world, 5);
    const auto first = rand<double>({1000}, mesh, Shard<0>{}).full_tensor();
    const RandomState between = random_state(world);
    CHECK(between == RandomState{5, 1});
    const auto second = rand<double>({1000}, mesh, Shard<0>{}).full_tensor();
    auto all = sample_of(first);
    for (const double x : sample_of(second)) all.push_back(x);
    std::sort(all.begin(), all.end());
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    set_random_state(mesh, between);
    CHECK(same_bits(second, rand<double>({1000}, mesh, Replicate{}).full_tensor()));
  });
}

TEST_CASE("ranks that stand elsewhere are told so where calls are compared") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    manual_seed(world, world.rank() == 1 ? 6 : 5);
    world.communicator().state().check = CheckLevel::collective;
    CHECK(contains(error_of([&] { rand<float>({4}, mesh, Shard<0>{}); }), "disagree"));
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("a million numbers are distributed as they should be") {
  constexpr index_t n = 1000000;
  const double critical = 1.95 / std::sqrt(double(n));  // exceeded once in a thousand
  RandomState state{2024, 0};
  CHECK(distance(sample_of(rand<double>({n}, state)), [](double x) { return x; }) < critical);
  CHECK(distance(sample_of(rand<float>({n}, state)), [](double x) { return x; }) < critical);
  CHECK(distance(sample_of(randn<double>({n}, state)), [](double x) {
          return 0.5 * std::erfc(-x / std::sqrt(2.0));
        }) < critical);
  const auto whole = randint<std::int32_t>(-5, 15, {n}, state);
  std::array<double, 20> counts{};
  for (index_t i = 0; i < n; ++i) ++counts.at(std::size_t(whole(i) + 5));
  double chi2 = 0;
  for (const double c : counts) chi2 += (c - n / 20.0) * (c - n / 20.0) / (n / 20.0);
  CHECK(chi2 < 43.8);  // 19 degrees of freedom, once in a thousand
  const auto coins = bernoulli(0.25, {n}, state);
  const double heads = double(std::count(coins.data(), coins.data() + n, true));
  CHECK(std::abs(heads - n * 0.25) < 3.3 * std::sqrt(n * 0.25 * 0.75));
}

TEST_CASE("what cannot be drawn is an error") {
  RandomState state;
  CHECK(contains(error_of([&] { randint<std::int32_t>(3, 3, {2}, state); }),
                 "randint: there is no number in [3, 3)"));
  CHECK(contains(error_of([&] { bernoulli(1.5, {2}, state); }), "bernoulli: the probability is 1.5"));
  CHECK(contains(error_of([&] { rand<float>({-2}, state); }), "is negative"));
}

TEST_SUITE_END();
