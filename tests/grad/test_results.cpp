// Gradients of operations with several results: each result has its own gradient, which is zero if
// the result is not used.
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/in_place.hpp>

#include "errors.hpp"
#include "network.hpp"
#include "spmd/like_eager.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// Sine and cosine in one pass.
struct SinCos {
  static constexpr const char* name = "sincos";
  static constexpr const char* factors = "ab->ab,ab";
  template <class T>
  using result_of = Types<T, T>;
  static void kernel(const auto& on, const Task&, const auto& s, const auto& c, const auto& x) {
    map_elements(on, ops::Sin{}, s, x);
    map_elements(on, ops::Cos{}, c, x);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    const auto& [s, c] = y;
    return sub(mul(std::get<0>(g), c), mul(std::get<1>(g), s));
  }
};

/// The minimum of each row and the sum of each column: results with different placements.
struct LeastAndSums {
  static constexpr const char* name = "least_and_sums";
  static constexpr const char* factors = "ab->a,b";
  static constexpr const char* replicated = "b";
  template <class T>
  using result_of = Types<T, T>;
  static void kernel(const auto& on, const Task&, const auto& least, const auto& sums,
                     const auto& x) {
    reduce_dims<Min>(on, x, 2u, least);
    reduce_dims<Sum>(on, x, 1u, sums);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x) {
    const auto chosen = equals(x, broadcast_dims<2u>(std::get<0>(y), x));
    return add(mul(broadcast_dims<2u>(std::get<0>(g), x), chosen),
               broadcast_dims<1u>(std::get<1>(g), x));
  }
};

/// The maximum of each row and its index, which has no gradient.
struct LargestAndPlace {
  static constexpr const char* name = "largest_and_place";
  static constexpr const char* factors = "ab->a,a";
  static constexpr const char* replicated = "b";
  template <class T>
  using result_of = Types<T, index_t>;
  static void kernel(const auto&, const Task&, const auto& largest, const auto& place,
                     const auto& x) {
    for (index_t i = 0; i < x.extents[0]; ++i) {
      const auto at = [&](index_t j) { return x.data[i * x.strides[0] + j * x.strides[1]]; };
      index_t best = 0;
      for (index_t j = 1; j < x.extents[1]; ++j)
        if (at(j) > at(best)) best = j;
      largest.data[i * largest.strides[0]] = at(best);
      place.data[i * place.strides[0]] = best;
    }
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x) {
    return mul(broadcast_dims<2u>(std::get<0>(g), x),
               equals(x, broadcast_dims<2u>(std::get<0>(y), x)));
  }
};

template <class X>
constexpr auto sincos(const X& x) {
  return call_op(SinCos{}, x);
}

/// Computes the expected gradient from the elements of x.
template <class F>
std::vector<double> each(const Tensor<double, 2>& a, const F& f) {
  std::vector<double> result;
  for (index_t i = 0; i < a.size(); ++i) result.push_back(f(i, a.data()[i]));
  return result;
}

/// Uses both results, each alone, and each several times.
template <class X, class W>
void check_sincos(const X& placed, const W& w, const Tensor<double, 2>& a,
                  const Tensor<double, 2>& b) {
  const auto x = requires_grad(placed);
  const auto check = [&](const auto& expected) {
    check_close(grad(x).full_tensor(), each(a, expected), 1e-14);
    zero_grad(x);
  };
  {
    const auto [s, c] = sincos(x);
    backward(sum(s * w) + sum(c * c * w));
    check([&](index_t i, double v) {
      return b.data()[i] * (std::cos(v) - 2 * std::cos(v) * std::sin(v));
    });
  }
  {
    const auto results = sincos(x);
    backward(sum(std::get<0>(results) * w));
    check([&](index_t i, double v) { return b.data()[i] * std::cos(v); });
  }
  {
    const auto results = sincos(x);
    backward(std::get<1>(results), w);
    check([&](index_t i, double v) { return -b.data()[i] * std::sin(v); });
  }
  {
    const auto [s, c] = sincos(x);
    backward(sum(s) + sum(s * w) + sum(s.redistribute(Replicate{}, Replicate{}) * x));
    check([&](index_t i, double v) { return std::cos(v) * (1 + b.data()[i] + v) + std::sin(v); });
  }
}

}  // namespace

