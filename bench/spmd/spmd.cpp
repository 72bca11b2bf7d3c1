// Programs against their building blocks, in the same run: the host time per node that the
// interpreter adds to the same kernels called by hand (allocation included in both), and the time
// to trace, expand and optimize a program of a thousand nodes.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/spmd.hpp>

#include "../timing.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::kernels;
using bench::median;
using bench::seconds_of;

namespace {

constexpr int chain = 100;

struct Adds {
  constexpr auto operator()(const auto& x) const {
    auto y = add(x, x);
    for (int i = 1; i < chain; ++i) y = add(y, x);
    return y;
  }
};

struct Layers {
  constexpr auto operator()(const auto& x, const auto& up, const auto& down) const {
    auto y = resolve(x);
    for (int layer = 0; layer < 200; ++layer)
      y = add(y, resolve(matmul(tanh(matmul(y, up)), down)));
    return y;
  }
};

/// One-element sums: apart from the kernel, a node costs only the time of the interpreter.
void overhead(World& world) {
  const auto mesh = init_device_mesh<dp>(world, {1});
  const auto x = ones<float>({1, 1}, mesh, Replicate{});
  const Tensor<float, 2>& local = x.to_local();
  const auto program =
      spmd::expand(spmd::trace(Adds{}, spmd::arg<float>("x", {1, 1})), spmd::schemas_of(x));
  spmd::Runner runner(program, mesh);
  using Y = std::remove_const_t<decltype(x)>;
  constexpr On<Host> host{};
  std::vector<double> by_hand, run, once, eager;
  for (int i = 0; i < 51; ++i) {
    by_hand.push_back(seconds_of(100, [&] {
      Tensor<float, 2> y({1, 1});
      map_elements(host, ops::Add{}, write(y), read(local), read(local));
      for (int k = 1; k < chain; ++k) {
        Tensor<float, 2> z({1, 1});
        map_elements(host, ops::Add{}, write(z), read(y), read(local));
        y = std::move(z);
      }
    }));
    run.push_back(seconds_of(100, [&] { static_cast<void>(runner.run<Y>(x)); }));
    once.push_back(seconds_of(100, [&] { static_cast<void>(spmd::run<Y>(program, mesh, x)); }));
    eager.push_back(seconds_of(100, [&] { static_cast<void>(Adds{}(x)); }));
  }
  const auto per_node = [&](const std::vector<double>& of) {
    std::vector<double> added;
    for (std::size_t i = 0; i < of.size(); ++i) added.push_back(1e9 * (of[i] - by_hand[i]) / chain);
    return median(added);
  };
  std::printf("graph.overhead_per_node_ns %.1f ns\n", per_node(run));
  std::printf("graph.overhead_per_node_once_ns %.1f ns\n", per_node(once));
  std::printf("graph.eager_overhead_per_call_ns %.1f ns\n", per_node(eager));
}

void thousand_nodes() {
  const std::array schemas{spmd::schema(Replicate{}), spmd::schema(Shard<1>{}),
                           spmd::schema(Shard<0>{})};
  const auto traced = [] {
    return spmd::trace(Layers{}, spmd::arg<float>("x", {8, 4}), spmd::arg<float>("up", {4, 16}),
                       spmd::arg<float>("down", {16, 4}));
  };
  std::vector<double> trace_times, all, optimized;
  std::size_t nodes = 0;
  for (int i = 0; i < 51; ++i) {
    trace_times.push_back(seconds_of(1, [&] { nodes = traced().nodes.size(); }));
    all.push_back(seconds_of(1, [&] { nodes += spmd::expand(traced(), schemas).code.size(); }));
    optimized.push_back(seconds_of(1, [&] {
      const Shape mesh = Shape::filled(1, 2);
      nodes += spmd::optimize(spmd::expand(traced(), schemas), mesh).code.size();
    }));
  }
  if (nodes < 1000) std::abort();
  std::printf("graph.trace_1000_ms %.3f ms\n", 1e3 * median(trace_times));
  std::printf("graph.trace_expand_1000_ms %.3f ms\n", 1e3 * median(all));
  std::printf("spmd.trace_expand_passes_1000_ms %.3f ms\n", 1e3 * median(optimized));
}

}  // namespace

int main() {
  run_threads(1, overhead);
  thousand_nodes();
}
