// Gradients of values that move between meshes return to the original mesh and placements.
#include <cmath>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/ops/shapes/slice.hpp>

#include "network.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// Checks the gradient of sum((x on the other mesh)² w) on the ranks of x's mesh.
template <class... To, class X, class Mesh>
void check_square(const X& placed, const Tensor<double, 2>& a, const Tensor<double, 2>& b,
                  const Mesh& other) {
  const auto x = requires_grad(placed);
  const auto w = distribute_tensor(b, other, To{}...);
  const auto y = x.redistribute(other, To{}...);
  static_assert(std::is_same_v<decltype(y.value().placements()), Placements<To...>>);
  backward(sum(square(y) * w));
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(grad(x))>, gradient_t<X>>);
  if (!placed.mesh().is_member()) return;
  std::vector<double> expected;
  for (index_t i = 0; i < a.size(); ++i) expected.push_back(2 * a.data()[i] * b.data()[i]);
  check_close(grad(x).full_tensor(), expected, 1e-15);
}

}  // namespace

TEST_CASE("the gradient of a value on another mesh returns to the mesh that it came from") {
  on_ranks({2, 3, 4, 6}, [](World& world) {
    const auto a = noise<2>({5, 3}, 1), b = noise<2>({5, 3}, 2);
    const int n = world.size();
    const auto all = init_device_mesh<dp>(world, {n});
    const auto first = init_device_mesh<pp>(world, {1}, {0});
    const auto last = init_device_mesh<row>(world, {n - 1}, [&] {
      std::vector<int> ranks;
      for (int r = n - 1; r > 0; --r) ranks.push_back(r);
      return ranks;
    }());
    const int half = n % 2 == 0 ? 2 : 1;
    const auto grid = init_device_mesh<tp, cp>(world, {n / half, half});

    check_square<Replicate>(distribute_tensor(a, all, Shard<0>{}), a, b, first);
    check_square<Shard<1>>(distribute_tensor(a, first, Replicate{}), a, b, last);  // disjoint
    check_square<Shard<0>>(distribute_tensor(a, last, Shard<1>{}), a, b, all);
    check_square<Shard<1>, Shard<0>>(distribute_tensor(a, all, Shard<0>{}), a, b, grid);
    check_square<Replicate, Shard<0>>(distribute_tensor(a, last, Replicate{}), a, b, grid);
    check_square<Shard<0>>(distribute_tensor(a, grid, Shard<0>{}, Shard<0>{}), a, b, last);
    check_square<Shard<0>>(distribute_tensor(a, grid, Replicate{}, Shard<1>{}), a, b, all);
  });
}

TEST_CASE("stages of a network on meshes of their own have the gradients of one device") {
  on_ranks({2, 3, 4}, [](World& world) {
    Example e;
    const int n = world.size();
    const auto front = init_device_mesh<dp>(world, {n - 1}, [&] {
      std::vector<int> ranks;
      for (int r = 0; r < n - 1; ++r) ranks.push_back(r);
      return ranks;
    }());
    const auto back = init_device_mesh<tp>(world, {1}, {n - 1});
    const auto x = distribute_tensor(e.x, front, Shard<0>{});
    const auto w1 = requires_grad(distribute_tensor(e.w1, front, Replicate{}));
    const auto b1 = requires_grad(distribute_tensor(e.b1, front, Replicate{}));
    const auto w2 = requires_grad(distribute_tensor(e.w2, back, Shard<0>{}));
    const auto classes = distribute_tensor(e.classes, back, Replicate{});
    const auto hidden = relu(matmul(x, w1) + b1).redistribute(back, Replicate{});
    CommTrace trace(world);
    backward(cross_entropy(matmul(hidden, w2), classes));
    CHECK(trace.count(CollectiveKind::exchange) == 1);
    if (front.is_member()) {
      check_close(grad(w1).full_tensor(), e.slopes(e.w1.data(), e.w1.size()));
      check_close(grad(b1).full_tensor(), e.slopes(e.b1.data(), e.b1.size()));
    } else {
      check_close(grad(w2).full_tensor(), e.slopes(e.w2.data(), e.w2.size()));
    }
  });
}

