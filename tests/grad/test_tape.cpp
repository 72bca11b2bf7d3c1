// The order in which gradients become complete, actions at the end of backward, the state after a
// failure, and the length of tapes.
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "errors.hpp"
#include "network.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_SUITE_BEGIN("threads only");

TEST_CASE("hooks of leaves fire as gradients become complete, the last layer first") {
  const Example e;
  const auto w1 = requires_grad(e.w1);
  const auto b1 = requires_grad(e.b1);
  const auto w2 = requires_grad(e.w2);
  std::string order;
  on_gradient(w1, [&](const Tensor<double, 2>&) { order += "w1 "; });
  on_gradient(w2, [&](const Tensor<double, 2>& g) {
    order += "w2 ";
    CHECK(!has_grad(b1));  // not complete yet
    CHECK(g.shape() == e.w2.shape());
    at_backward_end([&](bool complete) { order += complete ? "end" : "failed"; });
  });
  on_gradient(b1, [&](const Tensor<double, 1>&) { order += "b1 "; });
  backward(Network{}(e.x, w1, b1, w2, e.classes));
  CHECK((order == "w2 b1 w1 end" || order == "w2 w1 b1 end"));
  CHECK(contains(error_of([] { at_backward_end([](bool) {}); }),
                 "at_backward_end: no backward is in progress"));
}

TEST_CASE("a failure in backward leaves no gradients behind that the next one would add to") {
  const auto a = noise<1>({4}, 1);
  const auto x = requires_grad(a);
  const auto y = requires_grad(a);
  bool fails = true;
  std::string end;
  on_gradient(y, [&](const Tensor<double, 1>&) {
    at_backward_end([&](bool complete) { end += complete ? "+" : "-"; });
    if (fails) throw std::runtime_error("planted");
  });
  const auto loss = [&] { return sum(x * y * x); };
  CHECK(error_of([&] { backward(loss()); }) == "planted");
  fails = false;
  zero_grad(x);
  zero_grad(y);
  backward(loss());
  CHECK(end == "-+");
  std::vector<double> dx, dy;
  for (index_t i = 0; i < 4; ++i) {
    dx.push_back(2 * a(i) * a(i));
    dy.push_back(a(i) * a(i));
  }
  check_close(grad(x), dx);
  check_close(grad(y), dy);
}

TEST_CASE("a backward within a backward is refused") {
  const auto x = requires_grad(noise<1>({2}, 1));
  std::string said;
  on_gradient(x, [&](const Tensor<double, 1>&) { said = error_of([&] { backward(sum(x)); }); });
  backward(sum(x * x));
  CHECK(contains(said, "backward: called while another backward is in progress"));
}

TEST_CASE("a tape of a hundred thousand operations is swept and dropped without recursion") {
  const auto x = requires_grad(Tensor<double, 1>({1}, {1.0}));
  const auto chain = [&] {
    auto y = x + 0.0;
    for (int i = 0; i < 100000; ++i) y = y + 0.0;
    return y;
  };
  backward(sum(chain()));
  check_close(grad(x), {1.0});
  static_cast<void>(chain());  // dropped without a backward pass
}

TEST_CASE("records keep no elements that no gradient reads") {
  const auto a = noise<1>({1000}, 1);
  const auto x = requires_grad(a);
  const auto y = exp(x);
  const auto held = y.value().storage().use_count();
  const auto z = y + 1.0;  // its gradient reads no saved values
  CHECK(y.value().storage().use_count() == held);
  const auto w = y * z;  // its gradient reads both
  CHECK(y.value().storage().use_count() == held + 1);
  backward(sum(w));
  CHECK(has_grad(x));
}

namespace {

/// A product that can compute both gradients at once.
struct Together : Elementwise {
  static constexpr const char* name = "together";
  static inline int calls = 0;  ///< number of calls of `gradients`

  template <class T>
  T operator()(const T& a, const T& b) const {
    return a * b;
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto& b) {
    return mul(g, b);
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto&) {
    return mul(g, a);
  }
  static auto gradients(const auto& g, const auto&, const auto& a, const auto& b) {
    ++calls;
    return std::tuple{mul(g, b), mul(g, a)};
  }
};

}  // namespace

TEST_CASE("gradients of all operands are computed together where all are wanted, else one by one") {
  const auto a = noise<2>({3, 4}, 1);
  const auto b = noise<2>({3, 1}, 2);
  std::vector<double> da(12), db(3);
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j) {
      da[std::size_t(4 * i + j)] = b(i, 0);
      db[std::size_t(i)] += a(i, j);
    }
  Together::calls = 0;
  const auto x = requires_grad(a), y = requires_grad(b);
  backward(sum(call_op(Together{}, x, y)));
  CHECK(Together::calls == 1);
  check_close(grad(x), da);
  check_close(grad(y), db);

  zero_grad(x);
  backward(sum(call_op(Together{}, x, b)));
  backward(sum(call_op(Together{}, x, Tracked<Tensor<double, 2>>(b))));  // a constant
  CHECK(Together::calls == 1);
  for (double& slope : da) slope *= 2;
  check_close(grad(x), da);

  const auto outer = requires_grad(a);
  const auto inner = requires_grad(outer), factor = requires_grad(requires_grad(b));
  backward(sum(call_op(Together{}, inner, call_op(Together{}, inner, factor))));  // b x^2
  CHECK(Together::calls == 1);
  backward(sum(grad(inner)));
  CHECK(Together::calls > 1);
  check_close(grad(outer), da);
}

TEST_SUITE_END();
