// Layers: PyTorch's values and gradients, on one device and under all placements.
#include <cstddef>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>

#include "errors.hpp"
#include "models.hpp"
#include "ranks.hpp"
#include "torch_checks.hpp"
#include "torch_values.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

Tensor<double, 2> input_of_layers() {
  Tensor<double, 2> x({6, 4});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = torch_values::layer_input[std::size_t(i)];
  return x;
}

template <class M>
void check_layer(const M& lazy, const Expected& expected) {
  RandomState state{0, 0};
  const auto m = nn::make(lazy, state);
  set_parameters(m, expected.parameters);
  const auto x = input_of_layers();
  check_against(expected, m, x);
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto rows = distribute_tensor(x, mesh, Shard<0>{});
    const auto columns = distribute_tensor(x, mesh, Shard<1>{});
    const auto replicated = nn::place(m, mesh);
    const auto sharded = nn::place(m, mesh, Shard<0>{});
    check_against(expected, replicated, rows);
    check_against(expected, replicated, columns);
    check_against(expected, sharded, rows);
    check_against(expected, sharded, distribute_tensor(x, mesh, Replicate{}));
  });
  on_ranks({4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto rows = distribute_tensor(x, mesh, Shard<0>{}, Replicate{});
    check_against(expected, nn::place(m, mesh, Replicate{}, Shard<0>{}), rows);
    check_against(expected, nn::place(m, mesh), distribute_tensor(x, mesh, Shard<0>{}, Shard<1>{}));
  });
}

}  // namespace

TEST_CASE("linear") {
  check_layer(nn::linear<double>(4, 3),
              {torch_values::linear_parameters, torch_values::linear_result,
               torch_values::linear_gradients, torch_values::linear_input_gradient});
}

TEST_CASE("layers in a row") {
  check_layer(nn::sequential(nn::linear<double>(4, 5), nn::Tanh{}, nn::linear<double>(5, 3)),
              {torch_values::mlp_parameters, torch_values::mlp_result, torch_values::mlp_gradients,
               torch_values::mlp_input_gradient});
}

TEST_CASE("layer_norm") {
  check_layer(nn::layer_norm<double>(4),
              {torch_values::layer_norm_parameters, torch_values::layer_norm_result,
               torch_values::layer_norm_gradients, torch_values::layer_norm_input_gradient});
}

TEST_CASE("rms_norm") {
  check_layer(nn::rms_norm<double>(4),
              {torch_values::rms_norm_parameters, torch_values::rms_norm_result,
               torch_values::rms_norm_gradients, torch_values::rms_norm_input_gradient});
}

TEST_CASE("columns, then rows: one sum over ranks forward, one for the input backward") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto lazy = nn::mlp<double>(4, 6, 3);
    const auto cut = nn::Mlp{nn::place(lazy.up, mesh, Replicate{}, Shard<0>{}), nn::Relu{},
                             nn::Linear{nn::place(lazy.down.weight, mesh, Replicate{}, Shard<1>{}),
                                        nn::place(lazy.down.bias, mesh)}};
    const auto m = requires_grad(cut);
    const auto x =
        requires_grad(distribute_tensor(input_of_layers(), mesh, Shard<0>{}, Replicate{}));
    CommTrace forward(world);
    const auto y = m(x).redistribute(Shard<0>{}, Replicate{});
    CHECK(forward.count(CollectiveKind::all_reduce, "tp") == 1);
    CHECK(forward.events().size() == 1);
    const auto loss = sum(y);
    CommTrace back(world);
    backward(loss);
    CHECK(back.count(CollectiveKind::all_reduce, "tp") == 1);  // gradient of x
    CHECK(back.count(CollectiveKind::all_reduce, "dp") == 4);  // gradients of the parameters
  });
}