TEST_CASE("addends that move to another mesh have the gradient of their sum") {
  on_ranks({2, 3, 4}, [](World& world) {
    const auto a = noise<2>({5, 3}, 1);
    const auto b = noise<1>({3}, 2);
    const auto all = init_device_mesh<dp>(world, {world.size()});
    const auto other = init_device_mesh<tp>(world, {1}, {world.size() - 1});
    const auto x = requires_grad(distribute_tensor(a, all, Shard<0>{}));
    const auto sums = sum(x, dim<0>{});  // Partial over dp
    const auto y = sums.redistribute(other, Shard<0>{});
    backward(sum(square(y) * distribute_tensor(b, other, Shard<0>{})));
    std::vector<double> expected;
    for (index_t i = 0; i < 5; ++i)
      for (index_t j = 0; j < 3; ++j) {
        double total = 0;
        for (index_t k = 0; k < 5; ++k) total += a(k, j);
        expected.push_back(2 * total * b(j));
      }
    check_close(grad(x).full_tensor(), expected, 1e-14);
  });
}

TEST_CASE("a value that is used here and on another mesh has the sum of both gradients") {
  on_ranks({2, 4}, [](World& world) {
    const auto a = noise<2>({4, 3}, 1);
    const auto all = init_device_mesh<dp>(world, {world.size()});
    const auto other = init_device_mesh<tp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, all, Shard<0>{}));
    const auto here = sum(x * 3.0);
    const auto there = sum(square(x.redistribute(other, Shard<1>{})));
    backward(here + there.redistribute(all, Replicate{}));
    std::vector<double> expected;
    for (index_t i = 0; i < 12; ++i) expected.push_back(3 + 2 * a.data()[i]);
    check_close(grad(x).full_tensor(), expected, 1e-15);
  });
}

TEST_CASE("second derivatives pass from mesh to mesh") {
  on_ranks({2, 3}, [](World& world) {
    const auto a = noise<2>({4, 3}, 1);
    const auto all = init_device_mesh<dp>(world, {world.size()});
    const auto other = init_device_mesh<tp>(world, {1}, {0});
    const auto outer = requires_grad(distribute_tensor(a, all, Shard<1>{}));
    const auto inner = requires_grad(outer);
    const auto y = inner.redistribute(other, Shard<0>{});
    backward(sum(y * y * y));            // 3 x²
    backward(sum(square(grad(inner))));  // d/dx 9 x⁴ = 36 x³
    std::vector<double> expected;
    for (index_t i = 0; i < 12; ++i) expected.push_back(36 * std::pow(a.data()[i], 3));
    check_close(grad(outer).full_tensor(), expected, 1e-13);
  });
}

TEST_CASE("a transfer to another mesh within a checkpoint is repeated in backward") {
  on_ranks({2, 3}, [](World& world) {
    const auto a = noise<2>({4, 3}, 1);
    const auto all = init_device_mesh<dp>(world, {world.size()});
    const auto other = init_device_mesh<tp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, all, Shard<0>{}));
    const auto f = [&](const auto& v) { return square(v.redistribute(other, Shard<1>{})); };
    backward(sum(checkpoint(f, x)));
    std::vector<double> expected;
    for (index_t i = 0; i < 12; ++i) expected.push_back(2 * a.data()[i]);
    check_close(grad(x).full_tensor(), expected, 1e-15);
  });
}

TEST_CASE("ranks outside of a mesh check no extents of tracked tensors") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, {0, 1});
    const Tensor<double, 1> local({2}, {1, 2});
    const auto x = requires_grad(from_local(local, mesh, Shard<0>{}));  // [4] on the mesh
    backward(sum(slice(x, dim<0>{}, 1, 3) * narrow(x, dim<0>{}, -2, 2)));
    if (!mesh.is_member()) return;
    // d/dx (x[1] x[2] + x[2] x[3]) at (1, 2, 1, 2)
    check_close(grad(x).full_tensor(), std::vector<double>{0, 1, 4, 1}, 1e-15);
  });
}
