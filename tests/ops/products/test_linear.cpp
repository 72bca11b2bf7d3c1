// Linear layers with a bias, on the test's device, compared with loops.
#include <array>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/ops/products/linear.hpp>

#include "../placed.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace linear_layers {
namespace {

/// A layer of [m, k] to [m, n] under some placements, with fractions whose sums are exact.
template <class T, class X, class W, class B>
void check_layer(const auto& mesh, index_t m, index_t k, index_t n) {
  const auto fractions = [&](auto shape, index_t seed) {
    Tensor<T, int(shape.size())> x(shape);
    for (index_t i = 0; i < x.size(); ++i)
      x.data()[i] = T(float((i * seed + i / 7) % 9 - 4) * 0.375f);
    return x;
  };
  const auto x = fractions(std::array{m, k}, 5);
  const auto weight = fractions(std::array{n, k}, 7);
  const auto bias = fractions(std::array{n}, 2);
  const auto y = linear(distribute_tensor(x, mesh, X{}), distribute_tensor(weight, mesh, W{}),
                        distribute_tensor(bias, mesh, B{}));
  about(described(y), [&] {
    check_equal(y, array_of<T>({m, n}, [&](const naive::Indices& i) {
                  float sum = float(bias.data()[i[1]]);
                  for (index_t l = 0; l < k; ++l)
                    sum += float(x.data()[i[0] * k + l]) * float(weight.data()[i[1] * k + l]);
                  return T(sum);
                }));
  });
}

template <class T>
void check_layers(World& world) {
  const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
  for (const auto& [m, k, n] : {std::array<index_t, 3>{5, 6, 7}, {1, 2, 1}, {4, 1, 3}, {0, 3, 2}}) {
    check_layer<T, Replicate, Replicate, Replicate>(mesh, m, k, n);
    check_layer<T, Shard<0>, Replicate, Replicate>(mesh, m, k, n);
    check_layer<T, Replicate, Shard<0>, Shard<0>>(mesh, m, k, n);
    check_layer<T, Shard<1>, Shard<1>, Replicate>(mesh, m, k, n);
  }
}

}  // namespace
}  // namespace linear_layers

using namespace linear_layers;

TEST_CASE("a linear layer adds its bias once where features are sharded, also if there are none") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    for (const index_t features : {6, 0}) {
      const auto x =
          placed<double, Placements<Shard<1>>>(mesh, std::array<index_t, 2>{3, features}, 0);
      const auto weight =
          placed<double, Placements<Shard<1>>>(mesh, std::array<index_t, 2>{5, features}, 1);
      const auto bias = placed<double, Placements<Replicate>>(mesh, std::array<index_t, 1>{5}, 2);
      CommTrace trace(world);
      const auto y = linear(x, weight, bias);
      static_assert(std::is_same_v<decltype(y)::placements_type, Placements<Partial<Sum>>>);
      CHECK(trace.events().empty());
      const Array<double> rows = expected(x, 0), columns = expected(weight, 1);
      const Array<double> b = expected(bias, 2);
      check_equal(y, array_of<double>({3, 5}, [&](const naive::Indices& i) {
                    double sum = b.at({i[1]});
                    for (index_t k = 0; k < features; ++k)
                      sum += rows.at({i[0], k}) * columns.at({i[1], k});
                    return sum;
                  }));
    }
  });
}

TEST_CASE("a linear layer with uneven and empty shards of rows, features and outputs") {
  on_ranks({1, 2, 3}, [](World& world) {
    check_layers<float>(world);
    check_layers<half>(world);
  });
}
