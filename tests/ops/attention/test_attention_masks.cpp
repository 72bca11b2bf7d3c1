// Attention with masks, and functions of rows with infinities, compared with PyTorch; over several
// blocks, compared with plain loops.
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/attention/attention.hpp>
#include <cleave/ops/losses/class_losses.hpp>
#include <cleave/ops/losses/cross_entropy.hpp>
#include <cleave/ops/reductions/logsumexp.hpp>

#include "../attention_torch.hpp"
#include "device.hpp"
#include "each_placements.hpp"
#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace {

using MaskRow = torch_attention::Row;

template <class T, int Rank>
Tensor<T, Rank> shaped_as(const MaskRow& row, const std::array<index_t, std::size_t(Rank)>& shape) {
  const Tensor<T, Rank> x(shape);
  for (std::size_t i = 0; i < row.size(); ++i) x.data()[i] = T(row[i]);
  return x;
}

/// Whether all elements are close, with NaNs and infinities in the same places.
template <class X>
bool says_the_same(const X& found, const MaskRow& expected) {
  const auto whole = found.full_tensor().to(Host{}).clone();
  bool same = whole.size() == index_t(expected.size());
  for (std::size_t i = 0; same && i < expected.size(); ++i) {
    const double a = whole.data()[i], b = expected[i];
    same = std::isfinite(b) ? std::abs(a - b) <= 1e-12 * (1 + std::abs(b))
           : std::isnan(b)  ? std::isnan(a)
                            : a == b;
  }
  return same;
}

/// Attention with placed operands, and its gradients, compared with PyTorch's.
template <class Mesh, class Queries, class Keys>
class MaskedAttention {
 public:
  explicit MaskedAttention(const Mesh& mesh) : mesh_(mesh) {}

  template <class... M>
  void check(const std::string& name, const M&... mask) const {
    CAPTURE(name);
    const auto& expected = torch_attention::attentions.at(name);
    const auto q = requires_grad(at<3>(torch_attention::q, {2, 4, 3}, Queries{}));
    const auto k = requires_grad(at<3>(torch_attention::k, {2, 6, 3}, Keys{}));
    const auto v = requires_grad(at<3>(torch_attention::v, {2, 6, 5}, Keys{}));
    const auto y = scaled_dot_product_attention(q, k, v, mask...);
    CHECK(says_the_same(y.value(), expected.y));
    backward(sum(mul(y, at<3>(torch_attention::g, {2, 4, 5}, Queries{}))));
    CHECK(says_the_same(grad(q), expected.slopes.at(0)));
    CHECK(says_the_same(grad(k), expected.slopes.at(1)));
    CHECK(says_the_same(grad(v), expected.slopes.at(2)));
  }

  void check_all() const {
    check("plain");
    check("causal", causal);
    const auto place = [&](const auto& x) { return distribute_tensor(x, mesh_, Replicate{}); };
    check("seen", place(shaped_as<bool, 3>(torch_attention::seen, {2, 4, 6})));
    check("padding", place(shaped_as<bool, 3>(torch_attention::padding, {2, 1, 6})));
    const auto added = place(shaped_as<double, 2>(torch_attention::added, {4, 6}));
    check("added", added);
    const auto slope = requires_grad(added);
    check("added", slope);
    CHECK(says_the_same(grad(slope), torch_attention::attentions.at("added").slopes.at(3)));
  }

 private:
  template <int Rank, class P>
  auto at(const MaskRow& row, const std::array<index_t, std::size_t(Rank)>& shape, P p) const {
    return distribute_tensor(shaped_as<double, Rank>(row, shape), mesh_, p);
  }

  Mesh mesh_;
};

template <class Queries, class Keys>
void check_masks(World& world) {
  const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
  MaskedAttention<std::remove_cvref_t<decltype(mesh)>, Queries, Keys>(mesh).check_all();
}

/// A function of rows with infinities, and the gradient of its results weighted by 1, 2, ..
template <class X, class F>
void check_rows(const std::string& name, const X& placed, const F& f) {
  CAPTURE(name);
  const auto& expected = torch_attention::of_rows.at(name);
  const auto x = requires_grad(placed);
  const auto y = f(x);
  CHECK(says_the_same(y.value(), expected.y));
  using Y = std::remove_cvref_t<decltype(y.value().full_tensor())>;
  if constexpr (Y::dims == 0) {
    backward(y);
  } else {
    std::array<index_t, std::size_t(Y::dims)> shape{};
    for (int d = 0; d < Y::dims; ++d) shape[std::size_t(d)] = y.extent(d);
    const Tensor<double, Y::dims> weights(shape);
    for (index_t i = 0; i < weights.size(); ++i)
      weights.data()[i] =
          name == "log_softmax" && !std::isfinite(expected.y[std::size_t(i)]) ? 0 : double(i + 1);
    const auto w = distribute_tensor(weights, y.mesh(), Replicate{});
    backward(sum(mul(y, w)));
  }
  MaskRow slope = expected.slope;
  if (name == "logsumexp")  // in rows without finite numbers, PyTorch has NaN, cleave 0
    for (double& number : slope) number = std::isnan(number) ? 0 : number;
  CHECK(says_the_same(grad(x), slope));
}

}  // namespace

