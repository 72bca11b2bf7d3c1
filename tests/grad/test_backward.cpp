// Gradients on one device, compared with finite differences of plain loops.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/in_place.hpp>

#include "errors.hpp"
#include "network.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_SUITE_BEGIN("threads only");

TEST_CASE("the gradients of a network match finite differences") {
  const Example e;
  const auto x = requires_grad(e.x);
  const auto w1 = requires_grad(e.w1);
  const auto b1 = requires_grad(e.b1);
  const auto w2 = requires_grad(e.w2);
  const auto loss = Network{}(x, w1, b1, w2, e.classes);
  CHECK(loss.value().item() == doctest::Approx(e.loss()));
  backward(loss);
  check_close(grad(x), e.slopes(e.x.data(), e.x.size()));
  check_close(grad(w1), e.slopes(e.w1.data(), e.w1.size()));
  check_close(grad(b1), e.slopes(e.b1.data(), e.b1.size()));
  check_close(grad(w2), e.slopes(e.w2.data(), e.w2.size()));
}

TEST_CASE("gradients are added up until they are dropped") {
  const auto a = noise<1>({5}, 7);
  const auto x = requires_grad(a);
  CHECK(!has_grad(x));
  CHECK(contains(error_of([&] { grad(x); }), "grad: no gradient has arrived"));
  backward(sum(x * 3.0));
  backward(sum(x * x));
  std::vector<double> expected;
  for (index_t i = 0; i < 5; ++i) expected.push_back(3 + 2 * a(i));
  check_close(grad(x), expected);
  zero_grad(x);
  CHECK(!has_grad(x));
}

TEST_CASE("a repeated operand receives the sum over its repetitions") {
  const auto row = requires_grad(noise<1>({4}, 1));
  const auto column = requires_grad(noise<2>({3, 1}, 2));
  const auto table = noise<2>({3, 4}, 3);
  backward(sum(table * row * column));
  std::vector<double> rows(4), columns(3);
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j) {
      rows[std::size_t(j)] += table(i, j) * column.value()(i, 0);
      columns[std::size_t(i)] += table(i, j) * row.value()(j);
    }
  check_close(grad(row), rows);
  check_close(grad(column), columns);
}

TEST_CASE("a value other than a number takes its gradient as an argument") {
  const auto a = noise<2>({2, 3}, 5), g = noise<2>({2, 3}, 6);
  const auto x = requires_grad(a);
  backward(exp(x), g);
  std::vector<double> expected;
  for (index_t i = 0; i < 6; ++i) expected.push_back(g.data()[i] * std::exp(a.data()[i]));
  check_close(grad(x), expected);
  CHECK(contains(error_of([&] { backward(exp(x), noise<2>({3, 2}, 1)); }),
                 "backward: the gradient and the value have different extents"));
}

TEST_CASE("a tape is freed during backward, unless it is to be retained") {
  const auto x = requires_grad(noise<1>({3}, 1));
  const auto loss = sum(x * x);
  backward(loss, retain);
  backward(loss);
  std::vector<double> expected;
  for (index_t i = 0; i < 3; ++i) expected.push_back(4 * x.value()(i));
  check_close(grad(x), expected);
  CHECK(contains(error_of([&] { backward(loss); }),
                 "backward: the tape has been freed by an earlier backward"));
}

TEST_CASE("gradients of gradients match finite differences") {
  const auto a = noise<1>({4}, 9);
  const auto outer = requires_grad(a);
  const auto x = requires_grad(outer);
  backward(sum(exp(x) * x * x));  // d/dx = exp(x) (x² + 2 x)
  backward(sum(grad(x)));         // d²/dx² = exp(x) (x² + 4 x + 2)
  std::vector<double> expected;
  for (index_t i = 0; i < 4; ++i) expected.push_back(std::exp(a(i)) * (a(i) * a(i) + 4 * a(i) + 2));
  check_close(grad(outer), expected);
}

