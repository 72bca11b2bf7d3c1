// Training with parameters sharded over an axis: the losses of one rank, and the communication.
#include <type_traits>

#include <cleave/parallel/replicate.hpp>

#include "errors.hpp"
#include "sharded_models.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

struct fsdp : axis {};

/// One weight that is used twice, the second time transposed.
template <class Layer = nn::Linear<>>
struct TwiceUsed {
  Layer layer;
  static constexpr nn::names members{"layer"};

  auto operator()(const auto& x) const { return matmul(tanh(layer(x)), layer.weight); }
};
template <class Layer>
TwiceUsed(Layer) -> TwiceUsed<Layer>;

}  // namespace

TEST_CASE(
    "a fully sharded network learns as one rank alone; a group is gathered and reduced once") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto [x, y] = examples_on(mesh, Shard<0>{});
    manual_seed(world, 7);
    const auto model = requires_grad(shard_by_layer(deep_net(), mesh, dp{}));
    using Weight = std::remove_cvref_t<decltype(model.layers[0].up.weight.value())>;
    static_assert(std::is_same_v<Weight::placements_type, Placements<Shard<0>>>);
    CHECK(largest_gap(losses_of(model, x, y), losses_alone()) < 1e-12);

    zero_grad(model);
    CommTrace trace(world);
    const auto loss = mean(square(model(x) - y));
    const index_t moves = world.size() > 1;
    CHECK(trace.count() == 5 * moves);
    CHECK(trace.count(CollectiveKind::all_gather, "dp") == 5 * moves);
    index_t whole = nn::count(deep_net()) * index_t(sizeof(double)), own = 0;
    nn::parameters(model, [&](const auto& p) { own += p.value().to_local().size(); });
    CHECK(trace.received_bytes() == whole - own * index_t(sizeof(double)));  // no padding
    trace.clear();
    backward(loss);
    CHECK(trace.count(CollectiveKind::all_gather) == 4 * moves);  // no gradient needs `in` again
    CHECK(trace.count(CollectiveKind::reduce_scatter, "dp") == 5 * moves);
    CHECK(trace.count() == 9 * moves);
  });
}

TEST_CASE("the rest of the network is a group; whole parameters may stay until backward") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto [x, y] = examples_on(mesh, Shard<0>{});
    manual_seed(world, 7);
    const auto model = requires_grad(fully_shard(
        deep_net(), mesh, dp{},
        FullyShardOptions<>{.reshard_after_forward = false, .prefetch = false}, "layers.*"_path));
    CHECK(largest_gap(losses_of(model, x, y), losses_alone()) < 1e-12);
    CommTrace trace(world);
    backward(mean(square(model(x) - y)));
    CHECK(trace.count(CollectiveKind::all_gather) == 4);
    CHECK(trace.count(CollectiveKind::reduce_scatter) == 4);
    CHECK(trace.count() == 8);
    const auto value = detach(model)(x).full_tensor();  // without a tape
    CHECK(value.shape() == std::array<index_t, 2>{Deep::examples, Deep::outputs});
  });
}

TEST_CASE("fully sharded over dp and over tp: gathers are of dp alone") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto [x, y] = examples_on(mesh, Shard<0>{}, Replicate{});
    manual_seed(world, 7);
    const auto model = requires_grad(shard_by_layer(over_tp(deep_net(), mesh), mesh, dp{}));
    using Up = std::remove_cvref_t<decltype(model.layers[0].up)>;
    static_assert(
        std::is_same_v<decltype(Up::weight.value().placements()), Placements<Shard<1>, Shard<0>>>);
    static_assert(
        std::is_same_v<decltype(Up::bias.value().placements()), Placements<Replicate, Shard<0>>>);
    CHECK(largest_gap(losses_of(model, x, y), losses_alone()) < 1e-12);

    CommTrace trace(world);
    const auto loss = mean(square(model(x) - y));
    CHECK(trace.count(CollectiveKind::all_gather, "dp") == 5);
    CHECK(trace.count(CollectiveKind::all_reduce, "tp") == 3);
    CHECK(trace.count() == 8);
    trace.clear();
    backward(loss);
    CHECK(trace.count(CollectiveKind::all_gather, "dp") == 4);
    CHECK(trace.count(CollectiveKind::reduce_scatter, "dp") == 5);
    CHECK(trace.count(CollectiveKind::all_reduce, "dp") == 3);  // biases of column-sharded layers
  });
}

