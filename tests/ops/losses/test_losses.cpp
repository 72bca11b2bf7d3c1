#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/losses/binary_cross_entropy.hpp>
#include <cleave/ops/losses/class_losses.hpp>
#include <cleave/ops/losses/mse_loss.hpp>

#include "../losses_torch.hpp"
#include "device.hpp"
#include "each_placements.hpp"
#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace {

constexpr const char* reduction_names[] = {"none", "mean", "sum"};

Tensor<double, 2> loss_matrix(const torch_losses::Row& row) {
  const Tensor<double, 2> x({6, 5});
  for (std::size_t i = 0; i < row.size(); ++i) x.data()[i] = row[i];
  return x;
}
Tensor<index_t, 1> loss_classes(const torch_losses::Row& row) {
  const Tensor<index_t, 1> x({6});
  for (std::size_t i = 0; i < row.size(); ++i) x.data()[i] = index_t(row[i]);
  return x;
}

template <class X>
bool matches(const X& found, const torch_losses::Row& expected) {
  const auto whole = found.full_tensor().to(Host{});
  if (whole.size() != index_t(expected.size())) return false;
  for (index_t i = 0; i < whole.size(); ++i) {
    const double a = whole.data()[i], b = expected[std::size_t(i)];
    if (!(std::abs(a - b) <= 1e-12 * (1 + std::abs(b)))) return false;
  }
  return true;
}

/// Compares loss(x) and the gradient of its sum with PyTorch's.
template <Reduction By, class X, class Loss>
void compare_loss(const std::string& name, const X& first, const Loss& loss) {
  const std::string key = name + "." + reduction_names[int(By)];
  CAPTURE(key);
  const torch_losses::Loss& expected = torch_losses::losses.at(key);
  const auto x = requires_grad(first);
  const auto y = loss(x);
  CHECK(matches(y.value(), expected.y));
  if constexpr (By == Reduction::none) backward(sum(y));
  else backward(y);
  CHECK(matches(grad(x), expected.slope));
}

template <class F>
void each_reduction(const F& f) {
  f.template operator()<Reduction::none>();
  f.template operator()<Reduction::mean>();
  f.template operator()<Reduction::sum>();
}

}  // namespace

TEST_CASE("losses of targets and their gradients are PyTorch's under all placements") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>>([&](auto p) {
      const auto x = distribute_tensor(loss_matrix(torch_losses::x), mesh, p);
      const auto chances = distribute_tensor(loss_matrix(torch_losses::chances), mesh, p);
      const auto targets = distribute_tensor(loss_matrix(torch_losses::targets), mesh, Shard<0>{});
      each_reduction([&]<Reduction By>() {
        compare_loss<By>("mse", x, [&](const auto& v) { return mse_loss<By>(v, targets); });
        compare_loss<By>("bce", chances,
                         [&](const auto& v) { return binary_cross_entropy<By>(v, targets); });
        compare_loss<By>("bce_logits", x, [&](const auto& v) {
          return binary_cross_entropy_with_logits<By>(v, targets);
        });
      });
    });
  });
}

TEST_CASE("losses of classes and their gradients are PyTorch's under all placements") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>>([&](auto p) {
      const auto x = distribute_tensor(loss_matrix(torch_losses::x), mesh, p);
      const auto y = distribute_tensor(loss_matrix(torch_losses::log_chances), mesh, p);
      const auto classes =
          distribute_tensor(loss_classes(torch_losses::classes), mesh, Replicate{});
      const auto other =
          distribute_tensor(loss_classes(torch_losses::other_classes), mesh, Shard<0>{});
      each_reduction([&]<Reduction By>() {
        compare_loss<By>("nll", y, [&](const auto& v) { return nll_loss<By>(v, classes); });
        compare_loss<By>("nll_ignored", y, [&](const auto& v) {
          return nll_loss<By>(v, other, {.ignore_index = 2});
        });
        compare_loss<By>("cross_entropy", x,
                         [&](const auto& v) { return cross_entropy<By>(v, classes); });
        compare_loss<By>("cross_entropy_ignored", x, [&](const auto& v) {
          return cross_entropy<By>(v, other, {.ignore_index = 2});
        });
        compare_loss<By>("cross_entropy_smooth", x, [&](const auto& v) {
          return cross_entropy<By>(v, classes, {.label_smoothing = 0.1});
        });
        compare_loss<By>("cross_entropy_both", x, [&](const auto& v) {
          return cross_entropy<By>(v, other, {.label_smoothing = 0.3, .ignore_index = 2});
        });
      });
    });
  });
}

TEST_CASE("where classes are sharded a loss sums up two numbers per row, and gathers nothing") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = distribute_tensor(loss_matrix(torch_losses::x), mesh, Shard<1>{});
    const auto classes = distribute_tensor(loss_classes(torch_losses::classes), mesh, Replicate{});
    CommTrace trace(world);
    const auto loss = cross_entropy<Reduction::mean>(x, classes, {.label_smoothing = 0.1});
    CHECK(trace.events().size() == 2);
    CHECK(trace.count(CollectiveKind::all_reduce) == 2);
    static_assert(std::is_same_v<decltype(loss)::placements_type, Placements<Partial<Sum>>>);
  });
}

TEST_CASE("a class with probability 0 adds nothing to the loss unless it is the target") {
  const double never = -std::numeric_limits<double>::infinity();
  const Tensor<double, 2> y({2, 2}, {0, never, 0, never});
  const Tensor<index_t, 1> classes({2}, {0, -100});
  CHECK(nll_loss(y, classes).item() == 0);
  CHECK(cross_entropy<Reduction::sum>(y, classes).item() == 0);
  CHECK(std::isinf(nll_loss(y, Tensor<index_t, 1>({2}, {0, 1})).item()));
  CHECK(std::isnan(nll_loss(y, Tensor<index_t, 1>({2}, {-100, -100})).item()));
}

TEST_CASE("invalid operands of losses are refused") {
  const Tensor<double, 2> y({2, 2}, {0, 0, 0, 0});
  const Tensor<index_t, 1> classes({2}, {0, 3});
  CHECK(error_of([&] { nll_loss(y, classes); }).find("index 3 is not in [0, 2)") !=
        std::string::npos);
  CHECK(error_of([&] {
          cross_entropy<Reduction::mean>(y, classes, {.label_smoothing = 1.5});
        }).find("cross_entropy: label_smoothing must be in [0, 1], not 1.5") == 0);
  CHECK(error_of([&] { mse_loss(y, Tensor<double, 2>({2, 3})); }).find("sub") == 0);
}
