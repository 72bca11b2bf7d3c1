// Gathered parameters on the tape, changes of parameters, and element types.
#include <type_traits>

#include "cases.hpp"
#include "errors.hpp"
#include "sharded_models.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

TEST_CASE("a group that was gathered ahead and not used is gathered again once it has changed") {
  on_sharded_chain(4, [](World&, const auto& model, const auto& x) {
    auto optimizer = nn::sgd({.learning_rate = 0.5});
    const auto check = [&] {  // compares with weights gathered by redistribute
      const Chain plain{std::vector{
          nn::Linear{model.layers[0].weight.value().redistribute(Replicate{}), nn::None{}}}};
      auto expected = plain(x);
      for (std::size_t i = 1; i < 4; ++i)
        expected = relu(nn::Linear{model.layers[i].weight.value().redistribute(Replicate{}),
                                   nn::None{}}(expected));
      const auto found = model(x).value().full_tensor(), wanted = expected.full_tensor();
      double worst = 0;
      for (index_t i = 0; i < found.size(); ++i)
        worst = std::fmax(worst, std::abs(found.data()[i] - wanted.data()[i]));
      CHECK(worst == 0);
    };
    check();
    for (int step = 0; step < 3; ++step) {
      zero_grad(model);
      backward(sum(square(model(x))));
      const auto part = model.first(x, 2);  // the third group is prefetched but not used
      optimizer.step(model);
      check();
    }
    static_cast<void>(detach(model).first(x, 2));
    nn::parameters(model, [](const auto& p) { mul_(p.value(), 2.0); });
    check();
  });
}

TEST_CASE("a backward through parameters that were changed since is an error") {
  on_sharded_chain(2, [](World&, const auto& model, const auto& x) {
    auto optimizer = nn::sgd({.learning_rate = 0.5});
    backward(sum(square(model(x))));
    const auto loss = sum(square(model(x)));
    optimizer.step(model);
    CHECK(contains(error_of([&] { backward(loss); }), "changed in place"));
    zero_grad(model);
    backward(sum(square(model(x))));  // the failed backward left nothing behind
    CHECK(has_grad(model.layers[0].weight));
  });
}

TEST_CASE("called again by a checkpoint, a group is gathered once more, not twice") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = input_rows(mesh, 6, 6);
    const auto gradients = [&](const auto& call, index_t gathers) {
      manual_seed(world, 3);
      const auto model = requires_grad(fully_shard(chain(3, 6), mesh, dp{}, "layers.*"_path));
      const auto loss = call(model);
      CommTrace trace(world);
      backward(loss);
      CHECK(trace.count(CollectiveKind::all_gather) == gathers);
      CHECK(trace.count(CollectiveKind::reduce_scatter) == 3);
      return grad(model.layers[0].weight).full_tensor();
    };
    const auto plain = gradients([&](const auto& model) { return sum(square(model(x))); }, 2);
    const auto again = gradients(
        [&](const auto& model) {
          auto y = model.layers[0](x);
          for (std::size_t i = 1; i < 3; ++i)
            y = checkpoint([&layer = model.layers[i]](const auto& v) { return relu(layer(v)); }, y);
          return sum(square(y));
        },
        2);
    for (index_t i = 0; i < plain.size(); ++i) CHECK(plain.data()[i] == again.data()[i]);
  });
}

TEST_CASE("gradients are added up until they are dropped; unused parameters have none") {
  on_sharded_chain(3, [](World&, const auto& model, const auto& x) {
    backward(sum(square(model.first(x, 2))));
    CHECK(!has_grad(model.layers[2].weight));
    const auto once = grad(model.layers[1].weight).to_local().clone();
    backward(sum(square(model.first(x, 2))));
    const auto twice = grad(model.layers[1].weight).to_local();
    for (index_t i = 0; i < once.size(); ++i) CHECK(twice.data()[i] == 2 * once.data()[i]);
  });
}

TEST_CASE("a module whose parameters are replaced is no longer a group") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2});
    manual_seed(world, 3);
    const auto model = fully_shard(chain(2, 6), mesh, dp{});
    const auto replace = [&] {
      static_cast<void>(nn::map_parameters(model, [](const auto& p) { return p * 2.0; }));
    };
    CHECK(contains(error_of(replace), "a parameter of a fully sharded module was replaced"));
  });
}

TEST_CASE("parameters are gathered and gradients are summed in the requested types") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2});
    manual_seed(world, 3);
    const auto model = requires_grad(fully_shard(
        chain(3, 6), mesh, dp{}, FullyShardOptions<float, double, double>{}, "layers.*"_path));
    const auto x = input_rows(mesh, 4, 6);
    CommTrace trace(world);
    const auto y = model(x);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>::value_type, double>);
    CHECK(trace.count(CollectiveKind::all_gather) == 3);
    for (const CommEvent& event : trace.events())
      if (event.kind == CollectiveKind::all_gather) CHECK(event.dtype == DType::float32);
    trace.clear();
    backward(sum(square(y)));
    for (const CommEvent& event : trace.events())
      if (event.kind == CollectiveKind::reduce_scatter) CHECK(event.dtype == DType::float64);
    const auto rounded = grad(model.layers[1].weight).full_tensor();

    manual_seed(world, 3);
    const auto exact = requires_grad(fully_shard(chain(3, 6), mesh, dp{}, "layers.*"_path));
    backward(sum(square(exact(x))));
    const auto wanted = grad(exact.layers[1].weight).full_tensor();
    double worst = 0, largest = 0;
    for (index_t i = 0; i < wanted.size(); ++i) {
      worst = std::fmax(worst, std::abs(rounded.data()[i] - wanted.data()[i]));
      largest = std::fmax(largest, std::abs(wanted.data()[i]));
    }
    CHECK(worst > 0);
    CHECK(worst < 1e-5 * largest);
  });
}
