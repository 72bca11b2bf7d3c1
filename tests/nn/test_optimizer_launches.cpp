// The launches of optimizers on a GPU: a few for all parameters, whose elements have the same bits
// as if each parameter had its own.
#include <cmath>
#include <cstddef>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>
#include <cleave/nn.hpp>

#include "cuda_calls.hpp"

using namespace cleave;
using cleave::testing::launches_of;

namespace optimizer_launches {

template <class T>
using Line = Tensor<T, 1, Cuda>;

template <class First, class Second>
struct Parameters {
  First first;
  Second second;
  static constexpr nn::names members{"first", "second"};
};

double start_of(int parameter, index_t i) { return double((i * 7 + parameter) % 19) / 8 - 1; }
double slope_of(int parameter, index_t i) { return double((i * 5 + parameter) % 17) / 16 - 0.5; }

/// Element i is f(parameter, i).
template <class X>
auto filled(const X& x, int parameter, double (*f)(int, index_t)) {
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = typename X::value_type(f(parameter, i));
  return x.to(Cuda{});
}
template <class T>
Line<T> line(int parameter, double (*f)(int, index_t)) {
  return filled(Tensor<T, 1>({1 + parameter * 37 % 1500}), parameter, f);
}

template <class T>
auto lines(int count) {
  std::vector<Line<T>> all;
  for (int p = 0; p < count; ++p) all.push_back(line<T>(p, start_of));
  return all;
}

/// Gives parameter p a gradient.
template <class X>
void give_gradient(const X& x, int p) {
  backward(x, line<typename X::value_type>(p, slope_of));
}

/// Element i of parameter p after AdamW's steps in double precision.
double by_loops(const nn::AdamOptions& o, int p, index_t i, int steps) {
  double x = start_of(p, i), mean = 0, square = 0;
  const double g = slope_of(p, i);
  for (int step = 1; step <= steps; ++step) {
    mean = o.beta1 * mean + (1 - o.beta1) * g;
    square = o.beta2 * square + (1 - o.beta2) * g * g;
    x -= o.learning_rate * o.weight_decay * x;
    x -= o.learning_rate * mean / (1 - std::pow(o.beta1, step)) /
         (std::sqrt(square / (1 - std::pow(o.beta2, step))) + o.epsilon);
  }
  return x;
}

/// The largest distance of parameter p from `expected(i)`.
template <class X, class F>
double distance(const X& x, const F& expected) {
  const auto host = x.value().to(Host{});
  double most = 0;
  for (index_t i = 0; i < host.size(); ++i)
    most = std::fmax(most, std::abs(double(host.data()[i]) - expected(i)));
  return most;
}

constexpr nn::AdamOptions options{.learning_rate = 0.01, .weight_decay = 0.1};

TEST_CASE("AdamW updates 91 parameters per launch, with the bits that each would have alone") {
  // 4 KB of arguments have space for 91 times four addresses, a size and the number of a block
  for (const auto& [count, launches] : {std::pair{1, 1}, {91, 1}, {92, 2}, {182, 2}, {183, 3}}) {
    CAPTURE(count);
    const auto m = requires_grad(Parameters{lines<float>(count), nn::None{}});
    auto optimizer = nn::adamw(m, options);
    for (int step = 0; step < 2; ++step) {
      zero_grad(m);
      for (int p = 0; p < count; ++p) give_gradient(m.first[std::size_t(p)], p);
      CHECK(launches_of([&] { optimizer.step(m); }) == launches);
    }
    for (int p = 0; p < count; p += 13) {
      const auto& x = m.first[std::size_t(p)];
      CHECK(distance(x, [&](index_t i) { return by_loops(options, p, i, 2); }) < 1e-6);
      const auto alone = requires_grad(line<float>(p, start_of));
      auto of_one = nn::adamw(alone, options);
      for (int step = 0; step < 2; ++step) {
        zero_grad(alone);
        give_gradient(alone, p);
        of_one.step(alone);
      }
      const auto bits = alone.value().to(Host{});
      CHECK(distance(x, [&](index_t i) { return double(bits.data()[i]); }) == 0);
    }
  }
}

TEST_CASE("parameters share launches if their types and the numbers of their steps agree") {
  const auto m = requires_grad(Parameters{lines<float>(5), lines<double>(4)});
  auto optimizer = nn::adamw(m, options);
  const auto give = [&](int from) {
    zero_grad(m);
    for (int p = from; p < 5; ++p) give_gradient(m.first[std::size_t(p)], p);
    for (int p = from; p < 4; ++p) give_gradient(m.second[std::size_t(p)], p);
  };
  give(2);
  CHECK(launches_of([&] { optimizer.step(m); }) == 2);
  give(0);
  CHECK(launches_of([&] { optimizer.step(m); }) == 4);
  for (int p = 0; p < 4; ++p) {
    const auto expected = [&](index_t i) { return by_loops(options, p, i, p < 2 ? 1 : 2); };
    CHECK(distance(m.first[std::size_t(p)], expected) < 1e-6);
    CHECK(distance(m.second[std::size_t(p)], expected) < 1e-7);
  }
}

TEST_CASE("gradients of one type are scaled by a launch") {
  const auto m = requires_grad(Parameters{lines<float>(91), lines<double>(3)});
  for (int p = 0; p < 91; ++p) give_gradient(m.first[std::size_t(p)], p);
  for (int p = 0; p < 2; ++p) give_gradient(m.second[std::size_t(p)], p);
  double squares = 0;
  const auto add_squares = [&](const auto& x, int p) {
    for (index_t i = 0; i < x.value().size(); ++i) squares += slope_of(p, i) * slope_of(p, i);
  };
  for (int p = 0; p < 91; ++p) add_squares(m.first[std::size_t(p)], p);
  for (int p = 0; p < 2; ++p) add_squares(m.second[std::size_t(p)], p);
  const double norm = std::sqrt(squares);
  const cuda_stand_in::Recording recording;
  CHECK(std::abs(nn::clip_grad_norm_(m, 2 * norm) - norm) < 1e-12 * norm);
  const auto launches = cleave::testing::calls_of(recording, "cudaLaunchKernelEx");
  CHECK(std::abs(nn::clip_grad_norm_(m, 0.5 * norm) - norm) < 1e-12 * norm);
  CHECK(cleave::testing::calls_of(recording, "cudaLaunchKernelEx") == 2 * launches + 2);
  for (int p = 0; p < 91; p += 6) {
    const auto half = grad(m.first[std::size_t(p)]).to(Host{});
    for (index_t i = 0; i < half.size(); ++i)
      CHECK(std::abs(double(half(i)) - 0.5 * slope_of(p, i)) < 1e-6);
  }
}

TEST_CASE("gradients that are not contiguous are copied, and wait for the launch of all") {
  constexpr index_t n = 9;
  constexpr int count = 3;
  const auto square = [](int p, double (*f)(int, index_t)) {
    return filled(Tensor<float, 2>({n, n}), p, f);
  };
  std::vector<Tensor<float, 2, Cuda>> start;
  for (int p = 0; p < count; ++p) start.push_back(square(p, start_of));
  const auto m = requires_grad(Parameters{start, nn::None{}});
  for (int p = 0; p < count; ++p)
    backward(transpose(m.first[std::size_t(p)]) * 1.0f, square(p, slope_of));
  const cuda_stand_in::Recording recording;
  nn::sgd({.learning_rate = 0.5}).step(m);
  CHECK(cleave::testing::calls_of(recording, "cudaLaunchKernelEx") == count + 1);
  for (int p = 0; p < count; ++p)
    CHECK(distance(m.first[std::size_t(p)], [&](index_t i) {
            return start_of(p, i) - 0.5 * slope_of(p, i % n * n + i / n);
          }) < 1e-6);
}

TEST_CASE("a graph repeats the steps of an optimizer") {
  constexpr int count = 150;
  const auto m = requires_grad(Parameters{lines<float>(count), nn::None{}});
  for (int p = 0; p < count; ++p) give_gradient(m.first[std::size_t(p)], p);
  const cuda::Graph step([&] { nn::sgd({.learning_rate = 0.125}).step(m); });
  for (int i = 0; i < 3; ++i) step.launch();
  for (int p = 0; p < count; p += 7)
    CHECK(distance(m.first[std::size_t(p)],
                   [&](index_t i) { return start_of(p, i) - 3 * 0.125 * slope_of(p, i); }) == 0);
}

}  // namespace optimizer_launches