TEST_CASE("attention with masks and its gradients are PyTorch's, wherever arrays lie") {
  on_ranks({1, 2, 3}, [](World& world) {
    check_masks<Replicate, Replicate>(world);
    check_masks<Shard<0>, Shard<0>>(world);
    check_masks<Shard<1>, Replicate>(world);
    check_masks<Replicate, Shard<1>>(world);
  });
}

TEST_CASE("rows with infinities give PyTorch's results, also where they are sharded") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto all = shaped_as<double, 2>(torch_attention::x, {5, 4});
    const auto names = shaped_as<index_t, 1>(torch_attention::classes, {5});
    const Tensor<double, 2> some({4, 4});  // without the row that has no finite number
    const Tensor<index_t, 1> some_names({4});
    for (index_t i = 0; i < 4; ++i) {
      some_names(i) = names(i < 3 ? i : 4);
      for (index_t j = 0; j < 4; ++j) some(i, j) = all(i < 3 ? i : 4, j);
    }
    const auto classes = distribute_tensor(some_names, mesh, Replicate{});
    each_placements<1, Replicate, Shard<0>, Shard<1>>([&](auto p) {
      const auto x = distribute_tensor(all, mesh, p), logits = distribute_tensor(some, mesh, p);
      check_rows("softmax", x, [](const auto& a) { return softmax(a, dim<1>{}); });
      check_rows("log_softmax", x, [](const auto& a) { return log_softmax(a, dim<1>{}); });
      check_rows("logsumexp", x, [](const auto& a) { return logsumexp(a, dim<1>{}); });
      check_rows("cross_entropy", logits, [&](const auto& a) { return cross_entropy(a, classes); });
      check_rows("cross_entropy", logits,
                 [&](const auto& a) { return cross_entropy<Reduction::mean>(a, classes); });
      check_rows("cross_entropy_none", logits,
                 [&](const auto& a) { return cross_entropy<Reduction::none>(a, classes); });
      check_rows("cross_entropy_smooth", logits, [&](const auto& a) {
        return cross_entropy<Reduction::none>(a, classes, {.label_smoothing = 0.1});
      });
    });
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("a mask over several blocks hides keys of any place, of one head or of all") {
  constexpr index_t b = 2, n = 140, m = 300;
  const auto wave = [](index_t i, int seed) { return std::sin(double(i * 37 % 1009) + seed); };
  const Tensor<double, 4> q({b, 2, n, 1});
  const Tensor<double, 3> k({b, m, 1}), v({b, m, 1});
  for (index_t i = 0; i < q.size(); ++i) q.data()[i] = wave(i, 1);
  for (index_t i = 0; i < k.size(); ++i) k.data()[i] = wave(i, 2), v.data()[i] = wave(i, 3);
  const auto is_seen = [](index_t head, index_t i, index_t j) {
    return i % 50 != 7 && (i * 31 + j * 17 + head * 3) % 11 < 4 && (j < 256 || i % 3 == 0);
  };
  const auto check = [&](const auto& mask, index_t heads) {
    const auto y = scaled_dot_product_attention(q, k, v, mask);
    bool close = true;
    for (index_t at = 0; at < y.size(); ++at) {
      const index_t i = at % n, head = at / n, batch = head / 2;
      double total = 0, mean = 0;
      for (index_t j = 0; j < m; ++j) {
        if (!is_seen(heads == 1 ? 0 : head % heads, i, j)) continue;
        const double weight = std::exp(q.data()[at] * k.data()[batch * m + j]);
        total += weight;
        mean += weight * v.data()[batch * m + j];
      }
      const double expected = total > 0 ? mean / total : 0;
      close = close && std::abs(y.data()[at] - expected) <= 1e-12;
    }
    CHECK(close);
  };
  const Tensor<bool, 2> common({n, m});
  const Tensor<bool, 3> by_group({2, n, m});
  const Tensor<double, 4> added({1, 2, n, m});
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < m; ++j) {
      common(i, j) = is_seen(0, i, j);
      for (index_t h = 0; h < 2; ++h) {
        by_group(h, i, j) = is_seen(h, i, j);
        added(0, h, i, j) = is_seen(h, i, j) ? 0 : -std::numeric_limits<double>::infinity();
      }
    }
  check(common, 1);
  check(by_group, 2);
  check(added, 2);
}

TEST_CASE("masks that do not fit are refused") {
  const Tensor<double, 2> q({4, 3}), k({6, 3}), v({6, 5});
  const auto says = [&](const std::string& part, const auto& f) {
    CHECK(contains(error_of(f), part));
  };
  says("the mask does not broadcast",
       [&] { scaled_dot_product_attention(q, k, v, Tensor<bool, 2>({4, 5})); });
  says("the mask does not broadcast", [&] {
    scaled_dot_product_attention(Tensor<double, 2>({1, 3}), k, v, Tensor<bool, 2>({4, 6}));
  });
  says("q, k and v must be",
       [&] { scaled_dot_product_attention(Tensor<double, 2>({4, 1}), k, v); });
  says("q, k and v must be",
       [&] { scaled_dot_product_attention(q, k, Tensor<double, 2>({1, 5})); });
}

TEST_SUITE_END();
