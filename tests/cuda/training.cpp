// Networks that train on GPUs: losses, gradients and weights compared with plain loops.
#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/parallel.hpp>
#include <cleave/spmd.hpp>

#include "../grad/network.hpp"
#include "../nn/shared_directory.hpp"
#include "device.hpp"
#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

struct Descend {
  double rate;
  CLEAVE_HOST_DEVICE double operator()(double p, double g) const { return p - rate * g; }
};

/// p = p - rate · slope, for every element of a weight of the example.
void descend(const Example& e, double* elements, index_t count, double rate,
             std::vector<double>& moved) {
  const auto slopes = e.slopes(elements, count);
  for (index_t i = 0; i < count; ++i) moved.push_back(elements[i] - rate * slopes[std::size_t(i)]);
}

/// A step of gradient descent with finite differences.
void step_by_loops(Example& e, double rate) {
  std::vector<double> moved;
  const auto each = [&](const auto& f) {
    f(e.w1.data(), e.w1.size());
    f(e.b1.data(), e.b1.size());
    f(e.w2.data(), e.w2.size());
  };
  each([&](double* w, index_t count) { descend(e, w, count, rate, moved); });
  const double* next = moved.data();
  each([&](double* w, index_t count) {
    for (index_t i = 0; i < count; ++i) w[i] = *next++;
  });
}

}  // namespace

TEST_CASE("a network trains on devices: losses, weights and gradients as by loops") {
  on_ranks({1, 2, 4}, [](World& world) {
    constexpr double rate = 0.5;
    const int half = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / half, half}, TestDevice{});
    Example e;
    const auto placed = [&](const auto& t, auto... placements) {
      return distribute_tensor(t.to(TestDevice{}), mesh, placements...);
    };
    const auto x = placed(e.x, Shard<0>{}, Replicate{});
    const auto classes = placed(e.classes, Shard<0>{}, Replicate{});
    const auto w1 = requires_grad(placed(e.w1, Replicate{}, Shard<1>{}));
    const auto b1 = requires_grad(placed(e.b1, Replicate{}, Shard<0>{}));
    const auto w2 = requires_grad(placed(e.w2, Replicate{}, Shard<0>{}));
    const auto gradient = [](const auto& w) { return grad(w).full_tensor().to(Host{}); };
    for (int i = 0; i < 3; ++i) {
      const auto loss = Network{}(x, w1, b1, w2, classes);
      CHECK(loss.value().item() == doctest::Approx(e.loss()).epsilon(1e-8));
      backward(loss);
      check_close(gradient(w1), e.slopes(e.w1.data(), e.w1.size()), 1e-7);
      check_close(gradient(b1), e.slopes(e.b1.data(), e.b1.size()), 1e-7);
      check_close(gradient(w2), e.slopes(e.w2.data(), e.w2.size()), 1e-7);
      const auto step = [&](const auto& w) {
        map_(Descend{rate}, w.value(), grad(w));
        zero_grad(w);
      };
      step(w1);
      step(b1);
      step(w2);
      step_by_loops(e, rate);
    }
    check_close(w1.value().full_tensor().to(Host{}), values_of(e.w1), 1e-7);
  });
}

namespace {

using Mesh = DeviceMesh<TestDevice, dp, tp>;

/// The module of the example on the device.
auto example_module(const Example& e) {
  const nn::Linear up{transpose(e.w1).clone(), e.b1.clone()};
  const nn::Linear down{transpose(e.w2).clone(), nn::None{}};
  return nn::map_parameters(nn::Mlp{up, nn::Relu{}, down},
                            [](const auto& x) { return x.to(TestDevice{}); });
}

}  // namespace

