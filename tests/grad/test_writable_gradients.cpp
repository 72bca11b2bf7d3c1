// Gradients and outputs of programs can be changed in place, without effect on other values.
#include <array>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cleave.hpp>
#include <cleave/grad.hpp>
#include <cleave/spmd.hpp>

#include "each_placements.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// The elements of a dense tensor.
template <class X>
std::vector<double> elements_of(const X& x) {
  const auto dense = x.clone();
  return {dense.data(), dense.data() + dense.size()};
}

Tensor<double, 2> counted_table() {
  const Tensor<double, 2> x({5, 3});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i);
  return x;
}

}  // namespace

TEST_CASE("the gradient of a sum is scaled in place and by a hook") {
  const auto x = requires_grad(counted_table());
  backward(sum(x));
  mul_(grad(x), 0.5);
  CHECK(elements_of(grad(x)) == std::vector<double>(15, 0.5));
  backward(sum(x));  // accumulates
  CHECK(elements_of(grad(x)) == std::vector<double>(15, 1.5));

  const auto y = requires_grad(counted_table());
  on_gradient(y, [](const auto& g) { mul_(g, 3); });
  backward(sum(y));
  CHECK(elements_of(grad(y)) == std::vector<double>(15, 3));
  grad(y)(0, 0) = 8;
  CHECK(grad(y)(1, 1) == 3);
}

TEST_CASE("a change of one gradient leaves those of other leaves and the caller's tensor alone") {
  const auto x = requires_grad(counted_table()), y = requires_grad(counted_table());
  const Tensor<double, 2> g = counted_table();
  backward(x + y, g);
  mul_(grad(x), 10);
  for (index_t i = 0; i < 15; ++i) {
    CHECK(grad(x).data()[i] == 10 * double(i));
    CHECK(grad(y).data()[i] == double(i));
    CHECK(g.data()[i] == double(i));
  }
}

TEST_CASE("dense gradients are not copied") {
  const auto x = requires_grad(counted_table());
  const void* computed = nullptr;
  const auto y = map([](auto u) { return u * u; }, x);
  backward(sum(y));
  computed = grad(x).data();
  CHECK(grad(x).storage().use_count() == 1);
  mul_(grad(x), 0.5);
  CHECK(grad(x).data() == computed);
  for (index_t i = 0; i < 15; ++i) CHECK(grad(x).data()[i] == double(i));
}

TEST_CASE("gradients of DTensors can be changed under all placements") {
  on_ranks({1, 2, 3, 7}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto table = counted_table();
    each_placements<1, Replicate, Shard<0>, Shard<1>>([&]<class P>(P) {
      const auto x = requires_grad(distribute_tensor(table, mesh, P{}));
      const auto y = requires_grad(distribute_tensor(table, mesh, P{}));
      backward(sum(x) + sum(x + y));
      mul_(grad(x), 4);
      CHECK(elements_of(grad(x).full_tensor()) == std::vector<double>(15, 8));
      CHECK(elements_of(grad(y).full_tensor()) == std::vector<double>(15, 1));
    });
  });
}

TEST_CASE("outputs of programs can be changed") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = distribute_tensor(counted_table(), mesh, Shard<0>{});
    const auto step = [](const auto& w) {
      const auto leaf = requires_grad(w);
      backward(sum(leaf));
      return grad(leaf);
    };
    const spmd::Graph graph = spmd::trace(step, spmd::arg<double>("x", {5, 3}));
    const spmd::Program program = spmd::expand(graph, spmd::schemas_of(x));
    const auto run = [&]<class Y>(const Y*) {
      spmd::Runner runner(program, mesh);
      const auto [g] = runner.template run<Y>(x);
      mul_(g, 0.5);
      CHECK(elements_of(g.full_tensor()) == std::vector<double>(15, 0.5));
    };
    using S0 = DTensor<double, 2, std::remove_const_t<decltype(mesh)>, Placements<Shard<0>>>;
    run(static_cast<const S0*>(nullptr));
  });
}
