// Modules in traced functions.
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>
#include <cleave/spmd.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::contains;

namespace {

/// Two layers and a scale that is not trained.
template <class Up, class Down, class Scale>
struct TracedMlp {
  Up up;
  Down down;
  Scale scale;
  static constexpr nn::names members{"up", "down", "scale"};

  auto operator()(const auto& x) const {
    return mul(down(relu(up[1](relu(up[0](x))))), scale.value);
  }
};

template <class Mesh>
auto placed_mlp(const Mesh& mesh) {
  const auto matrix = [&](index_t n, index_t m) { return sub(rand<double>({n, m}, mesh), 0.5); };
  const auto layer = [&](index_t in, index_t out) {
    return nn::Linear{matrix(out, in), rand<double>({out}, mesh)};
  };
  using Layer = decltype(layer(1, 1));
  const auto scale = full<double>({1}, 0.5, mesh);
  return TracedMlp<std::vector<Layer>, Layer, nn::Buffer<std::remove_const_t<decltype(scale)>>>{
      {layer(3, 4), layer(4, 4)}, layer(4, 2), {scale}};
}

template <class M>
std::vector<double> elements_of(const M& m) {
  std::vector<double> all;
  spmd::each_leaf(m, [&](const auto& leaf) {
    const auto append = [&](const auto& x) {
      all.insert(all.end(), x.data(), x.data() + x.size());
    };
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (std::is_same_v<Leaf, spmd::HostNumber>) all.push_back(leaf.value);
    else if constexpr (spmd::is_on_all_ranks<Leaf>) append(leaf.tensor);
    else append(cleave::detail::innermost(leaf).full_tensor());
  });
  return all;
}

/// A training step, in calls on DTensors and in programs.
constexpr auto training_step = [](const auto& model, const auto& optimizer, const auto& x,
                                  const auto& target) {
  const auto loss = mean(square(sub(model(x), target)));
  backward(loss);
  optimizer.step(model);
  return detach(loss);
};

/// Three steps in calls and in a program, the batch sharded, with an optimizer that `optimize`
/// makes for a model. One node of this name updates each of the six parameters with its state.
template <class Optimize>
void check_training(World& world, const std::string& name, const Optimize& optimize) {
  const auto mesh = init_device_mesh<dp>(world, {world.size()});
  manual_seed(world, 1);
  const auto eager_model = requires_grad(placed_mlp(mesh));
  manual_seed(world, 1);
  const auto model = requires_grad(placed_mlp(mesh));
  const auto eager_optimizer = optimize(eager_model), optimizer = optimize(model);
  const auto x = rand<double>({7, 3}, mesh, Shard<0>{});
  const auto target = rand<double>({7, 2}, mesh, Shard<0>{});
  const spmd::Graph graph =
      spmd::trace(training_step, spmd::args_of(model), spmd::args_of(optimizer),
                  spmd::arg<double>("x", {7, 3}), spmd::arg<double>("target", {7, 2}));
  const spmd::Program program = spmd::expand(graph, spmd::schemas_of(model, optimizer, x, target));
  INFO(to_string(program, mesh));
  REQUIRE(!program.fault);
  int updates = 0;
  for (const spmd::Node& node : graph.nodes) updates += node.name == name;
  CHECK(updates == 6);
  using Loss = DTensor<double, 0, std::remove_cvref_t<decltype(mesh)>, Placements<Replicate>>;
  spmd::Runner runner(program, mesh);
  double last = 0;
  for (int step = 0; step < 3; ++step) {
    const auto expected = resolve(training_step(eager_model, eager_optimizer, x, target)).item();
    zero_grad(eager_model);
    const auto [loss] = runner.template run<Loss>(model, optimizer, x, target);
    CHECK(std::abs(loss.item() - expected) < 1e-12);
    CHECK((step == 0 || loss.item() < last));
    last = loss.item();
    const std::vector<double> a = elements_of(model), b = elements_of(eager_model);
    CHECK(a == b);
  }
}

}  // namespace

TEST_CASE("parameters and buffers of a module are inputs with dotted names") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto model = placed_mlp(mesh);
    const spmd::Graph graph =
        spmd::trace([](const auto& m, const auto& x) { return std::tuple(m(x), m); },
                    spmd::args_of(model, "model"), spmd::arg<double>("x", {6, 3}));
    std::string names;
    for (const spmd::Input& input : graph.inputs) names += std::string(input.name) + " ";
    CHECK(names ==
          "model.up.0.weight model.up.0.bias model.up.1.weight model.up.1.bias model.down.weight "
          "model.down.bias model.scale x ");
    CHECK(graph.outputs.size() == 8);
    const auto named = spmd::trace(
        [](const auto& m, const auto& x) {
          return std::tuple(m(x), spmd::named("new", m), spmd::named("", m.down));
        },
        spmd::args_of(model), spmd::arg<double>("x", {6, 3}));
    names.clear();
    for (const spmd::Output& output : named.outputs) names += std::string(output.name) + " ";
    CHECK(names ==
          " new.up.0.weight new.up.0.bias new.up.1.weight new.up.1.bias new.down.weight "
          "new.down.bias new.scale weight bias ");
    CHECK(std::string(spmd::trace([](const auto& m) { return m.down; }, spmd::args_of(model))
                          .inputs[4]
                          .name) == "down.weight");
  });
}