TEST_CASE("a parallel module trains on devices: clipped gradients, AdamW, a checkpoint") {
  on_ranks({1, 2, 4}, [](World& world) {
    constexpr double rate = 0.05, decay = 0.1, most = 0.2;
    const int half = world.size() % 2 == 0 ? 2 : 1;
    const Mesh mesh = init_device_mesh<dp, tp>(world, {world.size() / half, half}, TestDevice{});
    Example e;
    const auto alone = example_module(e);
    const auto m = requires_grad(parallelize_module(
        alone, mesh, tp{}, on("up"_path, ColwiseParallel{}), on("down"_path, RowwiseParallel{})));
    const auto x = distribute_tensor(e.x.to(TestDevice{}), mesh, Shard<0>{}, Replicate{});
    const auto classes =
        distribute_tensor(e.classes.to(TestDevice{}), mesh, Shard<0>{}, Replicate{});
    auto optimizer = nn::adamw(m, {.learning_rate = rate, .weight_decay = decay});
    std::vector<double> mean, square;  // of all elements: w1, b1, w2
    for (int step = 1; step <= 3; ++step) {
      const auto loss = cross_entropy(m(x), classes);
      CHECK(loss.value().item() == doctest::Approx(e.loss()).epsilon(1e-7));
      zero_grad(m);
      backward(loss);
      const double norm = nn::clip_grad_norm_(m, most);
      optimizer.step(m);

      std::vector<double*> elements;
      std::vector<double> slopes;
      const auto add = [&](double* w, index_t count) {
        for (index_t i = 0; i < count; ++i) elements.push_back(w + i);
        for (const double slope : e.slopes(w, count)) slopes.push_back(slope);
      };
      add(e.w1.data(), e.w1.size());
      add(e.b1.data(), e.b1.size());
      add(e.w2.data(), e.w2.size());
      double squares = 0;
      for (const double slope : slopes) squares += slope * slope;
      CHECK(norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-6));
      mean.resize(slopes.size());
      square.resize(slopes.size());
      for (std::size_t i = 0; i < slopes.size(); ++i) {
        const double g = slopes[i] * std::fmin(1, most / std::sqrt(squares));
        mean[i] = 0.9 * mean[i] + 0.1 * g;
        square[i] = 0.999 * square[i] + 0.001 * g * g;
        const double corrected = square[i] / (1 - std::pow(0.999, step));
        *elements[i] -= rate * decay * *elements[i];
        *elements[i] -= rate * mean[i] / (1 - std::pow(0.9, step)) / (std::sqrt(corrected) + 1e-8);
      }
    }
    const auto check_weights = [&](const auto& module) {
      const auto whole_of = [](const auto& w) { return w.value().full_tensor().to(Host{}); };
      check_close(transpose(whole_of(module.up.weight)).clone(), values_of(e.w1), 1e-6);
      check_close(whole_of(module.up.bias), values_of(e.b1), 1e-6);
      check_close(transpose(whole_of(module.down.weight)).clone(), values_of(e.w2), 1e-6);
    };
    check_weights(m);

    const SharedDirectory directory(world);
    const auto state_of = [](const auto& model, const auto& of) {
      return nn::state_dict(model, "model.") + nn::state_dict(of, "optimizer.");
    };
    nn::save_checkpoint(world, directory / "last", state_of(m, optimizer));
    const auto again = requires_grad(fully_shard(alone, mesh, dp{}));
    auto state = nn::adamw(again, {});
    nn::load_checkpoint(directory / "last", state_of(again, state));
    barrier(world);
    check_weights(again);
    std::vector<double> of_w1;
    for (index_t i = 0; i < e.w1.size(); ++i) of_w1.push_back(mean[std::size_t(i)]);
    check_close(transpose(state.exp_avg.up.weight.full_tensor().to(Host{})).clone(), of_w1, 1e-7);
  });
}

TEST_CASE("a program of sgd trains on devices as calls do, with another rate in every run") {
  on_ranks({1, 2}, [](World& world) {
    const Mesh mesh = init_device_mesh<dp, tp>(world, {world.size(), 1}, TestDevice{});
    const auto layer = [&](int seed) {
      manual_seed(world, std::uint64_t(seed));
      return requires_grad(nn::Linear{rand<float>({3, 5}, mesh, Shard<0>{}, Replicate{}),
                                      rand<float>({3}, mesh, Replicate{}, Replicate{})});
    };
    const auto given = layer(1), called = layer(1), gradients = layer(2);
    auto optimizer = nn::sgd({.weight_decay = 0.5});
    const auto step = [](const auto& m, const auto& by, const auto& g) {
      backward(m.weight, g.weight.value());
      backward(m.bias, g.bias.value());
      by.step(m);
      return std::tuple{};
    };
    spmd::Runner runner(
        spmd::expand(spmd::trace(step, spmd::args_of(given), spmd::args_of(optimizer),
                                 spmd::args_of(gradients)),
                     spmd::schemas_of(given, optimizer, gradients)),
        mesh);
    for (const double rate : {0.5, 0.125}) {
      optimizer.options.learning_rate = rate;
      runner.template run<>(given, optimizer, gradients);
      step(called, optimizer, gradients);
      zero_grad(called);
    }
    const auto check = [](const auto& x, const auto& y, const auto& start) {
      const auto a = x.value().full_tensor().to(Host{}), b = y.value().full_tensor().to(Host{});
      const auto first = start.value().full_tensor().to(Host{});
      for (index_t i = 0; i < a.size(); ++i) CHECK(a.data()[i] == b.data()[i]);
      for (index_t i = 0; i < a.size(); ++i) CHECK(a.data()[i] != first.data()[i]);
    };
    const auto start = layer(1);
    check(given.weight, called.weight, start.weight);
    check(given.bias, called.bias, start.bias);
  });
}

