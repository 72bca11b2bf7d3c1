// Layers for images: PyTorch's values and gradients, on one device and under all placements.
#include <cstddef>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>

#include "models.hpp"
#include "ranks.hpp"
#include "torch_checks.hpp"
#include "torch_images.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

Tensor<double, 4> stored_images() {
  Tensor<double, 4> x({3, 4, 4, 5});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = torch_images::images[std::size_t(i)];
  return x;
}

/// A layer on one device, then with sharded images and replicated parameters; `check` tests more.
template <class M, class F>
void check_layer(const M& lazy, const Expected& expected, const F& check) {
  RandomState state{0, 0};
  const auto m = nn::make(lazy, state);
  set_parameters(m, expected.parameters);
  const auto x = stored_images();
  check_against(expected, m, x);
  on_ranks({1, 2, 4}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    check_against(expected, nn::place(m, mesh), distribute_tensor(x, mesh, Shard<0>{}));
    check(m, x, mesh);
  });
}

}  // namespace

TEST_CASE("group_norm") {
  const Expected expected{torch_images::group_norm_parameters, torch_images::group_norm_result,
                          torch_images::group_norm_gradients,
                          torch_images::group_norm_input_gradient};
  check_layer(nn::group_norm<double>(2, 4, 1e-4), expected,
              [&](const auto& m, const auto& x, const auto& mesh) {
                if (mesh.size() <= 2)  // shards of channels
                  check_against(expected, nn::place(m, mesh, Shard<0>{}),
                                distribute_tensor(x, mesh, Shard<1>{}));
                check_against(expected, nn::place(m, mesh), distribute_tensor(x, mesh, Shard<2>{}));
              });
}

TEST_CASE("grouped convolution") {
  const Expected expected{torch_images::depthwise_parameters, torch_images::depthwise_result,
                          torch_images::depthwise_gradients,
                          torch_images::depthwise_input_gradient};
  check_layer(
      nn::conv2d<double>(4, 8, {2, 3}, {.stride = {1, 2}, .padding = {1, 0}}, ChannelGroups{4}),
      expected, [&](const auto& m, const auto& x, const auto& mesh) {
        check_against(expected, nn::place(m, mesh, Shard<0>{}),
                      distribute_tensor(x, mesh, Shard<1>{}));
      });
}

TEST_CASE("a network of layers of images") {
  const Expected expected{torch_images::network_parameters, torch_images::network_result,
                          torch_images::network_gradients, torch_images::network_input_gradient};
  check_layer(
      nn::sequential(nn::conv2d<double>(4, 6, {3, 3}, {.padding = {1, 1}}),
                     nn::group_norm<double>(2, 6), nn::Relu{}, nn::MaxPool2d{{.size = {2, 2}}},
                     nn::conv2d<double>(6, 2, {1, 2}), nn::AvgPool2d{{.size = {2, 1}}},
                     nn::Flatten{}, nn::linear<double>(2, 3)),
      expected, [](const auto&...) {});
}

TEST_CASE("a layer without a bias; lazy parameters have PyTorch's bounds") {
  const auto lazy = nn::conv1d(3, 8, 4, {.padding = {1}});
  CHECK(lazy.weight.shape() == std::array<index_t, 3>{8, 3, 4});
  CHECK(lazy.bias.initializer.b == doctest::Approx(1 / std::sqrt(12.0)));
  RandomState state{0, 0};
  const nn::Conv1d m{nn::make(lazy.weight, state), nn::None{}, nn::None{}, lazy.how};
  const auto y = m(Tensor<float, 3>({2, 3, 5}));
  CHECK(y.shape() == std::array<index_t, 3>{2, 8, 4});
}
