// A network that trains on GPUs: losses and gradients compared with plain loops.
#include <array>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/ops/in_place.hpp>

#include "../grad/network.hpp"
#include "device.hpp"
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
