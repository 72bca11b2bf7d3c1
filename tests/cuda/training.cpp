// Networks that train on GPUs: losses, gradients and weights compared with plain loops.
#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>
#include <cleave/ops/in_place.hpp>
#include <cleave/parallel.hpp>

#include "../grad/network.hpp"
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

TEST_CASE("a parallel module trains on devices: clipped gradients, AdamW") {
  on_ranks({1, 2, 4}, [](World& world) {
    constexpr double rate = 0.05, decay = 0.1, most = 0.2;
    const int half = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / half, half}, TestDevice{});
    Example e;
    const auto up = nn::Linear{transpose(e.w1).clone(), e.b1.clone()};
    const auto down = nn::Linear{transpose(e.w2).clone(), nn::None{}};
    const auto on_device = nn::map_parameters(nn::Mlp{up, nn::Relu{}, down},
                                              [](const auto& x) { return x.to(TestDevice{}); });
    const auto m =
        requires_grad(parallelize_module(on_device, mesh, tp{}, on("up"_path, ColwiseParallel{}),
                                         on("down"_path, RowwiseParallel{})));
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
    const auto whole_of = [](const auto& w) { return w.value().full_tensor().to(Host{}); };
    check_close(transpose(whole_of(m.up.weight)).clone(), values_of(e.w1), 1e-6);
    check_close(whole_of(m.up.bias), values_of(e.b1), 1e-6);
    check_close(transpose(whole_of(m.down.weight)).clone(), values_of(e.w2), 1e-6);
  });
}

TEST_CASE("a replicated module trains on devices: gradients in buckets, whatever reduces them") {
  on_ranks({1, 2, 4}, [](World& world) {
    constexpr double rate = 0.5;
    const int half_of = world.size() > 2 ? 2 : 1;
    const auto mesh =
        init_device_mesh<dp, tp>(world, {world.size() / half_of, half_of}, TestDevice{});
    Example e;
    const auto up = nn::Linear{transpose(e.w1).clone(), e.b1.clone()};
    const auto down = nn::Linear{transpose(e.w2).clone(), nn::None{}};
    const auto on_device = nn::map_parameters(nn::Mlp{up, nn::Relu{}, down},
                                              [](const auto& x) { return x.to(TestDevice{}); });
    const auto split = parallelize_module(on_device, mesh, tp{}, on("up"_path, ColwiseParallel{}),
                                          on("down"_path, RowwiseParallel{}));
    const ReplicateOptions options{.bucket_bytes = {.first = 16, .others = 200}};
    const auto m = requires_grad(replicate(split, mesh, dp{}, options));
    CHECK(m.bucket_count() > 1);
    const auto x = distribute_tensor(e.x.to(TestDevice{}), mesh, Shard<0>{}, Replicate{});
    const auto classes =
        distribute_tensor(e.classes.to(TestDevice{}), mesh, Shard<0>{}, Replicate{});
    const auto back = [&] { backward(cross_entropy(m(x), classes)); };
    const auto check_gradients = [&](double times, double tolerance) {
      const auto check = [&](const Tensor<double, 2>& found, Tensor<double, 2>& w) {
        auto expected = e.slopes(w.data(), w.size());
        for (double& slope : expected) slope *= times;
        check_close(transpose(found).clone(), expected, tolerance);
      };
      check(grad(m.up.weight).full_tensor().to(Host{}), e.w1);
      check(grad(m.down.weight).full_tensor().to(Host{}), e.w2);
    };
    auto optimizer = nn::sgd({.learning_rate = rate});
    for (int step = 0; step < 3; ++step) {  // the buckets change after the first
      back();
      check_gradients(1, 1e-7);
      optimizer.step(m);
      zero_grad(m);
      step_by_loops(e, rate);
    }
    m.set_requires_gradient_sync(false);
    back();
    CHECK(!has_grad(m.up.weight));
    m.set_requires_gradient_sync(true);
    back();
    check_gradients(2, 1e-7);
    zero_grad(m);
    m.register_comm_hook(Fp16Compress{});
    back();
    check_gradients(1, 2e-4);
    if (mesh.extent(dp{}) == 1) return;
    zero_grad(m);
    m.register_comm_hook(TopK(0.5));
    CHECK(contains(error_of(back), "TopK: this communication hook supports gradients on the host"));
  });
}