TEST_CASE("a program takes a module, and returns one as its tensors in order") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    manual_seed(world, 1);
    const auto model = placed_mlp(mesh);
    const auto x = rand<double>({7, 3}, mesh, Shard<0>{});
    const spmd::Graph graph = spmd::trace(
        [](const auto& m, const auto& v) { return std::tuple(m(v), m.down, nn::None{}); },
        spmd::args_of(model), spmd::arg<double>("x", {7, 3}));
    const spmd::Program program = spmd::expand(graph, spmd::schemas_of(model, x));
    REQUIRE(!program.fault);
    CHECK(spmd::communications(program) == 0);
    spmd::Runner runner(program, mesh);
    const std::vector<spmd::ErasedTensor> outputs = runner(spmd::inputs_of(model, x));
    REQUIRE(outputs.size() == 3);
    using Y = DTensor<double, 2, std::remove_cvref_t<decltype(mesh)>, Placements<Shard<0>>>;
    const auto y = spmd::typed<Y>(outputs[0], mesh).full_tensor();
    const std::vector<double> p = elements_of(model);
    const auto given = x.full_tensor();
    const auto layer = [&](const std::vector<double>& in, std::size_t at, std::size_t out) {
      std::vector<double> result;
      for (std::size_t o = 0; o < out; ++o) {
        double sum = p[at + out * in.size() + o];
        for (std::size_t i = 0; i < in.size(); ++i) sum += p[at + o * in.size() + i] * in[i];
        result.push_back(sum);
      }
      return result;
    };
    const auto positive = [](std::vector<double> v) {
      for (double& e : v) e = e > 0 ? e : 0;
      return v;
    };
    for (index_t n = 0; n < 7; ++n) {
      const std::vector<double> row{given(n, 0), given(n, 1), given(n, 2)};
      const auto out = layer(positive(layer(positive(layer(row, 0, 4)), 16, 4)), 36, 2);
      for (index_t j = 0; j < 2; ++j) CHECK(std::abs(y(n, j) - out[std::size_t(j)] * 0.5) < 1e-12);
    }
  });
}

TEST_CASE("a training step in a program changes the module as the same calls do, bit by bit") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto sgd = [](const auto&) {
      return nn::sgd({.learning_rate = 0.125, .weight_decay = 0.25});
    };
    const auto momentum = [](const auto& m) {
      return nn::momentum_sgd(m, {.learning_rate = 0.125, .dampening = 0.5});
    };
    const auto adamw = [](const auto& m) {
      return nn::adamw(m, {.learning_rate = 0.01, .weight_decay = 0.1});
    };
    check_training(world, "sgd", sgd);
    check_training(world, "momentum_sgd", momentum);
    check_training(world, "adam", adamw);
  });
}

TEST_CASE("one program trains a module with batches of every size") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto make_model = [&] {
      manual_seed(world, 1);
      return requires_grad(placed_mlp(mesh));
    };
    const auto adamw_of = [](const auto& m) { return nn::adamw(m, {.learning_rate = 1e-2}); };
    const auto batch_of = [&](index_t batch, index_t width) {
      return rand<double>({batch, width}, mesh, Shard<0>{});
    };
    const spmd::Program program = [&] {  // what is traced ends here
      const auto model = make_model();
      const auto optimizer = adamw_of(model);
      const auto batch = spmd::extent("batch").at_least(1);
      return spmd::expand(
          spmd::trace(training_step, spmd::args_of(model), spmd::args_of(optimizer),
                      spmd::arg<double>("x", {batch, 3}), spmd::arg<double>("target", {batch, 2})),
          spmd::schemas_of(model, optimizer, batch_of(4, 3), batch_of(4, 2)));
    }();
    const auto model = make_model(), eager_model = make_model();
    const auto optimizer = adamw_of(model), eager_optimizer = adamw_of(eager_model);
    using Loss = DTensor<double, 0, std::remove_cvref_t<decltype(mesh)>, Placements<Replicate>>;
    spmd::Runner runner(program, mesh);
    for (const index_t batch : {7, 1, 2, 6, 7}) {
      INFO("batch = ", batch);
      const auto x = batch_of(batch, 3), target = batch_of(batch, 2);
      const auto expected = resolve(training_step(eager_model, eager_optimizer, x, target)).item();
      zero_grad(eager_model);
      const auto [loss] = runner.template run<Loss>(model, optimizer, x, target);
      CHECK(loss.item() == expected);
      CHECK(elements_of(model) == elements_of(eager_model));
      CHECK(elements_of(optimizer) == elements_of(eager_optimizer));
    }
    CHECK(contains(cleave::testing::error_of([&] {
                     runner.template run<Loss>(model, optimizer, batch_of(0, 3), batch_of(0, 2));
                   }),
                   "batch is 0, but must be at least 1"));
  });
}
