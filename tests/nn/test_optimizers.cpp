// Optimizers, clipping, schedules: PyTorch's values, on one device and under all placements. Also
// run on GPUs.
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>

#include "device.hpp"
#include "elements.hpp"
#include "errors.hpp"
#include "ranks.hpp"
#include "torch_values.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

template <class W, class B>
struct Pair {
  W w;  ///< [3, 4]
  B b;  ///< [5]
  static constexpr nn::names members{"w", "b"};
};
template <class W, class B>
Pair(W, B) -> Pair<W, B>;

auto matrix(const double* from) {
  Tensor<double, 2> x({3, 4});
  for (index_t i = 0; i < 12; ++i) x.data()[i] = from[i];
  return x.to(TestDevice{});
}
auto vector(const double* from) {
  Tensor<double, 1> x({5});
  for (index_t i = 0; i < 5; ++i) x.data()[i] = from[i];
  return x.to(TestDevice{});
}

/// Placements of a tensor: local, or on a mesh.
struct Alone {
  auto operator()(const auto& x) const { return x; }
};
template <class Mesh, class... P>
struct On {
  Mesh mesh;
  std::tuple<P...> placements;
  On(const Mesh& m, P... p) : mesh(m), placements(p...) {}
  auto operator()(const auto& x) const { return nn::place(x, mesh, P{}...); }
};

auto start(const auto& place) {
  const double* const from = torch_values::start.data();
  return requires_grad(Pair{place(matrix(from)), place(vector(from + 12))});
}

/// The same elements in new memory, row-major.
auto dense(const auto& x) {
  using X = std::remove_cvref_t<decltype(x)>;
  if constexpr (is_dtensor<X>) return X::unchecked(x.to_local().clone(), x.mesh(), x.shape());
  else return x.clone();
}

/// Gives the leaves gradients through a backward pass; that of the matrix is a transposed view.
void give_gradients(const auto& m, const auto& place, std::size_t step) {
  zero_grad(m);
  const double* const from = torch_values::stored_gradients.data() + 17 * step;
  backward(transpose(m.w) * 1.0, dense(transpose(place(matrix(from)))));
  const auto gradient = grad(m.w);
  const auto& local = nn::detail::local_of(gradient);
  CHECK((local.shape()[0] < 2 || !local.contiguous()));
  backward(m.b * 1.0, place(vector(from + 12)));
}

double distance_to(const auto& m, const double* expected) {
  return std::fmax(distance(whole(m.w.value()), expected),
                   distance(whole(m.b.value()), expected + 12));
}

void check_trajectory(const auto& place, const auto& make, const std::vector<double>& expected) {
  const auto m = start(place);
  auto optimizer = make(m);
  for (std::size_t step = 0; step < 6; ++step) {
    give_gradients(m, place, step);
    optimizer.step(m);
  }
  CHECK(distance_to(m, expected.data()) < 1e-12);
}

/// Checks on one device and on meshes; some shards are uneven or empty.
void check_everywhere(const auto& check) {
  check(Alone{});
  on_ranks({1, 2, 4}, [&](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    check(On(line, Shard<0>{}));
    check(On(line, Replicate{}));
  });
  on_ranks({4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    check(On(mesh, Replicate{}, Shard<0>{}));
    check(On(mesh, Shard<0>{}, Shard<0>{}));
  });
}

}  // namespace

TEST_CASE("sgd, with momentum, with Nesterov's: PyTorch's steps") {
  check_everywhere([](const auto& place) {
    check_trajectory(place, [](const auto&) { return nn::sgd({0.1, 0.01}); }, torch_values::sgd);
    check_trajectory(
        place, [](const auto& m) { return nn::momentum_sgd(m, {0.1, 0.9, 0.2, false, 0.01}); },
        torch_values::momentum);
    check_trajectory(
        place, [](const auto& m) { return nn::momentum_sgd(m, {0.1, 0.9, 0, true, 0}); },
        torch_values::nesterov);
  });
}

TEST_CASE("adam and adamw: PyTorch's steps") {
  check_everywhere([](const auto& place) {
    const nn::AdamOptions options{0.02, 0.8, 0.99, 1e-6, 0.1};
    check_trajectory(
        place, [&](const auto& m) { return nn::adam(m, options); }, torch_values::adam);
    check_trajectory(
        place, [&](const auto& m) { return nn::adamw(m, options); }, torch_values::adamw);
  });
}

