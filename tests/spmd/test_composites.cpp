// Composites that choose a kernel by placements: programs choose as eager calls do, so that results
// and gradients have the same bits.
#include <array>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/attention/attention.hpp>
#include <cleave/ops/normalisation/group_norm.hpp>
#include <cleave/ops/normalisation/layer_norm.hpp>
#include <cleave/ops/normalisation/softmax.hpp>

#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// f's result and the gradients of all operands.
template <class F>
struct WithGradients {
  F f;

  constexpr auto operator()(const auto&... operands) const {
    return of(requires_grad(operands)...);
  }

 private:
  constexpr auto of(const auto&... x) const {
    const auto y = f(x...);
    backward(sum(mul(y, y)));
    return std::tuple(detach(y), grad(x)...);
  }
};
template <class F>
WithGradients(F) -> WithGradients<F>;

constexpr auto norm_of_rows = [](const auto& x, const auto& weight, const auto& bias) {
  return layer_norm(x, weight, bias);
};
constexpr auto root_mean_square_norm = [](const auto& x, const auto& weight, const auto&) {
  return rms_norm(x, weight);
};
constexpr auto softmax_of_rows = [](const auto& x) { return softmax(x, dim<-1>{}); };
constexpr auto softmax_of_columns = [](const auto& x) { return softmax(x, dim<0>{}); };
constexpr auto log_softmax_of_rows = [](const auto& x) { return log_softmax(x, dim<-1>{}); };
constexpr auto log_softmax_of_columns = [](const auto& x) { return log_softmax(x, dim<0>{}); };

template <class P, class W, class Mesh>
void check_norms(const Mesh& mesh, P, W) {
  const auto x = irregular<float, P>(mesh, std::array<index_t, 2>{12, 96}, 1);
  const auto w = irregular<float, W>(mesh, std::array<index_t, 1>{96}, 2);
  const auto b = irregular<float, W>(mesh, std::array<index_t, 1>{96}, 3);
  check_like_eager(norm_of_rows, x, w, b);
  check_like_eager(root_mean_square_norm, x, w, b);
  check_like_eager(WithGradients{norm_of_rows}, x, w, b);
  check_like_eager([](const auto& y) { return std::tuple(layer_norm(y), rms_norm(y)); }, x);
}

template <class P, class Mesh>
void check_softmax(const Mesh& mesh, P) {
  const auto x = irregular<float, P>(mesh, std::array<index_t, 2>{13, 40}, 1);
  check_like_eager(WithGradients{softmax_of_rows}, x);
  check_like_eager(WithGradients{softmax_of_columns}, x);
  check_like_eager(WithGradients{log_softmax_of_rows}, x);
  check_like_eager(WithGradients{log_softmax_of_columns}, x);
}

constexpr auto attention = [](const auto& q, const auto& k, const auto& v) {
  return scaled_dot_product_attention(q, k, v);
};
constexpr auto causal_attention = [](const auto& q, const auto& k, const auto& v) {
  return scaled_dot_product_attention(q, k, v, causal);
};
constexpr auto masked_attention = [](const auto& q, const auto& k, const auto& v,
                                     const auto& mask) {
  return scaled_dot_product_attention(q, k, v, mask);
};

template <class P, class Q, class Mesh>
void check_attention(const Mesh& mesh, P, Q) {
  const std::array<index_t, 3> shape{2, 21, 8};
  const auto q = irregular<float, Q>(mesh, shape, 1);
  const auto k = irregular<float, P>(mesh, shape, 2), v = irregular<float, P>(mesh, shape, 3);
  check_like_eager(causal_attention, q, k, v);
  check_like_eager(WithGradients{attention}, q, k, v);
  check_like_eager(WithGradients{causal_attention}, q, k, v);
  const auto mask =
      irregular<float, Placements<Replicate>>(mesh, std::array<index_t, 2>{21, 21}, 4);
  check_like_eager(masked_attention, q, k, v, mask);
}

}  // namespace

TEST_CASE("attention in programs has the bits of calls, gradients too") {
  on_ranks({1, 2, 5}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    check_attention(mesh, Placements<Shard<0>>{}, Placements<Shard<0>>{});
    check_attention(mesh, Placements<Shard<1>>{}, Placements<Replicate>{});
    check_attention(mesh, Placements<Replicate>{}, Placements<Shard<1>>{});
    check_attention(mesh, Placements<Shard<1>>{}, Placements<Shard<1>>{});
  });
}

TEST_CASE("attention to shards of the last dimension in programs has the bits of calls") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto of = [&](std::uint64_t which) {
      return irregular<float, Placements<Shard<2>>>(mesh, std::array<index_t, 3>{2, 11, 8}, which);
    };
    check_like_eager(causal_attention, of(1), of(2), of(3));
    check_like_eager(attention, of(1), of(2), of(3));
  });
}

TEST_CASE("norms in programs have the bits of calls, gradients too") {
  on_ranks({1, 2, 5}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    check_norms(mesh, Placements<Shard<0>>{}, Placements<Replicate>{});
    check_norms(mesh, Placements<Shard<1>>{}, Placements<Shard<0>>{});
    check_norms(mesh, Placements<Replicate>{}, Placements<Replicate>{});
    check_norms(mesh, Placements<Partial<Sum>>{}, Placements<Replicate>{});
  });
}

TEST_CASE("softmax in programs has the bits of calls, gradients too") {
  on_ranks({1, 2, 5}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    check_softmax(mesh, Placements<Shard<0>>{});
    check_softmax(mesh, Placements<Shard<1>>{});
    check_softmax(mesh, Placements<Partial<Sum>>{});
  });
}