TEST_CASE(
    "a generic functor of a map is differentiated by dual numbers, or by its own derivative") {
  const auto a = noise<1>({6}, 11), b = noise<1>({6}, 12);
  const auto x = requires_grad(a);
  const auto y = requires_grad(b);
  backward(sum(map([](auto u, auto v) { return u * u * v + v / (u * u + 1.0); }, x, y)));
  std::vector<double> dx, dy;
  for (index_t i = 0; i < 6; ++i) {
    const double u = a(i), v = b(i), q = u * u + 1;
    dx.push_back(2 * u * v - 2 * u * v / (q * q));
    dy.push_back(u * u + 1 / q);
  }
  check_close(grad(x), dx);
  check_close(grad(y), dy);

  struct Cube {
    double operator()(double u) const { return u * u * u; }
    double derivative(wrt<0>, double u) const { return 3 * u * u; }
  };
  zero_grad(x);
  backward(sum(map(Cube{}, x)));
  std::vector<double> expected;
  for (index_t i = 0; i < 6; ++i) expected.push_back(3 * a(i) * a(i));
  check_close(grad(x), expected);
}

TEST_CASE("detached values, comparisons and indices are constants") {
  const auto x = requires_grad(noise<2>({3, 4}, 1));
  static_assert(is_tensor<decltype(argmax(x, dim<1>{}))>);
  static_assert(is_tensor<decltype(detach(x) * 2.0)>);
  const auto weights = one_hot<double>(argmax(x, dim<1>{}), 4);
  backward(sum(x * weights));
  check_close(grad(x), values_of(weights));
}

TEST_CASE("changing a leaf in place after its use is an error") {
  const auto x = requires_grad(noise<1>({3}, 1));
  const auto loss = sum(x * x);
  x.value().fill_(1.0);
  mark_changed(x);
  CHECK(contains(error_of([&] { backward(loss); }), "was changed in place after the operation"));
  backward(sum(x * x));
  check_close(grad(x), {2, 2, 2});
}

TEST_CASE("changing in place a value that a gradient reads is an error, whatever its owner") {
  const char* const sentence = "was changed in place after the operation";
  const auto data = noise<2>({3, 4}, 1);
  const auto w = requires_grad(noise<2>({4, 2}, 2));
  const auto loss = sum(matmul(data, w));
  add_(data, 1);  // dL/dw needs the old value
  CHECK(contains(error_of([&] { backward(loss); }), sentence));

  const auto y = exp(w);
  const auto of_y = sum(y);
  mul_(y.value().slice(0, 0, 1), 2);  // a view of the result
  CHECK(contains(error_of([&] { backward(of_y); }), sentence));

  const auto of_w = sum(w * w);
  w.value().copy_(w.value() * 0.5);
  CHECK(contains(error_of([&] { backward(of_w); }), sentence));
  CHECK_FALSE(has_grad(w));

  const auto again = [](const auto& x) { return square(x); };
  const auto made_again = sum(checkpoint(again, w));
  w.value().fill_(2);
  CHECK(contains(error_of([&] { backward(made_again); }), sentence));
}

TEST_CASE("values that no gradient reads may be changed in place, and leaves between uses") {
  const auto a = noise<1>({5}, 1);
  const auto x = requires_grad(a.clone());
  const auto shifted = x + 1;
  const auto loss = sum(shifted * 3);
  add_(x.value(), 5);
  add_(shifted.value(), 5);
  backward(loss);
  check_close(grad(x), std::vector<double>(5, 3));
  zero_grad(x);
  for (int i = 0; i < 2; ++i) {  // two gradient descent steps: x -= 0.25 * 2 x
    backward(sum(x * x));
    map_([](double p, double g) { return p - 0.25 * g; }, x.value(), grad(x));
    zero_grad(x);
  }
  std::vector<double> expected;
  for (index_t i = 0; i < 5; ++i) expected.push_back((a(i) + 5) / 4);
  check_close(x.value(), expected);
}

TEST_CASE("only a leaf has a gradient") {
  const auto x = requires_grad(noise<1>({3}, 1));
  const auto y = x * 2.0;
  CHECK(contains(error_of([&] { grad(y); }), "grad: the value is not a leaf"));
}

TEST_SUITE_END();