TEST_CASE("gradients are clipped by the norm of all, under any placements") {
  check_everywhere([](const auto& place) {
    const auto check = [&](double bound, const std::vector<double>& expected) {
      const auto m = start(place);
      give_gradients(m, place, 0);
      const auto kept = grad(m.w);
      const auto before = whole(kept).clone().to(Host{});
      CHECK(std::abs(nn::clip_grad_norm_(m, bound) - expected[0]) < 1e-13);
      CHECK(distance(whole(grad(m.w)), &expected[1]) < 1e-13);
      CHECK(distance(whole(grad(m.b)), &expected[13]) < 1e-13);
      CHECK(distance(whole(kept), before.data()) == 0);  // another handle on the old gradient
    };
    check(0.5, torch_values::clipped);
    check(1e6, torch_values::unclipped);
  });
}

TEST_CASE("the norm of gradients on several meshes: one small all-reduce per mesh") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto line = init_device_mesh<pp>(world, {4}, TestDevice{});
    const double* const from = torch_values::start.data();
    const auto m = requires_grad(Pair{nn::place(matrix(from), mesh, Shard<1>{}, Replicate{}),
                                      nn::place(vector(from + 12), line, Shard<0>{})});
    const double* const g = torch_values::stored_gradients.data();
    backward(m.w * 1.0, nn::place(matrix(g), mesh, Replicate{}, Shard<0>{}));
    backward(m.b * 1.0, nn::place(vector(g + 12), line));
    CommTrace trace(world);
    const double norm = nn::clip_grad_norm_(m, 0.5);
    CHECK(trace.events().size() == 2);
    CHECK(trace.received_bytes() <= 2 * 8 * 4);
    CHECK(std::abs(norm - torch_values::clipped[0]) < 1e-13);
    CHECK(distance(grad(m.w).full_tensor(), &torch_values::clipped[1]) < 1e-13);
    CHECK(distance(grad(m.b).full_tensor(), &torch_values::clipped[13]) < 1e-13);
  });
}

