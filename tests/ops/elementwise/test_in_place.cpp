// Operations that write to an existing tensor: add_(x, y), add(out(y), a, b), map_(f, x, y).
#include <array>
#include <complex>
#include <cstdint>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "../functors.hpp"
#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Extents2 = std::array<index_t, 2>;

template <class T, class F>
Array<T> combined(const Array<T>& a, const Array<T>& b, const F& f) {
  return array_of<T>(a.shape, [&](const naive::Indices& i) { return f(a.at(i), b.at(i)); });
}

/// Checks z = f(x, y) into an existing z, and x = f(x, y) if the result has the placements of x, as
/// seen through another handle.
template <class X, class Y, class Into, class Op, class F>
void check_into(const X& x, const Y& y, const Array<double>& a, const Array<double>& b,
                const Into& in_place, const Op& op, const F& f) {
  const auto expected = combined(a, b, f);
  const auto z = op(x, y);
  z.to_local().fill_(77);
  op(out(z), x, y);
  check_equal(z, expected);
  if constexpr (std::is_same_v<std::remove_const_t<decltype(z)>, X>) {
    const X handle = x;
    CHECK(&in_place(x, y) == &x);
    check_equal(handle, expected);
  }
}

/// The elements of a matrix on the host, row-major.
template <class T>
std::vector<T> elements(const Tensor<T, 2, TestDevice>& x) {
  const auto host = x.clone().to(Host{});
  return {host.data(), host.data() + host.size()};
}

/// 0, 1, 2, .. on the test's device.
Tensor<double, 2, TestDevice> counted(const Extents2& extents) {
  const Tensor<double, 2> x(extents);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i);
  return x.to(TestDevice{});
}

/// The update of an optimizer.
struct Update {
  double rate;
  CLEAVE_HOST_DEVICE double operator()(double p, double g, double m) const {
    return p - rate * g + m;
  }
};

}  // namespace

TEST_CASE("operations write their results under all placements, shards uneven or empty") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      each_placements<1, Replicate, Shard<0>, Partial<Sum>>([&](auto q) {
        for (const Extents2 extents : {Extents2{5, 3}, {2, 2}, {0, 3}}) {
          const auto pair = [&](const auto& check) {
            const auto x = placed<double, decltype(p)>(mesh, extents, 0);
            const auto y = placed<double, decltype(q)>(mesh, extents, 1);
            check(x, y, expected(x, 0), expected(y, 1));
          };
          pair([](const auto& x, const auto& y, const auto& a, const auto& b) {
            check_into(
                x, y, a, b, add_, [](const auto&... u) { return add(u...); },
                [](double u, double v) { return u + v; });
          });
          pair([](const auto& x, const auto& y, const auto& a, const auto& b) {
            check_into(
                x, y, a, b, mul_, [](const auto&... u) { return mul(u...); },
                [](double u, double v) { return u * v; });
          });
        }
      });
    });
  });
}

TEST_CASE("on two axes, with numbers and operands that repeat") {
  on_ranks({1, 2, 4, 6}, [](World& world) {
    const int half = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / half, half}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>, Shard<1>>>(mesh, Extents2{5, 3}, 0);
    const auto row =
        placed<double, Placements<Replicate, Shard<0>>>(mesh, std::array<index_t, 1>{3}, 1);
    const auto column = placed<double, Placements<Shard<0>, Replicate>>(mesh, Extents2{5, 1}, 2);
    const auto a = expected(x, 0), b = expected(row, 1), c = expected(column, 2);
    sub_(x, row);
    add_(mul_(x, 2), column);
    auto y = x;
    y -= 3;
    y /= 0.5;
    check_equal(x, array_of<double>(a.shape, [&](const naive::Indices& i) {
                  return ((a.at(i) - b.at({i[1]})) * 2 + c.at({i[0], 0}) - 3) / 0.5;
                }));
    map_(Update{0.5}, x, column, 4.0);
    check_equal(x, array_of<double>(a.shape, [&](const naive::Indices& i) {
                  return ((a.at(i) - b.at({i[1]})) * 2 + c.at({i[0], 0}) - 3) / 0.5 -
                         0.5 * c.at({i[0], 0}) + 4;
                }));
  });
}

TEST_CASE("functions of one operand, of all kinds of elements") {
  const auto check = [](auto value, const auto& in_place, auto expected) {
    using T = decltype(value);
    const Tensor<T, 2> host({2, 3});
    host.fill_(value);
    const auto x = host.to(TestDevice{});
    in_place(x);
    CHECK(elements(x) == std::vector<T>(6, expected));
  };
  check(3.0, neg_, -3.0);
  check(-3.0f, abs_, 3.0f);
  check(std::int64_t(-3), square_, std::int64_t(9));
  check(std::complex<double>(1, 2), conj_, std::complex<double>(1, -2));
  check(-2.0, sign_, -1.0);
  check(-2.0, relu_, 0.0);
  check(0.0, exp_, 1.0);
  check(1.0, log_, 0.0);
  check(9.0, sqrt_, 3.0);
  check(0.0, tanh_, 0.0);
  check(0.0, sigmoid_, 0.5);
  const auto with = [](const auto& in_place, double y) {
    const auto x = counted({1, 3});
    in_place(x, y);
    return elements(x);
  };
  CHECK(with(maximum_, 1) == std::vector<double>{1, 1, 2});
  CHECK(with(minimum_, 1) == std::vector<double>{0, 1, 1});
  CHECK(with(div_, 2) == std::vector<double>{0, 0.5, 1});
}

