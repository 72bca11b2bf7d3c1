// Attention on the test's device by blocks of queries and keys, with masks and gradients, compared
// with plain loops over all queries and keys.
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/attention/attention.hpp>

#include "device.hpp"
#include "heads.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace attention_on_device {
namespace {

constexpr double hidden = -std::numeric_limits<double>::infinity();

double error_of(const auto& found, const std::vector<double>& expected) {
  const auto whole = found.full_tensor().to(Host{}).clone();
  if (whole.size() != index_t(expected.size())) return 1;
  double error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    error = std::max(error, std::abs(whole.data()[i] - expected[i]) / (1 + std::abs(expected[i])));
  return error;
}

void check(const Heads& x, const auto& mesh, auto queries, auto keys,
           const PlainAttention& expected, const auto&... mask) {
  const auto q = requires_grad(distribute_tensor(x.q, mesh, queries));
  const auto k = requires_grad(distribute_tensor(x.k, mesh, keys)),
             v = requires_grad(distribute_tensor(x.v, mesh, keys));
  const auto y = scaled_dot_product_attention(q, k, v, mask...);
  CHECK(error_of(y.value(), expected.y) < 1e-12);
  backward(sum(mul(y, distribute_tensor(x.g, mesh, queries))));
  CHECK(error_of(grad(q), expected.dq) < 1e-12);
  CHECK(error_of(grad(k), expected.dk) < 1e-12);
  CHECK(error_of(grad(v), expected.dv) < 1e-12);
}

/// Adds i - 2 j modulo 5; hides keys 0 to 255 of query 1, and all of query 2.
double added(index_t i, index_t j) {
  return (i == 1 && j < 256) || i == 2 ? hidden : double((i + 3 * j) % 5);
}

}  // namespace
}  // namespace attention_on_device

using namespace attention_on_device;

TEST_CASE("attention on a device is that of all queries and keys, with its gradients") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto compare = [&](const Heads& x, auto queries, auto keys) {
      check(x, mesh, queries, keys, PlainAttention(x, false));
      check(x, mesh, queries, keys, PlainAttention(x, true), causal);
    };
    compare(Heads(1, 40, 600), Replicate{}, Replicate{});
    compare(Heads(1, 300, 270), Shard<2>{}, Replicate{});
    compare(Heads(2, 30, 260), Shard<0>{}, Shard<0>{});
    compare(Heads(1, 40, 600), Replicate{}, Shard<1>{});
    compare(Heads(1, 3, 2), Replicate{}, Shard<1>{});
    compare(Heads(2, 1, 1), Replicate{}, Replicate{});
  });
}

TEST_CASE("queries of one head in several blocks on a device") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {1}, TestDevice{});
    const Heads x(1, 4200, 256);
    const auto place = [&](const auto& array) {
      return distribute_tensor(array, mesh, Replicate{});
    };
    const auto y = scaled_dot_product_attention(place(x.q), place(x.k), place(x.v), causal);
    CHECK(error_of(y, PlainAttention(x, true).y) < 1e-12);
  });
}

TEST_CASE("masks on a device hide keys or add numbers, for one query or for all") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const Heads x(2, 5, 300);
    Tensor<double, 2> numbers({5, 300});
    Tensor<bool, 2> seen({5, 300}), row({1, 300});
    for (index_t i = 0; i < 5; ++i)
      for (index_t j = 0; j < 300; ++j) {
        numbers(i, j) = added(i, j);
        seen(i, j) = added(i, j) != hidden;
        row(0, j) = j % 3 == 0;
      }
    const auto place = [&](const auto& mask) { return distribute_tensor(mask, mesh, Replicate{}); };
    check(x, mesh, Replicate{}, Replicate{}, PlainAttention(x, added), place(numbers));
    check(
        x, mesh, Replicate{}, Shard<1>{},
        PlainAttention(x, [](index_t i, index_t j) { return added(i, j) == hidden ? hidden : 0; }),
        place(seen));
    check(x, mesh, Shard<1>{}, Replicate{},
          PlainAttention(x, [](index_t, index_t j) { return j % 3 == 0 ? 0 : hidden; }),
          place(row));
  });
}
