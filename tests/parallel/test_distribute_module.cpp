// Distributing modules over a mesh by a function of their paths.
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/parallel.hpp>

#include "ranks.hpp"
#include "small_gpt.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

TEST_CASE("modules place parameters by path; other parameters and the numbers stay") {
  RandomState state{3, 0};
  const auto one = nn::make(gpt::small_gpt(2), state);
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    manual_seed(world, 3);
    const auto m =
        distribute_module(gpt::small_gpt(2), mesh, [](auto path, const auto& part, const auto& on) {
          if constexpr (path.fits("blocks.*.mlp.up"_path)) return nn::place(part, on, Shard<0>{});
          else if constexpr (path.fits("tokens"_path)) return nn::place(part, on, Shard<1>{});
          else return part;
        });
    static_assert(
        std::is_same_v<decltype(m.blocks[0].mlp.up.weight.placements()), Placements<Shard<0>>>);
    static_assert(std::is_same_v<decltype(m.tokens.weight.placements()), Placements<Shard<1>>>);
    static_assert(std::is_same_v<decltype(m.head.weight.placements()), Placements<Replicate>>);
    std::vector<std::vector<double>> expected;
    nn::parameters(one, [&](const auto& p) { expected.push_back(whole_elements(p)); });
    std::size_t k = 0;
    nn::parameters(m, [&](const auto& p) { CHECK(whole_elements(p) == expected[k++]); });
  });
}

TEST_CASE("functions before and after a distributed module; without any, all is Replicate") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh =
        init_device_mesh<dp, tp>(world, {world.size() > 2 ? 2 : 1, world.size() > 1 ? 2 : 1});
    Tensor<double, 2> x({5, 6});
    for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i % 7);
    const auto in = [](const auto& on, const auto& rows) {
      return distribute_tensor(rows, on, Shard<0>{}, Replicate{});
    };
    const auto out = [](const auto&, const auto& y) { return y.full_tensor(); };
    RandomState state{3, 0};
    const auto one = nn::make(nn::linear<double>(6, 4), state);
    manual_seed(world, 3);
    const auto m = distribute_module(nn::linear<double>(6, 4), mesh, nn::None{}, in, out);
    static_assert(
        std::is_same_v<decltype(m.weight.placements()), Placements<Replicate, Replicate>>);
    CHECK(largest_difference(whole_elements(m(x)), whole_elements(one(x))) < 1e-14);
    const auto plain = distribute_module(one, mesh);
    CHECK(whole_elements(plain.weight) == whole_elements(one.weight));
  });
}
