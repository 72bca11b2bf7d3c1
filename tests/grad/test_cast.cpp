// Gradients of casts: each step of a chain passes the gradient on in the element type of its
// operand, rounded to that type.
#include <complex>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "network.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

using Complex = std::complex<double>;

/// The gradients of sum(square(x cast to Middle and back to double) w), compared with plain loops.
template <class Middle, class X, class W>
void check_chain(const X& placed, const W& w, const Tensor<double, 2>& a,
                 const Tensor<double, 2>& b) {
  const auto x = requires_grad(placed);
  const auto narrow = cast<Middle>(x);
  static_assert(std::is_same_v<typename decltype(narrow)::value_type, Middle>);
  backward(sum(square(cast<double>(narrow)) * w));
  std::vector<double> expected;
  for (index_t i = 0; i < a.size(); ++i) {
    const double rounded = double(Middle(float(a.data()[i])));
    expected.push_back(double(Middle(float(2 * (b.data()[i] * rounded)))));
  }
  check_close(grad(x).full_tensor(), expected, 0);
}

/// The gradient of sum(real(square(x as a complex number) c)): the real part of 2 x c.
template <class X, class C>
void check_complex(const X& placed, const C& c, const Tensor<double, 2>& a,
                   const Tensor<Complex, 2>& b) {
  const auto x = requires_grad(placed);
  const auto z = cast<Complex>(x);
  backward(sum(real(square(z) * c)));
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(grad(x))>, gradient_t<X>>);
  std::vector<double> expected;
  for (index_t i = 0; i < a.size(); ++i)
    expected.push_back((2.0 * a.data()[i] * b.data()[i]).real());
  check_close(grad(x).full_tensor(), expected, 1e-15);
}

/// Calls f(place) with functions that place a tensor in different ways.
template <class F>
void each_placing(World& world, const F& f) {
  const auto line = init_device_mesh<dp>(world, {world.size()});
  const int half = world.size() % 2 == 0 ? 2 : 1;
  const auto grid = init_device_mesh<dp, tp>(world, {world.size() / half, half});
  f([&](const auto& t) { return distribute_tensor(t, line, Shard<0>{}); });
  f([&](const auto& t) { return distribute_tensor(t, line, Replicate{}); });
  f([&](const auto& t) { return distribute_tensor(t, grid, Shard<1>{}, Shard<0>{}); });
  f([&](const auto& t) { return distribute_tensor(t, grid, Shard<0>{}, Shard<0>{}); });
  f([&](const auto& t) { return distribute_tensor(t, grid, Replicate{}, Shard<1>{}); });
}

}  // namespace

TEST_CASE("the gradient of a cast has the element type of the operand, and its rounding") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto a = noise<2>({5, 3}, 1), b = noise<2>({5, 3}, 2);
    each_placing(world, [&](const auto& place) {
      check_chain<float>(place(a), place(b), a, b);
      check_chain<half>(place(a), place(b), a, b);
      check_chain<bfloat16>(place(a), place(b), a, b);
    });
  });
}

TEST_CASE("a chain of casts passes gradients through every type of it") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto a = noise<2>({5, 3}, 3), b = noise<2>({5, 3}, 4);
    each_placing(world, [&](const auto& place) {
      const auto x = requires_grad(place(a));
      const auto y = cast<double>(cast<float>(cast<half>(cast<float>(x))));
      backward(sum(y * place(b)));
      std::vector<double> expected;
      for (index_t i = 0; i < b.size(); ++i)
        expected.push_back(double(float(half(float(b.data()[i])))));
      check_close(grad(x).full_tensor(), expected, 0);
    });
  });
}

TEST_CASE("addends that are cast have the gradient of their sum") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto a = noise<2>({5, 3}, 5);
    const auto b = noise<1>({3}, 6);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Shard<0>{}));
    const auto sums = cast<float>(sum(x, dim<0>{}));
    const auto w = distribute_tensor(cast<float>(b), mesh, Replicate{});
    backward(sum(sums * w));
    std::vector<double> expected;
    for (index_t i = 0; i < 5; ++i)
      for (index_t j = 0; j < 3; ++j) expected.push_back(double(float(b(j))));
    check_close(grad(x).full_tensor(), expected, 0);
  });
}

TEST_CASE("a real value that becomes complex keeps the real part of the gradient") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto a = noise<2>({5, 3}, 1), re = noise<2>({5, 3}, 2), im = noise<2>({5, 3}, 3);
    Tensor<Complex, 2> b({5, 3});
    for (index_t i = 0; i < b.size(); ++i) b.data()[i] = {re.data()[i], im.data()[i]};
    each_placing(world, [&](const auto& place) { check_complex(place(a), place(b), a, b); });
  });
}

TEST_CASE("the gradient of a cast is differentiated in turn") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto a = noise<2>({4, 3}, 7);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto outer = requires_grad(cast<float>(distribute_tensor(a, mesh, Shard<0>{})));
    const auto inner = requires_grad(outer);
    const auto y = cast<double>(inner);
    backward(sum(y * y * y));
    static_assert(
        std::is_same_v<typename std::remove_cvref_t<decltype(grad(inner))>::value_type, float>);
    backward(sum(grad(inner)));  // 6 x
    std::vector<double> expected;
    for (index_t i = 0; i < a.size(); ++i) expected.push_back(6 * double(float(a.data()[i])));
    check_close(grad(outer).full_tensor(), expected, 1e-6);
  });
}
