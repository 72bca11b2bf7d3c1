// Convolutions: PyTorch's values and gradients, communication, refused arguments.
#include <cstddef>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>

#include "../convolutions_torch.hpp"
#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

template <int Rank>
Tensor<double, Rank> stored(const std::array<index_t, std::size_t(Rank)>& extents,
                            const std::vector<double>& values) {
  const Tensor<double, Rank> x(extents);
  CHECK(x.size() == index_t(values.size()));
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = values[std::size_t(i)];
  return x;
}

template <class X>
double distance(const X& found, const std::vector<double>& expected) {
  const auto x = found.clone();  // contiguous
  CHECK(x.size() == index_t(expected.size()));
  double most = 0;
  for (index_t i = 0; i < x.size(); ++i) {
    const double difference = x.data()[i] - expected[std::size_t(i)];
    most = most < difference ? difference : most < -difference ? -difference : most;
  }
  return most;
}

/// The result, and the gradients of sum(y * y) in x and the parameters.
struct Reference {
  const std::vector<double>&result, &of_x, &of_weight, &of_bias;
};

template <class X, class W, class B, class F>
void check(const Reference& expected, const X& image, const W& weight, const B& bias, const F& f) {
  const auto x = requires_grad(image);
  const auto w = requires_grad(weight);
  const auto b = requires_grad(bias);
  const auto y = f(x, w, b);
  CHECK(distance(y.value(), expected.result) < 1e-12);
  backward(sum(y * y));
  CHECK(distance(grad(x), expected.of_x) < 1e-11);
  CHECK(distance(grad(w), expected.of_weight) < 1e-11);
  CHECK(distance(grad(b), expected.of_bias) < 1e-11);
}

using namespace convolutions_torch;

Tensor<double, 4> images() { return stored<4>({2, 4, 5, 6}, image_values); }

}  // namespace

TEST_CASE("conv2d with strides, padding and dilation is PyTorch's") {
  check({conv2d_result, conv2d_x, conv2d_weight, conv2d_bias}, images(),
        stored<4>({3, 4, 3, 2}, filter_values), stored<1>({3}, bias_values),
        [](const auto& x, const auto& w, const auto& b) {
          return conv2d(x, w, b, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 3}});
        });
}

TEST_CASE("conv2d of grouped channels is PyTorch's") {
  check({grouped_result, grouped_x, grouped_weight, grouped_bias}, images(),
        stored<4>({6, 2, 2, 3}, filter_values), stored<1>({6}, bias_of_six),
        [](const auto& x, const auto& w, const auto& b) {
          return conv2d(x, w, b, ChannelGroups{2}, {.padding = {0, 1}});
        });
}

TEST_CASE("conv1d is PyTorch's") {
  check({conv1d_result, conv1d_x, conv1d_weight, conv1d_bias}, stored<3>({2, 4, 30}, image_values),
        stored<3>({3, 4, 6}, filter_values), stored<1>({3}, bias_values),
        [](const auto& x, const auto& w, const auto& b) {
          return conv1d(x, w, b, {.stride = {3}, .padding = {2}, .dilation = {2}});
        });
}

TEST_CASE("pooling is PyTorch's, also where several elements are the largest") {
  const auto check_pool = [](const Tensor<double, 4>& image, const std::vector<double>& result,
                             const std::vector<double>& gradient, const auto& pool) {
    const auto x = requires_grad(image);
    const auto y = pool(x, Pooling<2>{.size = {3, 2}, .stride = {1, 2}, .padding = {1, 1}});
    CHECK(distance(y.value(), result) < 1e-14);
    backward(sum(y * y));
    CHECK(distance(grad(x), gradient) < 1e-13);
  };
  check_pool(stored<4>({2, 4, 5, 6}, halves), max_pool_result, max_pool_x,
             [](const auto& x, const auto& how) { return max_pool2d(x, how); });
  check_pool(images(), avg_pool_result, avg_pool_x,
             [](const auto& x, const auto& how) { return avg_pool2d(x, how); });
}

TEST_CASE("images and filters are sharded without communication, channels leave a sum") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto x = ones<double>({4, 6, 5, 5}, mesh, Shard<0>{}, Replicate{});
    const auto filters = ones<double>({8, 6, 3, 3}, mesh, Replicate{}, Shard<0>{});
    const auto bias = ones<double>({8}, mesh, Replicate{}, Shard<0>{});
    const auto by_channel = ones<double>({4, 6, 5, 5}, mesh, Shard<0>{}, Shard<1>{});
    const auto of_channel = ones<double>({8, 6, 3, 3}, mesh, Replicate{}, Shard<1>{});
    const auto whole_bias = ones<double>({8}, mesh, Replicate{}, Replicate{});
    CommTrace trace(world);
    const auto y = conv2d(x, filters, bias, {.padding = {1, 1}});
    static_assert(decltype(y)::layout[0].shards(0) && decltype(y)::layout[1].shards(1));
    const auto z = conv2d(by_channel, of_channel, whole_bias, {.padding = {1, 1}});
    static_assert(decltype(z)::layout[1] == Placement::partial(ReduceOp::sum));
    CHECK(trace.events().empty());
    CHECK(y.full_tensor()(3, 7, 2, 2) == 6 * 9 + 1);
    CHECK(z.full_tensor()(3, 7, 2, 2) == 6 * 9 + 1);  // the bias is added once
    CHECK(z.full_tensor()(0, 0, 0, 0) == 6 * 4 + 1);
  });
}

