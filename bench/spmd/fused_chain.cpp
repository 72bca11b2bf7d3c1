// A chain of elementwise operations as a program against one loop written by hand, interleaved: an
// update of weights with momentum, on arrays larger than caches. Also the same calls.
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/spmd.hpp>

#include "../timing.hpp"

using namespace cleave;
using namespace cleave::axes;
using bench::median;
using bench::seconds_of;

namespace {

/// (1 - rate · decay) w - rate · v, with v = momentum · v + g
struct Update {
  constexpr auto operator()(const auto& w, const auto& g, const auto& v) const {
    const auto next = add(mul(v, 0.9f), g);
    return std::tuple(sub(mul(w, 0.999f), mul(next, 0.01f)), next);
  }
};

void update_by_hand(index_t n, const float* __restrict w, const float* __restrict g,
                    const float* __restrict v, float* __restrict new_w, float* __restrict new_v) {
  for (index_t i = 0; i < n; ++i) {
    const float next = v[i] * 0.9f + g[i];
    new_w[i] = w[i] * 0.999f - next * 0.01f;
    new_v[i] = next;
  }
}

constexpr index_t n = 2 << 20;
constexpr auto update_graph = spmd::frozen([] {
  return spmd::trace(Update{}, spmd::arg<float>("w", {n}), spmd::arg<float>("g", {n}),
                     spmd::arg<float>("v", {n}));
});
constexpr std::array update_schemas{spmd::schema(Replicate{}), spmd::schema(Replicate{}),
                                    spmd::schema(Replicate{})};
constexpr auto update_program =
    spmd::frozen([] { return spmd::expand(update_graph, update_schemas); });

void chain(World& world) {
  const auto mesh = init_device_mesh<dp>(world, {1});
  const auto w = randn<float>({n}, mesh, Replicate{}), g = randn<float>({n}, mesh, Replicate{});
  const auto v = randn<float>({n}, mesh, Replicate{});
  using Y = std::remove_const_t<decltype(w)>;
  spmd::Runner runner(update_program, mesh);  // as a program created at run time
  const Tensor<float, 1> new_w({n}), new_v({n});
  std::tuple<Y, Y> by_program{w, v}, by_kernel{w, v}, by_calls{w, v};
  std::vector<double> to_hand, kernel_to_hand, to_calls;
  for (int i = 0; i < 31; ++i) {
    const double run = seconds_of(1, [&] { by_program = runner.run<Y, Y>(w, g, v); });
    const double kernel =
        seconds_of(1, [&] { by_kernel = spmd::run<update_program>(mesh, w, g, v); });
    const double hand = seconds_of(1, [&] {
      update_by_hand(n, w.to_local().data(), g.to_local().data(), v.to_local().data(), new_w.data(),
                     new_v.data());
    });
    const double calls = seconds_of(1, [&] { by_calls = Update{}(w, g, v); });
    if (i > 0) kernel_to_hand.push_back(hand / kernel);
    if (i > 0) to_hand.push_back(hand / run), to_calls.push_back(calls / run);
  }
  for (const auto& made : {by_program, by_kernel})
    if (std::memcmp(std::get<0>(made).to_local().data(), std::get<0>(by_calls).to_local().data(),
                    std::size_t(n) * sizeof(float)) != 0)
      throw Error("bench", "the results of the program and of the calls differ");
  std::printf("spmd.fused_kernel.vs_handwritten_loop %.2f ratio\n", median(kernel_to_hand));
  std::printf("spmd.fused_chain.vs_handwritten_loop %.2f ratio\n", median(to_hand));
  std::printf("spmd.fused_chain.vs_eager %.2f ratio\n", median(to_calls));
}

}  // namespace

int main() { run_threads(1, chain); }
