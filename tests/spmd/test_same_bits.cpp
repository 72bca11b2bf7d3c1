// Results of programs have the bits of eager calls, operation after operation. Composites that
// choose a kernel by placements: test_composites.cpp.
#include <array>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/losses/class_losses.hpp>
#include <cleave/ops/losses/cross_entropy.hpp>
#include <cleave/ops/losses/mse_loss.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/products/linear.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/cumsum.hpp>
#include <cleave/ops/reductions/dot.hpp>
#include <cleave/ops/reductions/logsumexp.hpp>
#include <cleave/ops/reductions/norm.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/reductions/variance.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

constexpr auto elementwise_bits = [](const auto& x, const auto& y) {
  const auto positive = add(abs(x), 0.5);
  return std::tuple(add(x, y), sub(x, y), mul(x, y), div(y, positive), exp(x), log(positive),
                    sqrt(positive), tanh(x), sigmoid(x), gelu(x), silu(x), relu(x));
};
constexpr auto reduction_bits = [](const auto& x, const auto&) {
  return std::tuple(sum(x), sum(x, dim<0>{}), sum(x, dim<1>{}), mean(x, dim<1>{}), max(x, dim<0>{}),
                    min(x), prod(x, dim<1>{}), argmax(x, dim<1>{}), cumsum(x, dim<1>{}));
};
constexpr auto row_bits = [](const auto& x, const auto&) {
  return std::tuple(softmax(x, dim<1>{}), log_softmax(x, dim<1>{}), logsumexp(x, dim<1>{}));
};
constexpr auto statistic_bits = [](const auto& x, const auto& y) {
  return std::tuple(var(x, dim<1>{}), norm(x), mse_loss(x, y));
};
constexpr auto product_bits = [](const auto& x, const auto& y) {
  return std::tuple(matmul(x, transpose(y)), matmul(transpose(x), y), linear(x, y));
};
constexpr auto movement_bits = [](const auto& x, const auto&) {
  return std::tuple(transpose(x), slice(x, dim<1>{}, 2, 9), slice(x, dim<0>{}, 1, 5),
                    reshape(x, {11, 12}));
};

template <class T, class P, class Mesh>
void check_same_bits(const Mesh& mesh, P) {
  const std::array<index_t, 2> shape{12, 11};
  const auto x = irregular<T, P>(mesh, shape, 1), y = irregular<T, P>(mesh, shape, 2);
  check_like_eager(elementwise_bits, x, y);
  check_like_eager(reduction_bits, x, y);
  check_like_eager(row_bits, x, y);
  check_like_eager(statistic_bits, x, y);
  check_like_eager(product_bits, x, y);
  check_like_eager(movement_bits, x, y);
}

}  // namespace

TEST_CASE("results of programs have the bits of eager calls, operation after operation") {
  on_ranks({1, 2, 5}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    check_same_bits<float>(mesh, Placements<Shard<0>>{});
    check_same_bits<float>(mesh, Placements<Shard<1>>{});
    check_same_bits<double>(mesh, Placements<Shard<0>>{});
  });
}
