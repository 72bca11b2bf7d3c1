// The order in which gradients become complete, what runs at the end, what a failure leaves behind,
// and how long a tape may be.
#include <stdexcept>
#include <string>
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
    CHECK(!has_grad(b1));  // still on its way
    CHECK(g.shape() == e.w2.shape());
    at_backward_end([&](bool complete) { order += complete ? "end" : "failed"; });
  });
  on_gradient(b1, [&](const Tensor<double, 1>&) { order += "b1 "; });
  backward(Network{}(e.x, w1, b1, w2, e.classes));
  CHECK((order == "w2 b1 w1 end" || order == "w2 w1 b1 end"));
  CHECK(contains(error_of([] { at_backward_end([](bool) {}); }),
                 "at_backward_end: no backward is under way"));
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
  CHECK(contains(said, "backward: it was called while another backward is under way"));
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
  static_cast<void>(chain());  // dropped without a sweep
}

TEST_CASE("records keep no elements that no gradient reads") {
  const auto a = noise<1>({1000}, 1);
  const auto x = requires_grad(a);
  const auto y = exp(x);
  const auto held = y.value().storage().use_count();
  const auto z = y + 1.0;  // its gradient reads nothing
  CHECK(y.value().storage().use_count() == held);
  const auto w = y * z;    // its gradient reads both
  CHECK(y.value().storage().use_count() == held + 1);
  backward(sum(w));
  CHECK(has_grad(x));
}

TEST_SUITE_END();