TEST_CASE("fully sharded on one axis, replicated on another: shards are summed over the second") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, fsdp>(world, {2, 2});
    const auto [x, y] = examples_on(mesh, Shard<0>{}, Shard<0>{});
    manual_seed(world, 7);
    const auto model = requires_grad(shard_by_layer(deep_net(), mesh, fsdp{}));
    CHECK(largest_gap(losses_of(model, x, y), losses_alone()) < 1e-12);
    CommTrace trace(world);
    const auto loss = mean(square(model(x) - y));
    CHECK(trace.count() == 5);
    trace.clear();
    backward(loss);
    CHECK(trace.count(CollectiveKind::all_gather, "fsdp") == 4);
    CHECK(trace.count(CollectiveKind::reduce_scatter, "fsdp") == 5);
    CHECK(trace.count(CollectiveKind::all_reduce, "dp") == 5);
  });
}

TEST_CASE("replicate reduces parameters not sharded on its axis: one bucket of shards") {
  on_ranks({4}, [](World& world) {
    const auto check = [&](const auto& mesh, const auto& model, auto on_first, auto on_second) {
      const auto [x, y] = examples_on(mesh, on_first, on_second);
      CHECK(largest_gap(losses_of(model, x, y), losses_alone()) < 1e-12);
      const auto loss = mean(square(model(x) - y));
      CommTrace trace(world);
      backward(loss);
      CHECK(trace.count(CollectiveKind::reduce_scatter) == 5);
      CHECK(trace.count(CollectiveKind::all_reduce, "dp") == 1);
    };
    const auto with_tp = init_device_mesh<dp, tp>(world, {2, 2});
    manual_seed(world, 7);
    check(with_tp,
          requires_grad(replicate(shard_by_layer(over_tp(deep_net(), with_tp), with_tp, dp{}),
                                  with_tp, dp{})),
          Shard<0>{}, Replicate{});
    const auto twice = init_device_mesh<dp, fsdp>(world, {2, 2});
    manual_seed(world, 7);
    check(twice, requires_grad(replicate(shard_by_layer(deep_net(), twice, fsdp{}), twice, dp{})),
          Shard<0>{}, Shard<0>{});
  });
}

TEST_CASE("an axis shards an unsharded dimension, or the shards of earlier axes") {
  const auto on = [](auto... p) {
    Layout layout;
    ((layout[layout.axes++] = p), ...);
    return layout;
  };
  const Placement whole = Placement::replicate(), rows = Placement::shard(0);
  CHECK(parallel::dim_to_shard(on(whole, whole), 2, 0) == 0);
  CHECK(parallel::dim_to_shard(on(whole, rows), 2, 0) == 1);
  CHECK(parallel::dim_to_shard(on(whole, rows), 1, 0) == -1);
  CHECK(parallel::dim_to_shard(on(rows, whole), 1, 1) == 0);
  CHECK(parallel::dim_to_shard(on(whole), 0, 0) == -1);
}

TEST_CASE("a weight used twice is one parameter; two members of one weight are an error") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const TwiceUsed recipe{nn::linear<double>(5, 4)};
    RandomState state{9, 0};
    Tensor<double, 2> rows({6, 5});
    for (index_t i = 0; i < rows.size(); ++i) rows.data()[i] = double(i * 7 % 11) / 5 - 1;
    const auto expected = losses_of(requires_grad(nn::make(recipe, state)), rows, rows);
    const auto x = distribute_tensor(rows, mesh, Shard<0>{});
    const auto train = [&](const auto& wrap) {
      manual_seed(world, 9);
      return largest_gap(losses_of(requires_grad(wrap(recipe)), x, x), expected);
    };
    CHECK(train([&](const auto& m) { return fully_shard(m, mesh, dp{}); }) < 1e-12);
    CHECK(train([&](const auto& m) { return replicate(m, mesh, dp{}); }) < 1e-12);

    const auto weight = ones<double>({4, 4}, mesh, Replicate{});
    const nn::Mlp tied{nn::Linear{weight, nn::None{}}, nn::Tanh{}, nn::Linear{weight, nn::None{}}};
    const std::string text = "'up.weight' and 'down.weight' share memory";
    CHECK(contains(error_of([&] { fully_shard(tied, mesh, dp{}); }), text));
    CHECK(contains(error_of([&] { replicate(tied, mesh, dp{}); }), text));
    auto one_leaf = requires_grad(tied);
    one_leaf.down.weight = one_leaf.up.weight;
    CHECK(contains(error_of([&] { replicate(one_leaf, mesh, dp{}); }), text));
  });
}