TEST_CASE("each of several results has a gradient of its own; unused ones count as zero") {
  on_ranks({1, 2, 3, 4, 6}, [](World& world) {
    const auto a = noise<2>({5, 3}, 1), b = noise<2>({5, 3}, 2);
    const int half = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / half, half});
    const auto whole = distribute_tensor(b, mesh, Replicate{}, Replicate{});
    const auto x = distribute_tensor(a, mesh, Shard<0>{}, Shard<1>{});
    check_sincos(x, distribute_tensor(b, mesh, Shard<0>{}, Shard<1>{}), a, b);
    check_sincos(x, whole, a, b);
    check_sincos(distribute_tensor(a, mesh, Shard<0>{}, Shard<0>{}), whole, a, b);
  });
}

TEST_CASE("results with other extents than the operand have their gradients under any placements") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto a = noise<2>({5, 3}, 3);
    const auto u = noise<1>({5}, 4), v = noise<1>({3}, 5);
    const auto least_of = [&](index_t i) {
      double least = a(i, 0);
      for (index_t j = 1; j < 3; ++j) least = std::fmin(least, a(i, j));
      return least;
    };
    const auto expected = [&](double of_least, double of_sums) {
      std::vector<double> result;
      for (index_t i = 0; i < 5; ++i)
        for (index_t j = 0; j < 3; ++j)
          result.push_back((a(i, j) == least_of(i) ? of_least * 2 * least_of(i) * u(i) : 0) +
                           of_sums * v(j));
      return result;
    };
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto check = [&](auto p) {
      const auto x = requires_grad(distribute_tensor(a, mesh, p));
      const auto wu = distribute_tensor(u, mesh, Shard<0>{});
      const auto wv = distribute_tensor(v, mesh, Replicate{});
      {
        const auto [least, sums] = call_op(LeastAndSums{}, x);
        backward(sum(square(least) * wu) + sum(sums * wv));
        check_close(grad(x).full_tensor(), expected(1, 1), 1e-14);
      }
      zero_grad(x);
      backward(sum(square(std::get<0>(call_op(LeastAndSums{}, x))) * wu));
      check_close(grad(x).full_tensor(), expected(1, 0), 1e-14);
      zero_grad(x);
      backward(sum(std::get<1>(call_op(LeastAndSums{}, x)) * wv));
      check_close(grad(x).full_tensor(), expected(0, 1), 1e-14);
    };
    check(Shard<0>{});
    check(Shard<1>{});
  });
}

TEST_CASE("an index among several results is constant") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto a = noise<2>({4, 5}, 6);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Shard<0>{}));
    const auto [largest, place] = call_op(LargestAndPlace{}, x);
    static_assert(is_dtensor<std::remove_cvref_t<decltype(place)>>);
    backward(sum(square(largest)));
    const auto places = place.full_tensor();
    std::vector<double> expected(20);
    for (index_t i = 0; i < 4; ++i) {
      index_t best = 0;
      for (index_t j = 1; j < 5; ++j)
        if (a(i, j) > a(i, best)) best = j;
      CHECK(places(i) == best);
      expected[std::size_t(i * 5 + best)] = 2 * a(i, best);
    }
    check_close(grad(x).full_tensor(), expected, 1e-15);
  });
}

TEST_CASE("gradients of several results are differentiated in turn") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto a = noise<2>({4, 3}, 7);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto outer = requires_grad(distribute_tensor(a, mesh, Shard<1>{}));
    const auto inner = requires_grad(outer);
    const auto [s, c] = sincos(inner);
    backward(sum(s * c) + sum(s));  // cos² - sin² + cos
    backward(sum(grad(inner)));     // -4 sin cos - sin
    check_close(
        grad(outer).full_tensor(),
        each(a, [](index_t, double v) { return -4 * std::sin(v) * std::cos(v) - std::sin(v); }),
        1e-14);
  });
}