TEST_CASE("rows that are sharded are made whole where a trace shows it") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2});
    const auto x = ones<double>({1, 2, 6, 5}, mesh, Shard<2>{});
    const auto w = ones<double>({3, 2, 3, 3}, mesh, Replicate{});
    CommTrace trace(world);
    const auto y = conv2d(x, w);
    CHECK(trace.events().size() == 1);
    CHECK(y.full_tensor()(0, 2, 3, 2) == 18);
  });
}

TEST_CASE("requested placements are kept where gradients are tracked") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2});
    const auto x = requires_grad(ones<double>({2, 2, 4, 4}, mesh, Shard<0>{}));
    const auto w = requires_grad(ones<double>({3, 2, 3, 3}, mesh, Replicate{}));
    const auto y = conv2d<Placements<Shard<2>>>(x, w);
    static_assert(std::remove_cvref_t<decltype(y.value())>::layout[0].shards(2));
    const auto q = unflatten(flatten(x, dim<2, 3>{}), dim<2>{}, {8, 2});
    const auto z = scaled_dot_product_attention<Placements<Shard<1>>>(q, q, q);
    static_assert(std::remove_cvref_t<decltype(z.value())>::layout[0].shards(1));
    backward(sum(y) + sum(z));
    CHECK(grad(w).full_tensor()(1, 1, 2, 2) == 8);
  });
}

TEST_CASE("groups of channels are sharded as wholes, others are exchanged") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2});
    const auto x = ones<double>({2, 12, 4, 4}, mesh, Shard<1>{});
    const auto w = ones<double>({12, 2, 3, 3}, mesh, Shard<0>{});
    CommTrace trace(world);
    const auto y = conv2d(x, w, ChannelGroups{6});
    static_assert(decltype(y)::layout[0].shards(1));
    CHECK(trace.events().empty());
    CHECK(y.full_tensor()(1, 11, 1, 1) == 18);
    const auto of_four = ones<double>({12, 4, 3, 3}, mesh, Replicate{});
    const auto of_three = conv2d(x, of_four, ChannelGroups{3});  // the second one moves
    static_assert(decltype(of_three)::layout[0].shards(1));
    CHECK(!trace.events().empty());
    CHECK(of_three.full_tensor()(1, 11, 1, 1) == 36);
  });
}

TEST_CASE("windows share elements, which cannot be written to") {
  Tensor<double, 1> x({6});
  for (index_t i = 0; i < 6; ++i) x(i) = double(i);
  const auto y = windows(x, dim<0>{}, {.size = 3});
  CHECK(y.data() == x.data());
  CHECK(y(3, 2) == 5);
  CHECK(contains(error_of([&] { mul_(y, 2.0); }), "the target repeats elements"));
  const auto doubled = mul(y, 2.0);
  CHECK(doubled(3, 1) == 8);
  CHECK(y.clone()(2, 2) == 4);
}

TEST_CASE("operands that do not fit are refused") {
  const Tensor<double, 4> x({1, 3, 4, 4}), w({2, 3, 3, 3});
  const auto says = [](const std::string& part, const auto& f) {
    CHECK(contains(error_of(f), part));
  };
  says("conv2d: x has 3 channels, but the filters have 2",
       [&] { conv2d(x, Tensor<double, 4>({2, 2, 3, 3})); });
  says("conv2d: a window spans 5 elements, dimension 2 has 4 [shapes [1, 3, 4, 4]",
       [&] { conv2d(x, w, {.dilation = {2, 1}}); });
  says("stride 0 and dilation 1; each must be 1 or more",
       [&] { conv2d(x, w, {.stride = {0, 1}}); });
  says("a length is negative: -1", [&] { conv2d(x, w, {.padding = {-1, 0}}); });
  says("3 channels and 2 filters are not divisible by 2 groups",
       [&] { conv2d(x, w, ChannelGroups{2}); });
  says("the number of channel groups must be at least 1, not 0",
       [&] { conv2d(x, w, ChannelGroups{0}); });
  says("max_pool2d: the padding is 2; it must be at least 0, and at most half of a window of 3",
       [&] { max_pool2d(x, {.size = {3, 3}, .padding = {2, 0}}); });
  says("avg_pool2d: a window has size 0", [&] { avg_pool2d(x, {.size = {2, 0}}); });
  says("overlap_add: the windows span 5 elements, the extent is 4",
       [&] { overlap_add(Tensor<double, 2>({3, 3}), dim<0>{}, 4); });
}
