// Gradients of distributed tensors: values as on one device, placements of the leaves, and
// communication.
#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/elementwise/in_place.hpp>

#include "errors.hpp"
#include "network.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// A training run: the losses of five steps of gradient descent.
template <class X, class W1, class B1, class W2, class C>
std::vector<double> train(const X& x, const W1& first, const B1& bias, const W2& second,
                          const C& classes) {
  const auto w1 = requires_grad(first);
  const auto b1 = requires_grad(bias);
  const auto w2 = requires_grad(second);
  std::vector<double> losses;
  const auto step = [](const auto& w) {
    map_([](double p, double g) { return p - 0.5 * g; }, w.value(), grad(w));
    zero_grad(w);
  };
  for (int i = 0; i < 5; ++i) {
    const auto loss = Network{}(x, w1, b1, w2, classes);
    backward(loss);
    if constexpr (is_dtensor<X>) losses.push_back(loss.value().full_tensor()());
    else losses.push_back(loss.value()());
    step(w1);
    step(b1);
    step(w2);
  }
  return losses;
}

void check_losses(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

template <class X>
auto whole(const X& x) {
  return x.full_tensor();
}

}  // namespace

TEST_CASE("a network trains to the same losses on any mesh, shards uneven or empty") {
  on_ranks({1, 2, 3, 4, 5, 6, 7}, [](World& world) {
    const Example e;
    Example copy;
    const auto expected = train(copy.x, copy.w1, copy.b1, copy.w2, copy.classes);
    CHECK(expected.back() < expected.front());
    const int half = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / half, half});
    const auto rows = [&](const auto& t) {
      return distribute_tensor(t.clone(), mesh, Shard<0>{}, Replicate{});
    };
    const auto classes = rows(e.classes);
    {  // data parallel and tensor parallel
      check_losses(train(rows(e.x), distribute_tensor(e.w1.clone(), mesh, Replicate{}, Shard<1>{}),
                         distribute_tensor(e.b1.clone(), mesh, Replicate{}, Shard<0>{}),
                         distribute_tensor(e.w2.clone(), mesh, Replicate{}, Shard<0>{}), classes),
                   expected);
    }
    {  // classes sharded, weights sharded over both axes
      check_losses(train(rows(e.x), distribute_tensor(e.w1.clone(), mesh, Shard<0>{}, Shard<0>{}),
                         distribute_tensor(e.b1.clone(), mesh, Shard<0>{}, Replicate{}),
                         distribute_tensor(e.w2.clone(), mesh, Replicate{}, Shard<1>{}), classes),
                   expected);
    }
  });
}

TEST_CASE("forward one all-reduce over tp, backward one over tp and one per weight over dp") {
  on_ranks({4}, [](World& world) {
    const Example e(8, 6, 8, 5);
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto x = requires_grad(distribute_tensor(e.x, mesh, Shard<0>{}, Replicate{}));
    const auto w1 = requires_grad(distribute_tensor(e.w1, mesh, Replicate{}, Shard<1>{}));
    const auto b1 = requires_grad(distribute_tensor(e.b1, mesh, Replicate{}, Shard<0>{}));
    const auto w2 = requires_grad(distribute_tensor(e.w2, mesh, Replicate{}, Shard<0>{}));
    const auto classes = distribute_tensor(e.classes, mesh, Shard<0>{}, Replicate{});
    CommTrace trace(world);
    const auto loss = Network{}(x, w1, b1, w2, classes);
    CHECK(trace.events().size() == 1);
    CHECK(trace.count(CollectiveKind::all_reduce, "tp") == 1);
    trace.clear();
    backward(loss);
    CHECK(trace.events().size() == 4);
    CHECK(trace.count(CollectiveKind::all_reduce, "tp") == 1);
    CHECK(trace.count(CollectiveKind::all_reduce, "dp") == 3);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(grad(w1))>,
                                 std::remove_cvref_t<decltype(w1.value())>>);
    check_close(whole(grad(w1)), e.slopes(e.w1.data(), e.w1.size()));
    check_close(whole(grad(b1)), e.slopes(e.b1.data(), e.b1.size()));
    check_close(whole(grad(w2)), e.slopes(e.w2.data(), e.w2.size()));
    check_close(whole(grad(x)), e.slopes(e.x.data(), e.x.size()));
  });
}

TEST_CASE("log_softmax over a sharded dimension costs two all-reduces and no gather") {
  on_ranks({2, 3}, [](World& world) {
    const auto a = noise<2>({4, 7}, 1);
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Shard<1>{}));
    CommTrace trace(world);
    const auto y = log_softmax(x, dim<1>{});
    CHECK(trace.events().size() == 2);
    CHECK(trace.count(CollectiveKind::all_reduce) == 2);
    static_assert(std::is_same_v<decltype(y.value().placements()), Placements<Shard<1>>>);
    const auto weights = distribute_tensor(noise<2>({4, 7}, 2), mesh, Shard<1>{});
    trace.clear();
    backward(sum(y * weights));
    CHECK(trace.count(CollectiveKind::all_gather) == 0);
    // dL/dx = w - softmax(x) sum(w), by plain loops
    const auto w = noise<2>({4, 7}, 2);
    std::vector<double> expected;
    for (index_t i = 0; i < 4; ++i) {
      double scale = 0, total = 0;
      for (index_t j = 0; j < 7; ++j) scale += std::exp(a(i, j)), total += w(i, j);
      for (index_t j = 0; j < 7; ++j)
        expected.push_back(w(i, j) - std::exp(a(i, j)) / scale * total);
    }
    check_close(whole(grad(x)), expected);
  });
}

