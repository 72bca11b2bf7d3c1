// Peak memory of fully sharded modules on a rank, counted where tensors are allocated.
#include <cleave/parallel/fully_shard.hpp>

#include "sharded_models.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

TEST_SUITE_BEGIN("threads only");  // each rank's memory is counted from its start

namespace {

/// Checks the memory of a rank of four during training: 1/4 of parameters and optimizer state,
/// later of gradients too, plus at most `forward` or `back` times the parameters of a group.
template <class M>
void check_memory(const M& lazy, index_t group_elements, index_t groups, index_t features,
                  FullyShardOptions<> options, double forward, double back) {
  on_ranks({4}, [&](World& world) {
    const std::size_t group = std::size_t(group_elements) * sizeof(double);
    const std::size_t all = std::size_t(groups) * group;
    const auto mesh = init_device_mesh<dp>(world, {4});
    manual_seed(world, 3);
    const auto x = input_rows(mesh, 4, features);
    const std::size_t before = memory_stats().allocated;
    const auto held = [&] { return double(memory_stats().allocated - before); };
    const auto most = [&] { return double(memory_stats().peak - before); };
    const auto model = requires_grad(fully_shard(lazy, mesh, dp{}, options, "layers.*"_path));
    auto optimizer = nn::adamw(model, {});
    const double slack = double(group) / 8;  // activations, and rounding of allocations
    CHECK(held() <= 3 * double(all) / 4 + slack);
    for (int step = 0; step < 3; ++step) {
      zero_grad(model);
      reset_memory_peak();
      {
        const auto loss = sum(square(model(x)));
        CHECK(held() <= 3 * double(all) / 4 + slack);
        CHECK(most() <= 3 * double(all) / 4 + forward * double(group) + slack);
        reset_memory_peak();
        backward(loss);
      }
      CHECK(most() <= 4 * double(all) / 4 + back * double(group) + slack);
      CHECK(held() <= 4 * double(all) / 4 + slack);
      optimizer.step(model);
    }
  });
}

}  // namespace

TEST_CASE("a rank holds 1/n of parameters, gradients and state, and at most two whole groups") {
  check_memory(chain(8, 96), 96 * 96, 8, 96, {}, 2, 2);
  check_memory(chain(8, 96), 96 * 96, 8, 96, {.prefetch = false}, 2, 2);
}

TEST_CASE(
    "of groups of several parameters: two groups' parameters, one's gradients, one more of those") {
  const nn::Mlp layer{nn::linear<double>(96, 128, nn::None{}), nn::Relu{},
                      nn::linear<double>(128, 96, nn::None{})};
  const Chain layers{std::vector(std::size_t(6), layer)};
  check_memory(layers, 2 * 96 * 128, 6, 96, {}, 2, 3.5);
  check_memory(layers, 2 * 96 * 128, 6, 96, {.prefetch = false}, 2, 2.5);
}

TEST_SUITE_END();