TEST_CASE("parameters on meshes of other ranks: the norm over the world") {
  on_ranks({4}, [](World& world) {
    const auto low = init_device_mesh<tp>(world, {2}, {0, 1}, TestDevice{});
    const auto high = init_device_mesh<tp>(world, {2}, {2, 3}, TestDevice{});
    const double* const from = torch_values::start.data();
    const auto w = nn::place(matrix(from), low, Shard<0>{});
    const auto b = nn::place(vector(from + 12), high);
    const auto m = requires_grad(Pair{w, b});
    const double* const g = torch_values::stored_gradients.data();
    if (low.is_member()) backward(m.w * 1.0, nn::place(matrix(g), low));
    else backward(m.b * 1.0, nn::place(vector(g + 12), high));
    CHECK(std::abs(nn::grad_norm(m, world) - torch_values::clipped[0]) < 1e-13);
    CHECK(contains(error_of([&] { nn::grad_norm(m); }),
                   "is on a mesh that does not contain this rank"));
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("the device of a module is that of its tracked parameters") {
  using W = decltype(requires_grad(matrix(nullptr)));
  using Plain = Pair<Tensor<double, 2>, Tensor<double, 1>>;
  using nn::trained_device_t;
  static_assert(std::is_same_v<trained_device_t<W>, TestDevice>);
  static_assert(std::is_same_v<trained_device_t<Pair<W, Tensor<double, 1>>>, TestDevice>);
  static_assert(std::is_same_v<trained_device_t<Pair<nn::None, W>>, TestDevice>);
  static_assert(std::is_same_v<trained_device_t<std::vector<std::tuple<Plain, W>>>, TestDevice>);
  static_assert(std::is_same_v<trained_device_t<Plain>, Host>);
  struct Other {};
  const auto both = nn::detail::common_device(TestDevice{}, Other{});
  static_assert(std::is_same_v<decltype(both), const nn::detail::SeveralDevices>);
  CHECK(nn::trained_parameters(Plain{}).empty());
}

TEST_CASE("schedules: PyTorch's rates") {
  const nn::StepDecay steps{0.5, 3, 0.5};
  const nn::Cosine cosine{0.5, 10, 0.05};
  const nn::WarmUp warm_up{0.5, 4, 0.1};
  for (index_t i = 0; i <= 10; ++i) {
    const auto k = std::size_t(i);
    CHECK(std::abs(steps(i) - torch_values::step_rates[k]) < 1e-15);
    CHECK(std::abs(cosine(i) - torch_values::cosine_rates[k]) < 1e-15);
    CHECK(std::abs(warm_up(i) - torch_values::warm_up_rates[k]) < 1e-15);
  }
  CHECK(cosine(1000) == 0.05);
  const nn::Cosine both{1, 110, 0, 10};
  CHECK(both(5) == 0.5);
  CHECK(both(10) == 1);
  CHECK(std::abs(both(60) - 0.5) < 1e-15);
}

TEST_CASE("parameters without a gradient, and frozen ones, stay; their steps are not counted") {
  const double* const from = torch_values::start.data();
  const auto m = requires_grad(Pair{matrix(from), vector(from + 12)});
  auto optimizer = nn::adamw(m, {});
  const auto frozen = Pair{matrix(from), requires_grad(vector(from + 12))};
  auto of_one = nn::momentum_sgd(frozen, {});
  static_assert(std::is_same_v<decltype(of_one.momentum_buffer.w), nn::None>);
  backward(m.b * 1.0, vector(from + 12));
  optimizer.step(m);
  CHECK(distance(m.w.value(), from) == 0);
  CHECK(distance(m.b.value(), from + 12) > 0);
  CHECK(optimizer.steps.value(0) == 0);
  CHECK(optimizer.steps.value(1) == 1);
  backward(frozen.b * 1.0, vector(from + 12));
  of_one.step(frozen);
  CHECK(distance(frozen.b.value(), from + 12) > 0);
  CHECK(contains(error_of([&] { of_one.step(m); }),
                 "the module has 2 trained parameters, the optimizer was made for 1"));
}

TEST_CASE("an optimizer step between forward and backward is an error") {
  const double* const from = torch_values::start.data();
  const auto m = requires_grad(Pair{matrix(from), vector(from + 12)});
  const auto loss = sum(square(m.b));
  backward(sum(m.b * 2.0));
  auto optimizer = nn::sgd({0.1});
  optimizer.step(m);
  CHECK(contains(error_of([&] { backward(loss); }), "was changed in place"));
}

TEST_CASE("a gradient that two leaves share is scaled once for each") {
  const double* const from = torch_values::start.data();
  const auto m = requires_grad(Pair{vector(from), vector(from + 5)});
  const auto g = vector(from + 7);
  backward(m.w + m.b, g);
  std::vector<double> halves(5);
  double squares = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    squares += from[7 + i] * from[7 + i];
    halves[i] = from[7 + i] / 2;
  }
  const double norm = std::sqrt(2 * squares);
  CHECK(std::abs(nn::clip_grad_norm_(m, norm / 2) - norm) < 1e-13);
  CHECK(distance(grad(m.w), halves.data()) < 1e-5);
  CHECK(distance(grad(m.b), halves.data()) < 1e-5);
  CHECK(distance(g, from + 7) == 0);
}

TEST_CASE("complex parameters are trained part by part; 16-bit ones are computed in float") {
  using C = std::complex<double>;
  const auto on_device = [](const auto& x) { return x.clone().to(TestDevice{}); };
  const auto m = requires_grad(Pair{on_device(Tensor<C, 1>({2}, {C(1, 2), C(-3, 0.5)})),
                                    on_device(Tensor<half, 1>({2}, {half(1.f), half(-2.f)}))});
  backward(m.w * C(1), on_device(Tensor<C, 1>({2}, {C(2, -1), C(0, 4)})));
  backward(m.b * half(1.f), on_device(Tensor<half, 1>({2}, {half(0.5f), half(0.25f)})));
  auto optimizer = nn::adam(m, {.learning_rate = 0.125});
  optimizer.step(m);  // the first step moves each real number by the rate, against the gradient
  const auto w = m.w.value().to(Host{});
  const auto b = m.b.value().to(Host{});
  CHECK(std::abs(w(0) - C(0.875, 2.125)) < 1e-7);
  CHECK(std::abs(w(1) - C(-3, 0.375)) < 1e-7);
  CHECK(float(b(0)) == 0.875f);
  CHECK(float(b(1)) == -2.125f);
}

TEST_SUITE_END();

TEST_CASE("a loss is scaled; a gradient that is not finite on any rank stops the step") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const double* const from = torch_values::start.data();
    const auto m = requires_grad(
        Pair{nn::place(matrix(from), mesh, Shard<0>{}), nn::place(vector(from + 12), mesh)});
    auto optimizer = nn::sgd({0.5});
    nn::GradScaler scaler{.growth_interval = 1};
    backward(scaler.scale(sum(m.w) + sum(m.b)));
    scaler.unscale_(m);
    CHECK(grad(m.b).full_tensor().to(Host{})(2) == 1);
    scaler.step(optimizer, m);
    CHECK(scaler.factor() == 2 * 65536.0);
    CHECK(m.b.value().full_tensor().to(Host{})(0) == from[12] - 0.5);
    zero_grad(m);
    Tensor<double, 2> bad = matrix(from).clone().to(Host{});
    bad(2, 3) = std::numeric_limits<double>::infinity();
    backward(m.w * 1.0, nn::place(bad.to(TestDevice{}), mesh, Shard<0>{}));
    scaler.unscale_(m);
    CHECK_FALSE(scaler.is_finite);
    const auto before = m.w.value().full_tensor().clone().to(Host{});
    scaler.step(optimizer, m);
    CHECK(distance(m.w.value().full_tensor(), before.data()) == 0);
    CHECK(scaler.factor() == 65536.0);
  });
}
