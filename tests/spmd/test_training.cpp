// A training step, forward and backward, as one program.
#include <array>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/losses/cross_entropy.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// The cross-entropy of two layers, and the gradients of input and weights.
struct Training {
  constexpr auto operator()(const auto& input, const auto& first, const auto& bias,
                            const auto& second, const auto& classes) const {
    const auto x = requires_grad(input);
    const auto w1 = requires_grad(first);
    const auto b1 = requires_grad(bias);
    const auto w2 = requires_grad(second);
    const auto loss = cross_entropy(matmul(relu(add(matmul(x, w1), b1)), w2), classes);
    backward(loss);
    return std::tuple(detach(loss), grad(x), grad(w1), grad(b1), grad(w2));
  }
};

constexpr auto training_graph = spmd::frozen([] {
  using spmd::arg;
  return spmd::trace(Training{}, arg<double>("x", {12, 6}), arg<double>("w1", {6, 8}),
                     arg<double>("b1", {8}), arg<double>("w2", {8, 5}),
                     arg<index_t>("classes", {12}));
});

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;
using spmd::schema;
constexpr std::array by_data{schema(S0{}), schema(R{}), schema(R{}), schema(R{}), schema(S0{})};
constexpr std::array by_tensor{schema(R{}), schema(S1{}), schema(S0{}), schema(S0{}), schema(R{})};
constexpr std::array by_both{schema(S0{}, R{}), schema(R{}, S1{}), schema(R{}, S0{}),
                             schema(R{}, S0{}), schema(S0{}, R{})};

// Data parallel: one all-reduce per weight and one of the loss. Tensor parallel: one forward, and
// one of the gradient of the input. Both: all of these. Nothing else moves.
constexpr int all_reduces(const auto& schemas, unsigned axes) {
  return spmd::count(spmd::expand(training_graph, schemas), StepKind::all_reduce, axes);
}
static_assert(all_reduces(by_data, 1) == 4);
static_assert(spmd::communications(spmd::expand(training_graph, by_data)) == 4);
static_assert(all_reduces(by_tensor, 1) == 2);
static_assert(spmd::communications(spmd::expand(training_graph, by_tensor)) == 2);
static_assert(all_reduces(by_both, 1) == 4 && all_reduces(by_both, 2) == 2);
static_assert(spmd::communications(spmd::expand(training_graph, by_both)) == 6);

/// Weights that are gathered when they are used, and their gradients.
struct Gathered {
  constexpr auto operator()(const auto& x, const auto& weights) const {
    const auto w = requires_grad(weights);
    const auto whole = redistribute(w, R{});
    backward(add(sum(square(matmul(x, whole))), sum(square(matmul(relu(x), whole)))));
    return grad(w);
  }
};

constexpr auto gathered_graph = spmd::frozen([] {
  return spmd::trace(Gathered{}, spmd::arg<double>("x", {12, 6}), spmd::arg<double>("w", {6, 8}));
});
constexpr std::array sharded_weights{schema(S0{}), schema(S0{})};
constexpr auto gathered_program =
    spmd::frozen([] { return spmd::expand(gathered_graph, sharded_weights); });
static_assert(spmd::count(gathered_program, StepKind::all_gather) == 1);
static_assert(spmd::count(gathered_program, StepKind::reduce_scatter) == 1);
static_assert(spmd::communications(gathered_program) == 2);

template <class X, class W1, class B1, class W2, class Mesh>
void check_training(const Mesh& mesh, std::array<index_t, 4> extents) {
  const auto& [n, d, h, c] = extents;
  check_like_eager(Training{}, irregular<double, X>(mesh, std::array{n, d}, 1),
                   irregular<double, W1>(mesh, std::array{d, h}, 2),
                   irregular<double, B1>(mesh, std::array{h}, 3),
                   irregular<double, W2>(mesh, std::array{h, c}, 4),
                   irregular<index_t, X>(mesh, std::array{n}, 5));  // below 5
}

}  // namespace

TEST_CASE("a program of a training step computes the gradients that the tape does") {
  on_ranks({1, 2, 3, 4, 5, 6, 7}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    using P = Placements<R>;
    check_training<Placements<S0>, P, P, P>(mesh, {12, 6, 8, 5});
    check_training<P, Placements<S1>, Placements<S0>, Placements<S0>>(mesh, {5, 3, 10, 6});
  });
}

TEST_CASE("on a mesh with two axes, too") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2}, TestDevice{});
    check_training<Placements<S0, R>, Placements<R, S1>, Placements<R, S0>, Placements<R, S0>>(
        mesh, {7, 3, 5, 6});
  });
}

TEST_CASE("the gradient of weights that a program gathers is reduce-scattered, as in calls") {
  on_ranks({1, 2, 3, 5}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    check_like_eager(Gathered{},
                     irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{7, 4}, 1),
                     irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{4, 3}, 2));
  });
}
