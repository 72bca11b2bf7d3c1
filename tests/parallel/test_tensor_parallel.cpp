// Transformers over an axis: the same training as on one rank, and the communication of a block.
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/parallel.hpp>

#include "comm_calls.hpp"
#include "ranks.hpp"
#include "small_gpt.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

gpt::Run on_one_rank() {
  RandomState state{7, 0};
  return gpt::train(nn::make(gpt::small_gpt(2), state), gpt::some_tokens(0), gpt::some_tokens(1));
}

}  // namespace

TEST_CASE("a transformer over tp is trained as on one rank, its classes sharded") {
  const gpt::Run expected = on_one_rank();
  CHECK(expected.losses.back() < 0.5 * expected.losses.front());
  on_ranks({1, 2, 4}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto everywhere = [&](const auto& x) { return distribute_tensor(x, mesh, Replicate{}); };
    manual_seed(world, 7);
    const auto m = gpt::tensor_parallel(gpt::small_gpt(2), mesh, tp{});
    using Up = std::remove_cvref_t<decltype(m.blocks[0].mlp.up.weight)>;
    static_assert(std::is_same_v<Up::placements_type, Placements<Shard<0>>>);
    static_assert(
        std::is_same_v<std::remove_cvref_t<decltype(m.blocks[0].mlp.down.weight)>::placements_type,
                       Placements<Shard<1>>>);
    gpt::check_close(
        gpt::train(m, everywhere(gpt::some_tokens(0)), everywhere(gpt::some_tokens(1))), expected);
  });
}

TEST_CASE("a transformer over dp x tp, its sequences sharded over tp, is trained as on one rank") {
  const gpt::Run expected = on_one_rank();
  on_ranks({2, 4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2});
    const auto by_rows = [&](const auto& x) {
      return distribute_tensor(x, mesh, Shard<0>{}, Replicate{});
    };
    manual_seed(world, 7);
    const auto m = gpt::sequence_parallel(gpt::small_gpt(2), mesh, tp{});
    gpt::check_close(gpt::train(m, by_rows(gpt::some_tokens(0)), by_rows(gpt::some_tokens(1))),
                     expected);
  });
}

TEST_CASE("a block over tp: two all-reduces forward, two backward") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto m = gpt::tensor_parallel(gpt::small_gpt(1), mesh, tp{}).blocks[0];
    check_calls(
        world, m,
        requires_grad(randn<double>({gpt::batch, gpt::context, gpt::width}, mesh, Replicate{})),
        "2 all_reduce", "2 all_reduce");
  });
}

TEST_CASE(
    "a block whose sequences are sharded: gathers and scatters; sums of its norms' gradients") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto m = gpt::sequence_parallel(gpt::small_gpt(1), mesh, tp{}).blocks[0];
    check_calls(
        world, m,
        requires_grad(randn<double>({gpt::batch, gpt::context, gpt::width}, mesh, Shard<1>{})),
        "2 all_gather, 2 reduce_scatter", "2 all_gather, 2 reduce_scatter, 4 all_reduce");
  });
}

TEST_CASE("the loss of classes that are sharded gathers none of them") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto everywhere = [&](const auto& x) { return distribute_tensor(x, mesh, Replicate{}); };
    const auto m = requires_grad(gpt::tensor_parallel(gpt::small_gpt(0), mesh, tp{}));
    const auto logits = flatten(m(everywhere(gpt::some_tokens(0))), dim<0, 1>{});
    static_assert(std::is_same_v<decltype(logits.value().placements()), Placements<Shard<1>>>);
    const auto next = flatten(everywhere(gpt::some_tokens(1)), dim<0, 1>{});
    CommTrace trace(world);
    const auto loss = cross_entropy(logits, next);
    CHECK(calls(trace) == "2 all_reduce");  // the maximum and the sum of each row
    for (const CommEvent& event : trace.events())
      CHECK(event.elements <= 2 * gpt::batch * gpt::context);
    trace.clear();
    backward(loss);
    CHECK(trace.count(CollectiveKind::all_gather) == 0);
  });
}
