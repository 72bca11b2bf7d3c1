// Programs that are constants: the compiler knows their types.
#include <array>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/spmd/call_program.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

struct Classes {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto y = resolve(matmul(x, w));
    return std::tuple(y, argmax(y, dim<1>{}));
  }
};

constexpr auto classes_graph = spmd::frozen([] {
  return spmd::trace(Classes{}, spmd::arg<float>("x", {7, 6}), spmd::arg<float>("w", {6, 5}));
});
constexpr std::array classes_schemas{spmd::schema(Shard<1>{}), spmd::schema(Shard<0>{})};
constexpr auto classes_program =
    spmd::frozen([] { return spmd::expand(classes_graph, classes_schemas); });

}  // namespace

TEST_CASE("a constant program is called like a function") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto x = irregular<float, Placements<Shard<1>>>(mesh, std::array<index_t, 2>{7, 6}, 1);
    const auto w = irregular<float, Placements<Shard<0>>>(mesh, std::array<index_t, 2>{6, 5}, 2);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto [y, classes] = spmd::run<classes_program>(mesh, x, w);
      const auto [eager_y, eager_classes] = Classes{}(x, w);
      static_assert(std::is_same_v<decltype(y), decltype(eager_y)>);
      static_assert(std::is_same_v<decltype(classes), decltype(eager_classes)>);
      CHECK(same_bits(y.to_local(), eager_y.to_local()));
      CHECK(same_bits(classes.to_local(), eager_classes.to_local()));
    }
  });
}

TEST_CASE("a program runs on tensors without types") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto x = irregular<float, Placements<Shard<1>>>(mesh, std::array<index_t, 2>{7, 6}, 1);
    const auto w = irregular<float, Placements<Shard<0>>>(mesh, std::array<index_t, 2>{6, 5}, 2);
    spmd::Runner runner(classes_program, mesh);
    const std::array inputs{spmd::erased(x), spmd::erased(w)};
    const std::vector<spmd::ErasedTensor> outputs = runner(inputs);
    REQUIRE(outputs.size() == 2);
    const auto [y, classes] = Classes{}(x, w);
    CHECK(outputs[0].layout == y.layout);
    CHECK(outputs[1].shape == Shape(classes.shape()));
    CHECK(outputs[1].local.dtype == DType::int64);
    using Local = Tensor<float, 2, TestDevice>;
    CHECK(same_bits(cleave::detail::tensor_of<Local>({outputs[0].storage, outputs[0].local}),
                    y.to_local()));
  });
}
