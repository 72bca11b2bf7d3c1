// Attention compared with plain loops over all queries and keys: over several blocks, under
// placements, with gradients; and its memory.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/attention/attention.hpp>

#include "errors.hpp"
#include "heads.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace {

template <int Rank>
bool is_close(const Tensor<double, Rank>& found, const std::vector<double>& expected) {
  const auto whole = found.clone();
  bool close = whole.size() == index_t(expected.size());
  for (std::size_t i = 0; close && i < expected.size(); ++i)
    close = std::abs(whole.data()[i] - expected[i]) <= 1e-12 * (1 + std::abs(expected[i]));
  return close;
}

template <class X>
  requires is_dtensor<X>
bool is_close(const X& found, const std::vector<double>& expected) {
  return is_close(found.full_tensor(), expected);
}

template <class... M>
auto attend(const auto& q, const auto& k, const auto& v, M... mask) {
  return scaled_dot_product_attention(q, k, v, mask...);
}

template <class Q, class K, class G, class... M>
void check_attention(const Q& q, const K& k, const K& v, const G& g, const PlainAttention& expected,
                     M... mask) {
  const auto x = requires_grad(q);
  const auto keys = requires_grad(k), values = requires_grad(v);
  const auto y = attend(x, keys, values, mask...);
  CHECK(is_close(y.value(), expected.y));
  backward(sum(mul(y, g)));
  CHECK(is_close(grad(x), expected.dq));
  CHECK(is_close(grad(keys), expected.dk));
  CHECK(is_close(grad(values), expected.dv));
}

}  // namespace

TEST_CASE("attention over several blocks is that of all queries and keys, wherever they lie") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto check = [&](const Heads& x, auto queries, auto keys) {
      const auto q = distribute_tensor(x.q, mesh, queries),
                 g = distribute_tensor(x.g, mesh, queries);
      const auto k = distribute_tensor(x.k, mesh, keys), v = distribute_tensor(x.v, mesh, keys);
      check_attention(q, k, v, g, PlainAttention(x, false));
      check_attention(q, k, v, g, PlainAttention(x, true), causal);
    };
    check(Heads(1, 140, 300), Replicate{}, Replicate{});
    check(Heads(1, 300, 270), Shard<2>{}, Replicate{});
    check(Heads(2, 130, 260), Shard<0>{}, Shard<0>{});
    check(Heads(1, 140, 300), Replicate{}, Shard<1>{});
    check(Heads(1, 3, 2), Replicate{}, Shard<1>{});
  });
}

TEST_CASE("attention with sharded batches, heads or queries needs no communication") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const Heads x(2, 5, 7);
    const auto attend_to = [&](auto queries, auto keys) {
      const auto q = distribute_tensor(x.q, mesh, queries);
      const auto k = distribute_tensor(x.k, mesh, keys), v = distribute_tensor(x.v, mesh, keys);
      CommTrace trace(world);
      const auto y = attend(q, k, v, causal);
      CHECK(trace.events().empty());
      return y;
    };
    const auto of_batches = attend_to(Shard<0>{}, Shard<0>{});
    const auto of_heads = attend_to(Shard<1>{}, Replicate{});
    const auto of_queries = attend_to(Shard<2>{}, Replicate{});
    static_assert(std::is_same_v<decltype(of_batches)::placements_type, Placements<Shard<0>>>);
    static_assert(std::is_same_v<decltype(of_heads)::placements_type, Placements<Shard<1>>>);
    static_assert(std::is_same_v<decltype(of_queries)::placements_type, Placements<Shard<2>>>);
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("attention takes memory for a block, not for all pairs of queries and keys") {
  run_threads(1, [](World&) {
    constexpr index_t n = 2048;
    const std::size_t pairs = std::size_t(n * n) * sizeof(double);
    const auto peak_of = [](const auto& f) {
      const std::size_t before = memory_stats().allocated;
      f();
      return memory_stats().peak - before;
    };
    const auto q = waves<2>({n, 4}, 1), k = waves<2>({n, 4}, 2), v = waves<2>({n, 4}, 3);
    CHECK(peak_of([&] { attend(q, k, v, causal); }) < pairs / 32);
    CHECK(peak_of([&] {
            const auto x = requires_grad(q), y = requires_grad(k), z = requires_grad(v);
            backward(sum(attend(x, y, z)));
          }) < pairs / 24);
    CHECK(peak_of([&] { softmax(matmul(q, transpose(k)), dim<1>{}); }) >= pairs);  // unfused
  });
}

