// Accumulating gradients, keeping gathered parameters from forward to backward, the order of calls.
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/parallel.hpp>

#include "errors.hpp"
#include "sharded_models.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// The losses of steps that accumulate gradients over parts of the batch. Only the last part is
/// followed by a reduction over ranks.
template <class M, class Place>
std::vector<double> losses_in_parts(const M& model, const Examples& data, const Place& place) {
  auto optimizer = nn::adamw(model, {.learning_rate = 0.02, .weight_decay = 0.01});
  std::vector<double> losses;
  for (int step = 0; step < Deep::steps; ++step) {
    zero_grad(model);
    double sum_of_parts = 0;
    for (const auto& [begin, end] : {std::array{0, 3}, std::array{3, 4}, std::array{4, 12}}) {
      const auto x = place(data.x.slice(0, begin, end).clone());
      const auto y = place(data.y.slice(0, begin, end).clone());
      set_requires_gradient_sync(model, end == 12);
      const auto loss = sum(square(model(x) - y)) * (1.0 / double(data.y.size()));
      backward(loss);
      sum_of_parts += loss.value().full_tensor().item();
    }
    optimizer.step(model);
    losses.push_back(sum_of_parts);
  }
  return losses;
}

index_t gathers_among(const CommTrace& trace, int ranks) {
  index_t n = 0;
  for (const CommEvent& event : trace.events())
    n += event.kind == CollectiveKind::all_gather && event.group_size == ranks;
  return n;
}

}  // namespace

TEST_CASE("gradients accumulated over parts of a batch: one rank's losses, one sum per step") {
  on_ranks({2, 4}, [](World& world) {
    const Examples data;
    const auto expected = losses_alone();
    const auto check = [&](const auto& model, index_t reductions, const auto& mesh, auto... on) {
      const auto place = [&](const auto& t) { return distribute_tensor(t, mesh, on...); };
      CHECK(largest_gap(losses_in_parts(model, data, place), expected) < 1e-12);
      const auto back = [&](index_t begin, index_t end) {
        backward(sum(square(model(place(data.x.slice(0, begin, end).clone())))));
      };
      zero_grad(model);
      set_requires_gradient_sync(model, false);
      CommTrace trace(world);
      back(0, 5);
      zero_grad(model);  // drops unreduced gradients
      back(0, 7);
      back(7, 8);
      CHECK(trace.count(CollectiveKind::reduce_scatter) == 0);
      CHECK(trace.count(CollectiveKind::all_reduce, "dp") == 0);
      CHECK(!has_grad(model.in.weight));
      set_requires_gradient_sync(model, true);
      trace.clear();
      back(8, Deep::examples);
      CHECK(trace.count(CollectiveKind::reduce_scatter, "dp") == reductions);
      const auto parts = grad(model.in.weight).full_tensor();
      zero_grad(model);
      back(0, Deep::examples);
      const auto whole = grad(model.in.weight).full_tensor();
      double worst = 0;
      for (index_t i = 0; i < whole.size(); ++i)
        worst = std::fmax(worst, std::abs(parts.data()[i] - whole.data()[i]));
      CHECK(worst < 1e-12);
    };
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    manual_seed(world, 7);
    check(requires_grad(shard_by_layer(deep_net(), mesh, dp{})), 5, mesh, Shard<0>{});
    manual_seed(world, 7);
    check(requires_grad(replicate(deep_net(), mesh, dp{})), 0, mesh, Shard<0>{});
    if (world.size() < 4) return;
    const auto grid = init_device_mesh<dp, tp>(world, {2, 2});
    manual_seed(world, 7);
    check(
        requires_grad(replicate(shard_by_layer(over_tp(deep_net(), grid), grid, dp{}), grid, dp{})),
        5, grid, Shard<0>{}, Replicate{});
  });
}

TEST_CASE("unreduced gradients of a group unused in the last part are reduced, too") {
  on_sharded_chain(3, [](World& world, const auto& model, const auto& x) {
    const auto third = [&] { return grad(model.layers[2].weight).full_tensor(); };
    backward(sum(square(model(x))));
    const auto expected = third();
    zero_grad(model);
    set_requires_gradient_sync(model, false);
    backward(sum(square(model(x))));
    set_requires_gradient_sync(model, true);
    CommTrace trace(world);
    backward(sum(square(model.first(x, 2))));
    CHECK(trace.count(CollectiveKind::reduce_scatter) == 3);
    const auto found = third();
    for (index_t i = 0; i < found.size(); ++i) CHECK(found.data()[i] == expected.data()[i]);

    set_requires_gradient_sync(model, false);
    backward(sum(square(model(x))));
    zero_grad(model);
    set_requires_gradient_sync(model, true);
    backward(sum(square(model.first(x, 2))));
    CHECK(!has_grad(model.layers[2].weight));
  });
}

TEST_CASE("between the passes neighbours keep the whole together, and gather it among themselves") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto [x, y] = examples_on(mesh, Shard<0>{});
    manual_seed(world, 7);
    const auto model = requires_grad(
        shard_by_layer(deep_net(), mesh, dp{}, FullyShardOptions<>{.reshard_after_forward = 2}));
    CHECK(largest_gap(losses_of(model, x, y), losses_alone()) < 1e-12);
    CommTrace trace(world);
    const auto loss = mean(square(model(x) - y));
    CHECK(gathers_among(trace, world.size()) == 5);
    CHECK(trace.count() == 5);
    trace.clear();
    backward(loss, retain);
    CHECK(gathers_among(trace, 2) == 4);
    CHECK(trace.count(CollectiveKind::all_gather) == 4);
    CHECK(trace.count(CollectiveKind::reduce_scatter) == 5);
    trace.clear();
    backward(loss);
    CHECK(gathers_among(trace, 2) == 4);
  });
}

TEST_CASE("neighbours that do not make up the axis are an error") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {4});
    const auto shard = [&](int ranks) {
      static_cast<void>(fully_shard(chain(1, 6), mesh, dp{},
                                    FullyShardOptions<>{.reshard_after_forward = ranks}));
    };
    CHECK(contains(error_of([&] { shard(3); }),
                   "fully_shard: reshard_after_forward is 3; axis 'dp' of 4 ranks"));
    CHECK(contains(error_of([&] { shard(0); }), "reshard_after_forward is 0"));
  });
}

TEST_CASE("ranks that call groups, or sum buckets, in different orders get an error") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = input_rows(mesh, 6, 6);
    const bool is_first = world.rank() == 0;
    manual_seed(world, 3);
    const auto sharded = fully_shard(chain(2, 6), mesh, dp{},
                                     FullyShardOptions<>{.prefetch = false}, "layers.*"_path);
    world.communicator().state().check = CheckLevel::collective;  // processes can then go on, too
    const auto check = [&](const auto& call, const std::string& collective) {
      const std::string error = error_of(call);
      CHECK(contains(error, "disagree: rank 0 runs " + collective));
      CHECK(contains(error, "with numbers "));
      CHECK(contains(error, ", 1 (op "));
    };
    check([&] { static_cast<void>(sharded.layers[is_first ? 0 : 1](x)); }, "all_gather of 36 ");

    const auto a = requires_grad(replicate(chain(1, 6), mesh, dp{}));
    const auto b = requires_grad(replicate(chain(1, 6), mesh, dp{}));
    const auto loss_a = sum(square(a(x))), loss_b = sum(square(b(x)));
    check([&] { backward(is_first ? loss_a : loss_b); }, "all_reduce of 36 ");
  });
}
