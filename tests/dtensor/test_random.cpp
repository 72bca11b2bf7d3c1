// Random arrays: the same elements on any mesh; no counter is used twice.
#include <algorithm>
#include <complex>
#include <cstdint>
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

/// Draws on a mesh and compares with the draws on one device.
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

struct FirstBits {
  index_t operator()(const Philox::Counter& bits) const {
    return index_t(std::uint64_t(bits[0]) << 32 | bits[1]);
  }
};

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

TEST_CASE("no counter is used twice: the bits of all elements of all draws differ") {
  on_ranks({1, 4, 6}, [](World& world) {
    const index_t half = world.size() > 1 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {half, world.size() / half});
    manual_seed(world, 5);
    std::vector<index_t> bits;  // a bijection of the counters; this is one half of it
    const auto draw = [&](auto... p) {
      const auto x = empty<index_t>({7, 45}, mesh, p...);
      const auto all = detail::fill_drawn("test", FirstBits{}, x).full_tensor();
      bits.insert(bits.end(), all.data(), all.data() + all.size());
    };
    draw(Shard<0>{}, Shard<1>{});
    draw(Shard<1>{}, Shard<1>{});
    draw(Replicate{}, Shard<0>{});
    draw(Replicate{}, Replicate{});
    set_random_state(world, {6, 0});
    draw(Shard<0>{}, Shard<0>{});
    set_random_state(world, {5, std::uint64_t(1) << 32});
    draw(Shard<0>{}, Shard<0>{});
    std::sort(bits.begin(), bits.end());
    CHECK(bits.size() == 6 * 7 * 45);
    CHECK(std::adjacent_find(bits.begin(), bits.end()) == bits.end());
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("invalid parameters of distributions are an error") {
  RandomState state;
  CHECK(contains(error_of([&] { randint<std::int32_t>(3, 3, {2}, state); }),
                 "randint: no number lies in [3, 3)"));
  CHECK(
      contains(error_of([&] { bernoulli(1.5, {2}, state); }), "bernoulli: the probability is 1.5"));
  CHECK(contains(error_of([&] { rand<float>({-2}, state); }), "is negative"));
}

TEST_SUITE_END();