TEST_CASE("a program holds the gradients of several results, those of unused ones as zeros") {
  const auto both = [](const auto& input, const auto& w) {
    const auto x = requires_grad(input);
    const auto results = sincos(x);
    backward(sum(mul(std::get<0>(results), w)) + sum(square(std::get<1>(results))));
    return grad(x);
  };
  const auto one = [](const auto& input, const auto& w) {
    const auto x = requires_grad(input);
    backward(sum(mul(std::get<1>(sincos(x)), w)));
    return grad(x);
  };
  const auto of_reductions = [](const auto& input, const auto& w) {
    const auto x = requires_grad(input);
    const auto results = call_op(LeastAndSums{}, x);
    backward(sum(square(std::get<1>(results))));
    return add(grad(x), w);
  };
  on_ranks({1, 2, 3, 4}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto check = [&]<class P>(P) {
      const auto x = irregular<double, P>(mesh, std::array<index_t, 2>{5, 3}, 1);
      const auto w =
          irregular<double, Placements<Replicate>>(mesh, std::array<index_t, 2>{5, 3}, 2);
      check_like_eager(both, x, w);
      check_like_eager(one, x, w);
      check_like_eager(of_reductions, x, w);
    };
    check(Placements<Replicate>{});
    check(Placements<Shard<0>>{});
    check(Placements<Shard<1>>{});
  });
}

namespace {

/// The gradient of one of two results, traced by the compiler.
struct OneOfTwo {
  constexpr auto operator()(const auto& input) const {
    const auto x = requires_grad(input);
    backward(sum(std::get<0>(sincos(x))));
    return grad(x);
  }
};
constexpr auto one_of_two =
    spmd::frozen([] { return spmd::trace(OneOfTwo{}, spmd::arg<double>("x", {4, 6})); });
constexpr std::array by_rows{spmd::schema(Shard<0>{})};
static_assert(spmd::communications(spmd::expand(one_of_two, by_rows)) == 0);

}  // namespace

TEST_SUITE_BEGIN("threads only");

TEST_CASE("results within a checkpoint are recomputed") {
  const auto a = noise<2>({4, 3}, 8);
  const auto x = requires_grad(a);
  const auto f = [](const auto& v) {
    const auto results = sincos(v);
    return std::get<0>(results) * std::get<1>(results);
  };
  backward(sum(checkpoint(f, x)));
  check_close(grad(x), each(a, [](index_t, double v) { return std::cos(2 * v); }), 1e-14);
}

TEST_CASE("a call with several results is freed as a whole, unless it is to be retained") {
  const auto a = noise<2>({4, 3}, 9);
  const auto x = requires_grad(a);
  const char* const sentence = "backward: the tape has been freed by an earlier backward";
  {
    const auto [s, c] = sincos(x);
    const auto loss = sum(s);
    backward(loss, retain);
    backward(loss);
    const auto again = sum(s * 2.0);
    CHECK(contains(error_of([&] { backward(again); }), sentence));
    const auto other = sum(c);
    CHECK(contains(error_of([&] { backward(other); }), sentence));
  }
  check_close(grad(x), each(a, [](index_t, double v) { return 2 * std::cos(v); }), 1e-15);
  zero_grad(x);
  {  // an error leaves nothing behind
    const auto [s, c] = sincos(x);
    const auto y = sum(s) + sum(c);
    backward(sum(c), retain);
    bool fails = true;
    const auto z = requires_grad(a);
    on_gradient(z, [&](const Tensor<double, 2>&) {
      if (fails) throw std::runtime_error("planted");
    });
    const auto loss = sum(z * s) + y;
    CHECK(error_of([&] { backward(loss, retain); }) == "planted");
    fails = false;
    zero_grad(x);
    backward(loss);
    check_close(grad(x),
                each(a, [](index_t, double v) { return std::cos(v) * (1 + v) - std::sin(v); }),
                1e-14);
  }
}

TEST_CASE("changing one of several results in place is an error if the gradient reads it") {
  const auto x = requires_grad(noise<2>({4, 3}, 10));
  const auto [s, c] = sincos(x);
  const auto loss = sum(s);
  mul_(c.value(), 2);
  CHECK(contains(error_of([&] { backward(loss); }), "was changed in place after the operation"));
}

TEST_SUITE_END();
