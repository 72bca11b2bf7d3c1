// Dropout: which elements it drops, by a naive loop over the global array; its draws and saved
// values.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/random/dropout.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

constexpr index_t height = 5, width = 7;

Tensor<double, 2> dropout_numbers() {
  const Tensor<double, 2> x({height, width});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i % 11) - 5.25;
  return x;
}

/// The result of dropout, from the random bits of each element.
std::vector<double> kept_of(const Tensor<double, 2>& x, double p, const RandomState& state) {
  std::vector<double> y;
  for (index_t i = 0; i < x.size(); ++i) {
    const auto bits = Philox::bits({std::uint32_t(i), 0, std::uint32_t(state.offset), 0},
                                   {std::uint32_t(state.seed), 0});
    const double u = std::ldexp(double(bits[0]), -32) + std::ldexp(double(bits[1] >> 11), -53);
    y.push_back(u < p ? 0 : x.data()[i] * (1 / (1 - p)));
  }
  return y;
}

std::vector<double> values(const Tensor<double, 2>& x) {
  std::vector<double> result;
  for (index_t i = 0; i < x.shape()[0]; ++i)
    for (index_t j = 0; j < x.shape()[1]; ++j) result.push_back(x(i, j));
  return result;
}

template <class Mesh, class... P>
void check_dropout(World& world, const Mesh& mesh, P... p) {
  const auto local = dropout_numbers();
  const auto x = requires_grad(distribute_tensor(local, mesh, p...));
  set_random_state(world, {6, 2});
  const auto y = dropout(x, 0.3);
  CHECK(values(y.value().full_tensor()) == kept_of(local, 0.3, {6, 2}));
  CHECK(random_state(world) == RandomState{6, 3});
  const auto z = dropout(x, 0.3);
  CHECK(values(z.value().full_tensor()) == kept_of(local, 0.3, {6, 3}));
  const auto ones = Tensor<double, 2>({height, width});
  ones.fill_(1);
  backward(sum(y));
  CHECK(values(grad(x).full_tensor()) == kept_of(ones, 0.3, {6, 2}));
  CHECK(random_state(world) == RandomState{6, 4});
}

}  // namespace

TEST_CASE("dropout and its gradient drop the same elements on any mesh, others in each call") {
  on_ranks({1, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    check_dropout(world, mesh, Shard<0>{});
    check_dropout(world, mesh, Shard<1>{});
    check_dropout(world, mesh, Replicate{});
  });
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    check_dropout(world, mesh, Shard<0>{}, Shard<1>{});
    check_dropout(world, mesh, Shard<1>{}, Shard<1>{});
    check_dropout(world, mesh, Replicate{}, Shard<0>{});
  });
  on_ranks({8}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp, pp>(world, {2, 2, 2});
    check_dropout(world, mesh, Shard<0>{}, Shard<0>{}, Shard<1>{});
  });
}

TEST_CASE("dropout of a partial sum is a partial sum, without communication") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    manual_seed(world, 1);
    const auto x = distribute_tensor(dropout_numbers(), mesh, Shard<0>{});
    const auto columns_sum = sum(x, dim<0>{});
    world.communicator().state().check = CheckLevel::local;
    CommTrace trace(world);
    const auto y = dropout(columns_sum, 0.5);
    CHECK(trace.to_string().find("all_") == std::string::npos);
    static_assert(decltype(y)::layout.has_partial());
    RandomState state{1, 0};
    const auto sums = columns_sum.full_tensor(), whole = y.full_tensor();
    const auto alone = dropout(sums, 0.5, state);
    for (index_t i = 0; i < width; ++i) CHECK(whole(i) == doctest::Approx(alone(i)));
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("dropout of other element types, of views and of nothing") {
  RandomState state{9, 0};
  const Tensor<half, 1> h({1000});
  h.fill_(half(1.0f));
  const auto dropped = dropout(h, 0.5, state);
  index_t kept = 0;
  for (index_t i = 0; i < 1000; ++i) {
    const float value = float(dropped(i));
    CHECK((value == 0 || value == 2));
    kept += value != 0;
  }
  CHECK(std::abs(double(kept) - 500) < 3.3 * std::sqrt(250.0));
  CHECK(dropout(Tensor<std::complex<float>, 2>({0, 3}), 0.5, state).size() == 0);
  const Tensor<float, 1> all({5});
  all.fill_(3);
  const auto none = dropout(all, 1, state), same = dropout(all, 0, state);
  for (index_t i = 0; i < 5; ++i) {
    CHECK(none(i) == 0);
    CHECK(same(i) == 3);
  }
}

TEST_CASE("a probability outside of [0, 1] is an error") {
  RandomState state;
  const Tensor<float, 1> x({3});
  for (const double p : {-0.1, 1.1, std::nan("")})
    CHECK(contains(error_of([&] { dropout(x, p, state); }),
                   "dropout: the probability must be in [0, 1]"));
  CHECK(state == RandomState{});
}

TEST_SUITE_END();
