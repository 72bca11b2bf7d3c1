// Attention in programs: the same values as a call, and no memory for all pairs of queries and
// keys.
#include <array>
#include <cmath>
#include <cstddef>

#include <doctest/doctest.h>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/ops/attention/attention.hpp>
#include <cleave/spmd.hpp>

#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

constexpr index_t attention_places = 1024;

struct Attending {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    return scaled_dot_product_attention(q, k, v, causal);
  }
};

constexpr auto attention_graph = spmd::frozen([] {
  return spmd::trace(Attending{}, spmd::arg<double>("q", {attention_places, 4}),
                     spmd::arg<double>("k", {attention_places, 4}),
                     spmd::arg<double>("v", {attention_places, 4}));
});
constexpr std::array attention_schemas{spmd::schema(Replicate{}), spmd::schema(Shard<0>{}),
                                       spmd::schema(Shard<0>{})};
constexpr auto attention_program =
    spmd::frozen([] { return spmd::expand(attention_graph, attention_schemas); });

}  // namespace

TEST_SUITE_BEGIN("threads only");

TEST_CASE("attention in a program gives the result of a call, and takes memory for blocks") {
  run_threads(2, [](World& world) {
    constexpr index_t n = attention_places;
    const auto mesh = init_device_mesh<tp>(world, {2});
    const auto wave = [&](int seed) {
      const Tensor<double, 2> x({n, 4});
      for (index_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(double(i * 37 % 1009) + seed);
      return x;
    };
    const auto q = wave(1), k = wave(2), v = wave(3);
    const auto expected = scaled_dot_product_attention(q, k, v, causal);
    const auto placed_q = distribute_tensor(q, mesh, Replicate{});
    const auto placed_k = distribute_tensor(k, mesh, Shard<0>{});
    const auto placed_v = distribute_tensor(v, mesh, Shard<0>{});
    reset_memory_peak();
    const std::size_t before = memory_stats().allocated;
    const auto [y] = spmd::run<attention_program>(mesh, placed_q, placed_k, placed_v);
    CHECK(memory_stats().peak - before < std::size_t(n * n / 2) * sizeof(double) / 4);
    const auto whole = y.full_tensor();
    bool close = true;
    for (index_t i = 0; i < whole.size(); ++i)
      close = close && std::abs(whole.data()[i] - expected.data()[i]) < 1e-12;
    CHECK(close);
  });
}

TEST_SUITE_END();
