#include <cmath>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/normalisation/layer_norm.hpp>

#include "../norms_torch.hpp"
#include "device.hpp"
#include "each_placements.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace {

using torch_norms::Row;

Tensor<double, 3> norm_array(const Row& row) {
  const Tensor<double, 3> x({3, 2, 5});
  for (std::size_t i = 0; i < row.size(); ++i) x.data()[i] = row[i];
  return x;
}
Tensor<double, 1> norm_row(const Row& row) {
  const Tensor<double, 1> x({5});
  for (std::size_t i = 0; i < row.size(); ++i) x.data()[i] = row[i];
  return x;
}

template <class X>
bool are_near(const X& found, const Row& expected) {
  const auto whole = found.full_tensor().to(Host{});
  if (whole.size() != index_t(expected.size())) return false;
  for (index_t i = 0; i < whole.size(); ++i) {
    const double a = whole.data()[i], b = expected[std::size_t(i)];
    if (!(std::abs(a - b) <= 1e-12 * (1 + std::abs(b)))) return false;
  }
  return true;
}

/// Compares norm(x, rows..) and its gradients with PyTorch's.
template <class X, class G, class Norm, class... Rows>
void compare_norm(const std::string& name, const Norm& norm, const X& placed, const G& g,
                  const Rows&... rows) {
  CAPTURE(name);
  const torch_norms::Norm& expected = torch_norms::norms.at(name);
  const std::tuple leaves{requires_grad(placed), requires_grad(rows)...};
  const auto y = std::apply(norm, leaves);
  CHECK(are_near(y.value(), expected.y));
  backward(sum(mul(y, g)));
  std::size_t at = 0;
  const auto check = [&](const auto& leaf) {
    CHECK(are_near(grad(leaf), expected.slopes.at(at++)));
  };
  std::apply([&](const auto&... leaf) { (check(leaf), ...); }, leaves);
}

/// Compares a second-order gradient in x: that of sum(v dx).
template <class X, class G, class Norm>
void compare_second(const std::string& name, const Norm& norm, const X& placed, const G& g,
                    const G& v) {
  CAPTURE(name);
  const auto outer = requires_grad(placed);
  const auto inner = requires_grad(outer);
  backward(sum(mul(norm(inner), g)));
  backward(sum(mul(grad(inner), v)));
  CHECK(are_near(grad(outer), torch_norms::norms.at(name).second));
}

}  // namespace

TEST_CASE("norms of rows and their derivatives are PyTorch's under all placements") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto weight = distribute_tensor(norm_row(torch_norms::weight), mesh, Replicate{});
    const auto bias = distribute_tensor(norm_row(torch_norms::bias), mesh, Shard<0>{});
    each_placements<1, Replicate, Shard<0>, Shard<2>>([&](auto p) {
      const auto x = distribute_tensor(norm_array(torch_norms::x), mesh, p);
      const auto g = distribute_tensor(norm_array(torch_norms::g), mesh, Shard<1>{});
      const auto v = distribute_tensor(norm_array(torch_norms::v), mesh, Shard<1>{});
      const auto layer = [](const auto& a, const auto&... row) { return layer_norm(a, row...); };
      const auto rms = [](const auto& a, const auto&... row) {
        return rms_norm(a, row..., {.epsilon = 0.1});
      };
      compare_norm("layer_norm", layer, x, g);
      compare_norm("layer_norm_wb", layer, x, g, weight, bias);
      compare_norm(
          "layer_norm_w",
          [](const auto& a, const auto& row) { return layer_norm(a, row, {.epsilon = 0.1}); }, x, g,
          weight);
      compare_norm("rms_norm", [](const auto& a) { return rms_norm(a); }, x, g);
      compare_norm("rms_norm_w", rms, x, g, weight);
      compare_second("layer_norm", layer, x, g, v);
      compare_second("rms_norm_w", [&](const auto& a) { return rms(a, weight); }, x, g, v);
    });
  });
}

TEST_CASE("where rows are sharded, norms exchange a number or two per row") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = distribute_tensor(norm_array(torch_norms::x), mesh, Shard<2>{});
    const auto rows = distribute_tensor(norm_array(torch_norms::x), mesh, Shard<0>{});
    CommTrace trace(world);
    static_assert(std::is_same_v<decltype(layer_norm(x))::placements_type, Placements<Shard<2>>>);
    layer_norm(x);
    CHECK(trace.count(CollectiveKind::all_reduce) == 2);
    rms_norm(x);
    CHECK(trace.count(CollectiveKind::all_reduce) == 3);
    layer_norm(rows);
    CHECK(trace.events().size() == 3);
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("rows that lie anywhere in memory are normalised, of any length and 16 bits too") {
  const auto check = [](const auto& x, double tolerance) {
    const auto y = layer_norm(x), z = rms_norm(x);
    bool all_near = true;
    for (index_t i = 0; i < x.extent(0); ++i) {
      double mean = 0, squares = 0, deviations = 0;
      const auto n = double(x.extent(1));
      for (index_t j = 0; j < x.extent(1); ++j) {
        mean += double(x(i, j)) / n;
        squares += double(x(i, j)) * double(x(i, j)) / n;
      }
      for (index_t j = 0; j < x.extent(1); ++j)
        deviations += std::pow(double(x(i, j)) - mean, 2) / n;
      for (index_t j = 0; j < x.extent(1); ++j) {
        const double centered = (double(x(i, j)) - mean) / std::sqrt(deviations + 1e-5);
        const double plain = double(x(i, j)) / std::sqrt(squares + 1e-6);
        all_near = all_near && std::abs(double(y(i, j)) - centered) <= tolerance &&
                   std::abs(double(z(i, j)) - plain) <= tolerance;
      }
    }
    CHECK(all_near);
  };
  const auto filled = []<class T>(T, index_t rows, index_t columns) {
    const Tensor<T, 2> x({rows, columns});
    for (index_t i = 0; i < x.size(); ++i) x.data()[i] = T(float(i * 37 % 101) / 8 - 3);
    return x;
  };
  for (const index_t n : {1, 2, 15, 16, 17, 511, 512, 513, 5000}) check(filled(0.0f, 3, n), 2e-5);
  check(filled(0.0, 40, 33).transpose(0, 1), 1e-13);
  check(filled(half{}, 3, 40), 4e-3);
  check(filled(0.0, 0, 4), 0);
  check(filled(0.0, 4, 0), 0);
}

TEST_CASE("a row far from zero keeps its deviations") {
  const Tensor<float, 2> x({1, 4}, {4e6f, 4e6f + 1, 4e6f + 2, 4e6f + 3});
  const auto y = layer_norm(x, {.epsilon = 0});
  const double unit = std::sqrt(1.25);
  for (index_t j = 0; j < 4; ++j) CHECK(std::abs(y(0, j) - (double(j) - 1.5) / unit) < 1e-6);
}

TEST_SUITE_END();