namespace {

/// Compares the gradients of a module with `times` those of the loops.
void check_gradients(const auto& m, const Example& e, double times, double tolerance) {
  const auto check = [&](const auto& w, double* elements, index_t count) {
    auto expected = e.slopes(elements, count);
    for (double& slope : expected) slope *= times;
    const auto found = grad(w).full_tensor().to(Host{});
    if constexpr (found.dims == 2) check_close(transpose(found).clone(), expected, tolerance);
    else check_close(found, expected, tolerance);
  };
  check(m.up.weight, e.w1.data(), e.w1.size());
  check(m.up.bias, e.b1.data(), e.b1.size());
  check(m.down.weight, e.w2.data(), e.w2.size());
}

/// Trains wrap(module, mesh), whose gradients are reduced over dp, then accumulates gradients, then
/// calls `then(m, e, back)`.
void check_training(const World& world, index_t along_tp, const auto& wrap, const auto& then,
                    double tolerance = 1e-7) {
  constexpr double rate = 0.5;
  const Mesh mesh =
      init_device_mesh<dp, tp>(world, {world.size() / along_tp, along_tp}, TestDevice{});
  Example e;
  const auto m = requires_grad(wrap(example_module(e), mesh));
  const auto x = distribute_tensor(e.x.to(TestDevice{}), mesh, Shard<0>{}, Replicate{});
  const auto classes = distribute_tensor(e.classes.to(TestDevice{}), mesh, Shard<0>{}, Replicate{});
  const auto back = [&] { backward(cross_entropy(m(x), classes)); };
  auto optimizer = nn::sgd({.learning_rate = rate});
  for (int step = 0; step < 3; ++step) {  // buckets change after the first
    back();
    check_gradients(m, e, 1, tolerance);
    optimizer.step(m);
    zero_grad(m);
    step_by_loops(e, rate);
  }
  set_requires_gradient_sync(m, false);
  back();
  CHECK(!has_grad(m.up.weight));
  set_requires_gradient_sync(m, true);
  back();
  check_gradients(m, e, 2, 2 * tolerance);
  zero_grad(m);
  then(m, e, back);
}

}  // namespace

TEST_CASE("a replicated module trains on devices: gradients in buckets, whatever reduces them") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto replicated = [](const auto& module, const Mesh& mesh) {
      const auto split = parallelize_module(module, mesh, tp{}, on("up"_path, ColwiseParallel{}),
                                            on("down"_path, RowwiseParallel{}));
      return replicate(split, mesh, dp{}, {.bucket_bytes = {.first = 16, .others = 200}});
    };
    check_training(
        world, world.size() > 2 ? 2 : 1, replicated,
        [&](const auto& m, const Example& e, const auto& back) {
          CHECK(m.bucket_count() > 1);
          m.register_comm_hook(Fp16Compress{});
          back();
          check_gradients(m, e, 1, 2e-4);
          if (world.size() == 1) return;  // no bucket is sent
          zero_grad(m);
          m.register_comm_hook(TopK(0.5));
          CHECK(contains(error_of(back),
                         "TopK: this communication hook supports gradients on the host"));
        });
  });
}

TEST_CASE("a fully sharded module trains on devices, whatever is kept after forward") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto nothing = [](const auto&...) {};
    for (const Reshard after : {Reshard(true), Reshard(false), Reshard(2)}) {
      if (world.size() == 3 && after.keepers(3) == 2) continue;  // does not divide 3
      const FullyShardOptions<> options{.reshard_after_forward = after};
      const auto sharded = [&](const auto& module, const Mesh& mesh) {
        return fully_shard(module, mesh, dp{}, options, "up"_path);
      };
      check_training(world, 1, sharded, nothing);
    }
    const FullyShardOptions<float> mixed;
    const auto in_float = [&](const auto& module, const Mesh& mesh) {
      return fully_shard(module, mesh, dp{}, mixed);
    };
    check_training(world, 1, in_float, nothing, 1e-5);
    const auto both = [](const auto& module, const Mesh& mesh) {
      return replicate(fully_shard(module, mesh, tp{}, "up"_path, "down"_path), mesh, dp{});
    };
    check_training(world, world.size() % 2 == 0 ? 2 : 1, both, nothing);
  });
}