TEST_CASE("partial contributions to one gradient are reduced together") {
  on_ranks({2, 3}, [](World& world) {
    const auto a = noise<2>({6, 4}, 1), b = noise<2>({4, 5}, 2), c = noise<2>({4, 3}, 3);
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Replicate{}));
    const auto u = distribute_tensor(b, mesh, Shard<1>{}),
               v = distribute_tensor(c, mesh, Shard<1>{});
    const auto loss = sum(matmul(x, u)) + sum(matmul(x, v));
    CommTrace trace(world);
    backward(loss);
    CHECK(trace.count(CollectiveKind::all_reduce) == 1);
    std::vector<double> expected;
    for (index_t i = 0; i < 6; ++i)
      for (index_t k = 0; k < 4; ++k) {
        double total = 0;
        for (index_t j = 0; j < 5; ++j) total += b(k, j);
        for (index_t j = 0; j < 3; ++j) total += c(k, j);
        expected.push_back(total);
      }
    check_close(whole(grad(x)), expected);
  });
}

TEST_CASE("a dimension of extent 1 that repeats along a sharded one receives the sum over ranks") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto a = noise<2>({1, 4}, 1), b = noise<2>({5, 4}, 2);
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Replicate{}));
    backward(sum(x * distribute_tensor(b, mesh, Shard<0>{})));
    std::vector<double> expected(4);
    for (index_t i = 0; i < 5; ++i)
      for (index_t j = 0; j < 4; ++j) expected[std::size_t(j)] += b(i, j);
    check_close(whole(grad(x)), expected);
  });
}

TEST_CASE("redistribution is differentiable: the gradient returns to the placements it came from") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto a = noise<2>({5, 3}, 1), b = noise<2>({5, 3}, 2);
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Shard<0>{}));
    const auto w = distribute_tensor(b, mesh, Replicate{});
    backward(sum(x.redistribute(Replicate{}) * w) + sum(x.redistribute(Shard<1>{}) * w));
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(grad(x))>,
                                 std::remove_cvref_t<decltype(x.value())>>);
    std::vector<double> expected;
    for (index_t i = 0; i < 15; ++i) expected.push_back(2 * b.data()[i]);
    check_close(whole(grad(x)), expected);
  });
}

TEST_CASE("gradients of gradients are the same on a mesh") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto a = noise<2>({4, 5}, 1), b = noise<2>({5, 3}, 2);
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto of = [](const auto& x, const auto& w) {
      const auto outer = requires_grad(w);
      const auto inner = requires_grad(outer);
      backward(sum(square(tanh(matmul(x, inner)))));
      backward(sum(square(grad(inner))));
      return grad(outer);
    };
    const auto expected = values_of(of(a, b));
    check_close(
        whole(of(distribute_tensor(a, mesh, Shard<0>{}), distribute_tensor(b, mesh, Replicate{}))),
        expected, 1e-12);
    check_close(
        whole(of(distribute_tensor(a, mesh, Replicate{}), distribute_tensor(b, mesh, Shard<1>{}))),
        expected, 1e-12);
  });
}

TEST_CASE("the sum over ranks may be left to a receiver, which gets each leaf once per sweep") {
  struct Receiver : tape::GradientReceiver {
    std::string seen;
    AxisMask axes() const noexcept override { return 1; }
    void ready(int key, const Layout& layout, const View& gradient) override {
      seen += std::to_string(key) + to_string(layout) + to_string(gradient.extents);
    }
  };
  on_ranks({4}, [](World& world) {
    const Example e(8, 6, 8, 5);
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto x = distribute_tensor(e.x, mesh, Shard<0>{}, Replicate{});
    const auto w1 = requires_grad(distribute_tensor(e.w1, mesh, Replicate{}, Shard<1>{}));
    const auto b1 = distribute_tensor(e.b1, mesh, Replicate{}, Shard<0>{});
    const auto w2 = distribute_tensor(e.w2, mesh, Replicate{}, Shard<0>{});
    const auto classes = distribute_tensor(e.classes, mesh, Shard<0>{}, Replicate{});
    Receiver receiver;
    auto& leaf = tape::leaf_of(w1, "test");
    leaf.receiver = &receiver;
    leaf.key = 7;
    CommTrace trace(world);
    const auto loss = Network{}(x, w1, b1, w2, classes);
    trace.clear();
    backward(loss);
    CHECK(trace.events().empty());
    CHECK(receiver.seen == "7(Partial(sum), Shard(1))[6, 4]");
    leaf.receiver = nullptr;
  });
}

TEST_CASE("reductions of a number pass its gradient on") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x =
        requires_grad(distribute_tensor(Tensor<double, 1>({3}, {1, 2, 3}), mesh, Shard<0>{}));
    const auto y = sum(x * x);
    backward(sum(y) + mean(y) + max(y));
    CHECK(to_string(grad(x).full_tensor()) == to_string(Tensor<double, 1>({3}, {6, 12, 18})));
  });
}
