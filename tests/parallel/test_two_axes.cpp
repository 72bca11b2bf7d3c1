// Tensor parallelism over one axis, data parallelism over the other.
#include <vector>

#include <doctest/doctest.h>

#include <cleave/parallel.hpp>

#include "ranks.hpp"
#include "small_gpt.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

Tensor<double, 2> rows_of_a_batch() {
  Tensor<double, 2> x({8, 6});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i * i % 11) / 11;
  return x;
}

/// The losses of training a module to return 0.
std::vector<double> losses_to_zero(const auto& m, const auto& x) {
  auto optimizer = nn::adamw(m, {.learning_rate = 0.01});
  std::vector<double> losses;
  for (int step = 0; step < gpt::steps; ++step) {
    zero_grad(m);
    const auto loss = mean(square(m(x)));
    backward(loss);
    losses.push_back(whole_elements(loss.value())[0]);
    optimizer.step(m);
  }
  return losses;
}

}  // namespace

TEST_CASE("a plan over tp, replicated or fully sharded over dp: the losses of one rank") {
  RandomState state{1, 0};
  const auto lazy = nn::mlp<double>(6, 8, 6);
  const auto expected = losses_to_zero(requires_grad(nn::make(lazy, state)), rows_of_a_batch());
  CHECK(expected.back() < 0.5 * expected.front());
  on_ranks({4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto x = distribute_tensor(rows_of_a_batch(), mesh, Shard<0>{}, Replicate{});
    const auto planned = [&] {
      manual_seed(world, 1);
      return parallelize_module(lazy, mesh, tp{}, on("up"_path, ColwiseParallel{}),
                                on("down"_path, RowwiseParallel{}));
    };
    const auto replicated = requires_grad(replicate(planned(), mesh, dp{}));
    CHECK(largest_difference(losses_to_zero(replicated, x), expected) < 1e-13);
    const auto sharded = requires_grad(fully_shard(planned(), mesh, dp{}));
    CHECK(largest_difference(losses_to_zero(sharded, x), expected) < 1e-13);

    zero_grad(replicated);
    const auto loss = mean(square(replicated(x)));
    CommTrace trace(world);
    backward(loss);
    CHECK(trace.count(CollectiveKind::all_reduce, "dp") == 1);  // one bucket
    CHECK(trace.count(CollectiveKind::all_reduce, "tp") == 0);  // x needs no gradient
  });
}