TEST_CASE("targets and operands are views in any order") {
  constexpr index_t rows = 70, columns = 90;
  const auto at = [](index_t i, index_t j) { return double(i * columns + j); };
  const auto check = [&](const auto& x, const auto& value) {
    const auto found = elements(x);
    index_t wrong = 0;
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        wrong += found[std::size_t(i * columns + j)] != value(i, j);
    CHECK(wrong == 0);
  };
  {  // a transposed operand
    const auto x = counted({rows, columns}), y = counted({columns, rows});
    add_(x, y.transpose(0, 1));
    check(x, [&](index_t i, index_t j) { return at(i, j) + double(j * rows + i); });
    add_(x.transpose(0, 1), y);  // a transposed target
    check(x, [&](index_t i, index_t j) { return at(i, j) + 2 * double(j * rows + i); });
  }
  {  // the left half updated by the right half of the same matrix
    const auto x = counted({rows, columns});
    sub_(x.slice(1, 0, 45), x.slice(1, 45, 90));
    check(x, [&](index_t i, index_t j) { return j < 45 ? -45 : at(i, j); });
    mul_(x.select(1, 3), 2);
    check(x, [&](index_t i, index_t j) { return j == 3 ? -90 : j < 45 ? -45 : at(i, j); });
  }
  {  // both operands are the target
    const auto x = counted({rows, columns});
    add_(x, x);
    mul(out(x.transpose(0, 1)), x.transpose(0, 1), x.transpose(0, 1));
    check(x, [&](index_t i, index_t j) { return 4 * at(i, j) * at(i, j); });
  }
}

TEST_CASE("products and sums are written into existing tensors") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>>>(mesh, Extents2{5, 3}, 0);
    const auto w = placed<double, Placements<Replicate>>(mesh, Extents2{3, 4}, 1);
    const auto a = expected(x, 0), b = expected(w, 1);
    const auto y = placed<double, Placements<Shard<0>>>(mesh, Extents2{5, 4}, 2);
    matmul(out(y), x, w);
    check_equal(y, array_of<double>({5, 4}, [&](const naive::Indices& i) {
                  double sum = 0;
                  for (index_t k = 0; k < 3; ++k) sum += a.at({i[0], k}) * b.at({k, i[1]});
                  return sum;
                }));
    const auto sums = placed<double, Placements<Partial<Sum>>>(mesh, std::array<index_t, 1>{3}, 2);
    call_op(out(sums), ops::Reduce<Sum, 1u>{}, x);
    check_equal(sums, array_of<double>({3}, [&](const naive::Indices& i) {
                  double sum = 0;
                  for (index_t k = 0; k < 5; ++k) sum += a.at({k, i[0]});
                  return sum;
                }));
  });
}

TEST_CASE("invalid targets are refused, and left unchanged") {
  const auto x = counted({3, 4});
  const auto before = elements(x);
  const auto refused = [&](const auto& f, const char* sentence) {
    CHECK(contains(error_of(f), sentence));
    CHECK(elements(x) == before);
  };
  refused([&] { add_(x.slice(0, 0, 1), x); },
          "extents differ: the result has [3, 4], the target has [1, 4]");
  refused([&] { add_(x, counted({2, 4})); }, "operand 1 has 2, preceding operands have 3");
  refused([&] { add_(x.slice(1, 0, 3), x.slice(1, 1, 4)); },
          "operand 1 shares elements with the target in another order; clone it first");
  refused([&] { add_(x.slice(0, 0, 3).slice(1, 0, 3), x.slice(1, 0, 3).transpose(0, 1)); },
          "operand 1 shares elements with the target");
  refused([&] { add_(Tensor<double, 2, TestDevice>::adopt(x.data(), {3, 4}, {0, 1}), 1); },
          "the target repeats elements");
  const auto square = x.slice(1, 0, 3);
  refused([&] { matmul(out(square), counted({3, 3}), counted({3, 3})); },
          "the target must be contiguous");
  const auto whole = x.reshape(std::array<index_t, 2>{4, 3}).slice(0, 0, 3);
  refused([&] { matmul(out(whole), whole, counted({3, 3})); },
          "operand 0 shares elements with the target");
}

TEST_CASE("targets on another mesh of the same type are refused") {
  on_ranks({2}, [](World& world) {
    const auto wide = init_device_mesh<dp, tp>(world, {1, 2}, TestDevice{});
    const auto tall = init_device_mesh<dp, tp>(world, {2, 1}, TestDevice{});
    using P = Placements<Shard<0>, Replicate>;
    const auto x = placed<double, P>(wide, Extents2{4, 3}, 0);
    const auto y = placed<double, P>(tall, Extents2{4, 3}, 0);
    CHECK(contains(error_of([&] { add(out(y), x, x); }),
                   "the target and the operands are on different meshes"));
    CHECK(contains(error_of([&] { add_(x, y); }), "the operands are on different meshes"));
  });
}
