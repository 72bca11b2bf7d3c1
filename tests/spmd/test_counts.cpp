// The communication of programs, checked at compile time.
#include <array>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/trace_function.hpp>

using namespace cleave;
using namespace cleave::spmd;

namespace {

constexpr index_t N = 12, D = 6, H = 8, C = 5;

/// Two layers and a loss.
struct Forward {
  constexpr auto operator()(const auto& x, const auto& w1, const auto& b1, const auto& w2,
                            const auto& t) const {
    const auto hidden = relu(add(matmul(x, w1), b1));
    const auto y = resolve(matmul(hidden, w2));
    return std::tuple(mean(square(sub(y, t))), y);
  }
};

constexpr auto loss_graph = frozen([] {
  return trace(Forward{}, arg<float>("x", {N, D}), arg<float>("w1", {D, H}), arg<float>("b1", {H}),
               arg<float>("w2", {H, C}), arg<float>("t", {N, C}));
});

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;
constexpr std::array data_parallel{schema(S0{}), schema(R{}), schema(R{}), schema(R{}),
                                   schema(S0{})};
constexpr std::array tensor_parallel{schema(R{}), schema(S1{}), schema(S0{}), schema(S0{}),
                                     schema(R{})};
constexpr std::array both{schema(S0{}, R{}), schema(R{}, S1{}), schema(R{}, S0{}),
                          schema(R{}, S0{}), schema(S0{}, R{})};
constexpr unsigned over_dp = 1, over_tp = 2;

// Data parallel: an all-reduce of the loss. Nothing else moves, not even locally.
static_assert(count(expand(loss_graph, data_parallel), StepKind::all_reduce) == 1);
static_assert(communications(expand(loss_graph, data_parallel)) == 1);
static_assert(count(expand(loss_graph, data_parallel), StepKind::slice) == 0);
static_assert(received_bytes(expand(loss_graph, data_parallel), std::array<index_t, 1>{4}) ==
              sizeof(float));  // rounded down: 2 * 3 / 4 elements

// Tensor parallel: an all-reduce of the second layer's output.
static_assert(count(expand(loss_graph, tensor_parallel), StepKind::all_reduce) == 1);
static_assert(communications(expand(loss_graph, tensor_parallel)) == 1);
static_assert(received_bytes(expand(loss_graph, tensor_parallel), std::array<index_t, 1>{2}) ==
              N * C * sizeof(float));

// Both: one all-reduce of each, over its axis.
static_assert(count(expand(loss_graph, both), StepKind::all_reduce, over_dp) == 1);
static_assert(count(expand(loss_graph, both), StepKind::all_reduce, over_tp) == 1);
static_assert(communications(expand(loss_graph, both)) == 2);

// A loss that may stay a partial sum is not reduced.
static_assert(communications(expand(loss_graph, data_parallel, {.partial_outputs = true})) == 0);

// Known sizes do not change these plans; an axis of one rank moves nothing.
static_assert(count(expand(loss_graph, both), StepKind::all_reduce, over_dp,
                    std::array<index_t, 2>{2, 2}) == 1);
static_assert(count(expand(loss_graph, both), StepKind::all_reduce, over_dp | over_tp,
                    std::array<index_t, 2>{1, 1}) == 0);

/// A value that several operations need under the same placements.
struct Reused {
  constexpr auto operator()(const auto& x) const {
    const auto sums = sum(x, dim<0>{});
    return std::tuple(exp(sums), tanh(sums), sqrt(sums), relu(sums));
  }
};
constexpr auto reused_graph = frozen([] { return trace(Reused{}, arg<double>("x", {N, D})); });
constexpr std::array by_rows{schema(S0{})};
static_assert(communications(expand(reused_graph, by_rows)) == 1);
static_assert(count(expand(reused_graph, by_rows), StepKind::reduce_scatter) == 1);

}  // namespace

TEST_CASE("counts of the compiler are those of the program") {
  CHECK(count(expand(loss_graph, both), StepKind::all_reduce, over_dp) == 1);
  CHECK(count(expand(loss_graph, both), StepKind::all_reduce, over_tp) == 1);
  CHECK(communications(expand(loss_graph, both)) == 2);
}
