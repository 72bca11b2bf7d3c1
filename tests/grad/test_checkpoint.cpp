// Recomputation of saved values.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "errors.hpp"
#include "network.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_SUITE_BEGIN("threads only");

namespace {

std::vector<double> gradient_of(const Tracked<Tensor<double, 2>>& x) {
  const std::vector<double> g = values_of(grad(x));
  zero_grad(x);
  return g;
}

}  // namespace

TEST_CASE("gradients through a checkpoint are the same bit by bit, its function runs twice") {
  const auto x = requires_grad(noise<2>({5, 4}, 1));
  const auto w = requires_grad(noise<2>({4, 4}, 2));
  int calls = 0;
  const auto block = [&calls](const auto& v, const auto& m) {
    ++calls;
    return tanh(matmul(exp(v), m));
  };
  backward(sum(square(block(x, w))));
  const auto dx = gradient_of(x), dw = gradient_of(w);
  calls = 0;
  backward(sum(square(checkpoint(block, x, w))));
  CHECK(calls == 2);
  CHECK(gradient_of(x) == dx);
  CHECK(gradient_of(w) == dw);
}

TEST_CASE("checkpoints may be nested, and dropped without a backward") {
  const auto x = requires_grad(noise<2>({3, 3}, 1));
  const auto inner = [](const auto& v) { return exp(tanh(v)); };
  const auto outer = [&](const auto& v) { return square(checkpoint(inner, v * 2.0)); };
  backward(sum(outer(x)));
  const auto expected = gradient_of(x);
  static_cast<void>(checkpoint(outer, x));
  backward(sum(checkpoint(outer, x)));
  CHECK(gradient_of(x) == expected);
}

TEST_CASE("a checkpoint draws the same numbers both times; the program draws the ones after them") {
  const auto x = requires_grad(noise<2>({5, 4}, 1));
  RandomState state{3, 0};
  const auto inner = [&](const auto& v) { return dropout(exp(v), 0.5, state); };
  const auto outer = [&](const auto& v) {
    return checkpoint(inner, square(dropout(v, 0.5, state)));
  };
  backward(sum(square(outer(x))));
  const auto expected = gradient_of(x);
  CHECK(state == RandomState{3, 2});
  state = {3, 0};
  const auto loss = sum(square(checkpoint(outer, x)));
  CHECK(state == RandomState{3, 2});
  static_cast<void>(rand<float>({3}, state));
  backward(loss);
  CHECK(gradient_of(x) == expected);
  CHECK(state == RandomState{3, 3});
}

TEST_CASE("a function that draws more the second time is an error") {
  const auto x = requires_grad(noise<2>({3, 3}, 1));
  RandomState state;
  int calls = 0;
  const auto more = [&](const auto& v) {
    if (++calls == 2) static_cast<void>(rand<float>({2}, state));
    return exp(v);
  };
  CHECK(contains(error_of([&] { backward(sum(checkpoint(more, x))); }),
                 "checkpoint: the function drew more random numbers when it was recomputed"));
  static_cast<void>(rand<float>({2}, state));
  CHECK(state == RandomState{0, 1});
}

TEST_CASE("a function that does something else the second time is an error") {
  const auto x = requires_grad(noise<2>({3, 3}, 1));
  int calls = 0;
  const auto more = [&](const auto& v) { return ++calls == 1 ? exp(v) : exp(exp(v)); };
  CHECK(contains(error_of([&] { backward(sum(checkpoint(more, x))); }),
                 "checkpoint: the function called more operations when it was recomputed"));
  calls = 0;
  const auto other = [&](const auto& v) { return ++calls == 1 ? exp(v) : tanh(v); };
  CHECK(contains(error_of([&] { backward(sum(checkpoint(other, x))); }),
                 "checkpoint: the function called different operations when it was recomputed"));
}

TEST_SUITE_END();