TEST_CASE("where keys are sharded, attention takes memory for blocks of a rank's keys") {
  run_threads(2, [](World& world) {
    constexpr index_t n = 2048;
    const std::size_t pairs = std::size_t(n * n / 2) * sizeof(double);
    const auto mesh = init_device_mesh<tp>(world, {2});
    const auto placed = [&](int seed, auto p) {
      return distribute_tensor(waves<2>({n, 4}, seed), mesh, p);
    };
    const auto q = placed(1, Replicate{});
    const auto k = placed(2, Shard<0>{}), v = placed(3, Shard<0>{});
    reset_memory_peak();
    const std::size_t before = memory_stats().allocated;
    const auto x = requires_grad(q);
    const auto keys = requires_grad(k), values = requires_grad(v);
    CommTrace trace(world);
    const auto y = attend(x, keys, values, causal);
    using Y = std::remove_cvref_t<decltype(y.value())>;
    static_assert(std::is_same_v<Y::placements_type, Placements<Partial<Sum>>>);
    CHECK(trace.count() == 2);
    CHECK(trace.received_bytes() <= 4 * n * index_t(sizeof(double)));
    backward(sum(y));
    CHECK(memory_stats().peak - before < pairs / 8);
  });
}

TEST_CASE("heads that lie side by side in rows are attended to in place") {
  const auto rows = waves<4>({1, 140, 2, 3}, 1);  // [b, n, heads, d]
  Heads x(1, 140, 140);
  for (index_t s = 0; s < 2; ++s)
    for (index_t i = 0; i < 140; ++i)
      for (index_t d = 0; d < 3; ++d) x.q(0, s, i, d) = rows(0, i, s, d);
  CHECK(is_close(attend(rows.transpose(1, 2), x.k, x.v, causal), PlainAttention(x, true).y));
}

TEST_CASE("second derivatives of attention are the slopes of its gradients") {
  const Heads x(1, 3, 4);
  const auto h = waves<4>({1, 2, 3, 3}, 5);
  const auto w = waves<3>({1, 4, 3}, 6), u = waves<3>({1, 4, 2}, 7);
  // the value of which second-order gradients are taken
  const auto total = [&](const PlainAttention& at) {
    double sum = 0;
    for (std::size_t i = 0; i < at.dq.size(); ++i) sum += at.dq[i] * h.data()[i];
    for (std::size_t i = 0; i < at.dk.size(); ++i) sum += at.dk[i] * w.data()[i];
    for (std::size_t i = 0; i < at.dv.size(); ++i) sum += at.dv[i] * u.data()[i];
    return sum;
  };
  const auto q = requires_grad(x.q);
  const auto k = requires_grad(x.k), v = requires_grad(x.v);
  const auto inner_q = requires_grad(q);
  const auto inner_k = requires_grad(k), inner_v = requires_grad(v);
  backward(sum(mul(attend(inner_q, inner_k, inner_v, causal), x.g)));
  backward(
      add(add(sum(mul(grad(inner_q), h)), sum(mul(grad(inner_k), w))), sum(mul(grad(inner_v), u))));
  const auto check = [&](const auto& values, const auto& found) {
    bool close = true;
    for (index_t i = 0; i < values.size(); ++i) {
      constexpr double step = 1e-4;
      const double there = values.data()[i];
      values.data()[i] = there + step;
      const double above = total(PlainAttention(x, true));
      values.data()[i] = there - step;
      const double below = total(PlainAttention(x, true));
      values.data()[i] = there;
      close = close && std::abs(found.data()[i] - (above - below) / (2 * step)) < 1e-6;
    }
    CHECK(close);
  };
  check(x.q, grad(q));
  check(x.k, grad(k));
  check(x.v, grad(v));
}

TEST_CASE("attention of 16 bits is computed in float") {
  const Heads x(1, 20, 30);
  const auto narrow = [](const auto& a) { return cast<half>(a); };
  const auto y = attend(narrow(x.q), narrow(x.k), narrow(x.v));
  const PlainAttention expected(x, false);
  bool close = true;
  for (index_t i = 0; i < y.size(); ++i)
    close = close && std::abs(double(float(y.data()[i])) - expected.y[std::size_t(i)]) < 2e-3;
  CHECK(close);
}

TEST_CASE("queries without keys have no mean of values") {
  const Tensor<double, 2> q({2, 3}), none({0, 3});
  CHECK(error_of([&] {
          attend(q, none, none);
        }).find("scaled_dot_product_attention: the number of keys must be positive") == 0);
  const Tensor<double, 2> nobody({0, 3});
  CHECK(attend(nobody, none, none).size() == 0);
}

TEST_SUITE_END();
