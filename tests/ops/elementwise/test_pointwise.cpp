#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>

#include "../functors.hpp"
#include "../placed.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Extents1 = std::array<index_t, 1>;
using Extents2 = std::array<index_t, 2>;

template <class T, class F>
auto each(const Array<T>& a, const F& f) {
  return array_of<decltype(f(a.values[0]))>(a.shape,
                                            [&](const naive::Indices& i) { return f(a.at(i)); });
}
template <class T, class F>
auto each(const Array<T>& a, const Array<T>& b, const F& f) {
  return array_of<T>(a.shape, [&](const naive::Indices& i) { return f(a.at(i), b.at(i)); });
}

/// Checks a unary operation on operands of every kind.
template <class T, class Mesh, class Op, class F>
void check_unary(const Mesh& mesh, const Op& op, const F& f, double share = 0) {
  each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
    for (const Extents2 extents : {Extents2{5, 3}, {0, 2}, {1, 1}}) {
      const auto x = placed<T, decltype(p)>(mesh, extents, 0);
      check_equal(op(x), each(expected(x, 0), f), share);
    }
  });
}

}  // namespace

TEST_CASE("sums and differences are right for all placements") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Max>, Partial<Min>>(
        [&](auto p) {
          each_placements<1, Replicate, Shard<0>, Partial<Sum>, Partial<Max>>([&](auto q) {
            const auto x = placed<double, decltype(p)>(mesh, Extents2{5, 3}, 0);
            const auto y = placed<double, decltype(q)>(mesh, Extents2{5, 3}, 1);
            const auto a = expected(x, 0), b = expected(y, 1);
            check_equal(x + y, each(a, b, [](double u, double v) { return u + v; }));
            check_equal(y - x, each(b, a, [](double u, double v) { return u - v; }));
          });
        });
  });
}

TEST_CASE("products, maxima and minima are right for all placements") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<1>, Partial<Sum>, Partial<Max>, Partial<Product>>(
        [&](auto p) {
          each_placements<1, Replicate, Partial<Sum>, Partial<Min>, Partial<Product>>([&](auto q) {
            const auto x = placed<double, decltype(p)>(mesh, Extents2{5, 3}, 0);
            const auto y = placed<double, decltype(q)>(mesh, Extents2{5, 3}, 1);
            const auto a = expected(x, 0), b = expected(y, 1);
            check_equal(x * y, each(a, b, [](double u, double v) { return u * v; }));
            check_equal(maximum(x, y),
                        each(a, b, [](double u, double v) { return u < v ? v : u; }));
            check_equal(minimum(x, y),
                        each(a, b, [](double u, double v) { return u < v ? u : v; }));
          });
        });
  });
}

TEST_CASE("unary operations are right for all placements") {
  constexpr double rounding = 1e-14;  // of functions computed by libmvec
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    check_unary<float>(mesh, [](const auto& x) { return -x; }, [](float v) { return -v; });
    check_unary<float>(
        mesh, [](const auto& x) { return relu(x); }, [](float v) { return v > 0 ? v : 0.0f; });
    check_unary<double>(
        mesh, [](const auto& x) { return exp(x); }, [](double v) { return std::exp(v); }, rounding);
    check_unary<double>(
        mesh, [](const auto& x) { return tanh(x); }, [](double v) { return std::tanh(v); },
        rounding);
    check_unary<double>(
        mesh, [](const auto& x) { return sigmoid(x); },
        [](double v) { return 1 / (1 + std::exp(-v)); }, rounding);
    check_unary<double>(
        mesh, [](const auto& x) { return log(square(x) + 1.0); },
        [](double v) { return std::log(v * v + 1); }, rounding);
    check_unary<double>(
        mesh, [](const auto& x) { return sqrt(abs(x)); },
        [](double v) { return std::sqrt(std::abs(v)); });
    check_unary<std::int64_t>(
        mesh, [](const auto& x) { return abs(x) / 2; },
        [](std::int64_t v) { return (v < 0 ? -v : v) / 2; });
  });
}

TEST_CASE("complex numbers and 16-bit floats go the same ways") {
  // nvcc fuses multiplications and additions, and has a function of its own for absolute values.
  constexpr double rounding = std::is_same_v<TestDevice, Host> ? 0 : 1e-15;
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    using C = std::complex<double>;
    check_unary<C>(
        mesh, [](const auto& x) { return x * x - 2 * x; }, [](C v) { return v * v - 2.0 * v; },
        rounding);
    check_unary<C>(
        mesh, [](const auto& x) { return abs(x); }, [](C v) { return std::abs(v); }, rounding);
    check_unary<half>(
        mesh, [](const auto& x) { return relu(x) * 0.5f; },
        [](half v) { return half(float(v) > 0 ? float(v) * 0.5f : 0.0f); });
    check_unary<bfloat16>(
        mesh, [](const auto& x) { return -(x + 1); },
        [](bfloat16 v) { return bfloat16(-(float(v) + 1.0f)); });
  });
}

TEST_CASE("linear operations keep partials, others reduce them") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto r = placed<double, Placements<Replicate>>(mesh, Extents2{5, 3}, 0);
    const auto s = placed<double, Placements<Shard<1>>>(mesh, Extents2{5, 3}, 0);
    const auto p = placed<double, Placements<Partial<Sum>>>(mesh, Extents2{5, 3}, 1);
    const auto q = placed<double, Placements<Partial<Sum>>>(mesh, Extents1{3}, 2);
    const auto m = placed<double, Placements<Partial<Max>>>(mesh, Extents2{5, 3}, 3);
    CommTrace trace(world);
    // y[P] = q[P] - 2 · p[P], one of fewer dimensions
    static_assert(lies<decltype(q - 2 * p), Partial<Sum>>);
    static_assert(lies<decltype(p + p), Partial<Sum>>);
    static_assert(lies<decltype(p * r), Partial<Sum>>);
    static_assert(lies<decltype(r * p), Partial<Sum>>);
    static_assert(lies<decltype(p / 3), Partial<Sum>>);
    static_assert(lies<decltype(-p), Partial<Sum>>);
    static_assert(lies<decltype(-m), Partial<Min>>);
    static_assert(lies<decltype(relu(m)), Partial<Max>>);
    static_assert(lies<decltype(maximum(m, 0)), Partial<Max>>);
    static_assert(lies<decltype(cast<std::complex<double>>(p)), Partial<Sum>>);
    q - 2 * p;
    p* r;
    -m;
    CHECK(trace.events().empty());
    // a rank without elements contributes -inf, and r may be inf
    static_assert(lies<decltype(m + r), Shard<0>>);
    static_assert(lies<decltype(r - m), Shard<0>>);
    static_assert(lies<decltype(p + r), Shard<0>>);
    static_assert(lies<decltype(p + 1), Shard<0>>);
    static_assert(lies<decltype(p + s), Shard<1>>);
    static_assert(lies<decltype(p * p), Shard<0>>);
    static_assert(lies<decltype(3 / p), Shard<0>>);
    static_assert(lies<decltype(relu(p)), Shard<0>>);
    static_assert(lies<decltype(m * r), Shard<0>>);
    static_assert(lies<decltype(m + m), Shard<0>>);
    static_assert(lies<decltype(cast<float>(p)), Shard<0>>);
    static_assert(lies<decltype(log(m)), Shard<0>>);
    relu(p);
    CHECK(trace.count() == 1);
    CHECK(trace.count(CollectiveKind::reduce_scatter) == 1);
    check_equal(q - 2 * p, array_of<double>({5, 3}, [&](const naive::Indices& i) {
                  return expected(q, 2).at({i[1]}) - 2 * expected(p, 1).at(i);
                }));
    check_equal(relu<Placements<Replicate>>(p),
                each(expected(p, 1), [](double v) { return v > 0 ? v : 0; }));
  });
}

TEST_CASE("the candidates of ranks without elements do not disturb extremes") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {4}, TestDevice{});
    using X = DTensor<std::int32_t, 0, DeviceMesh<TestDevice, tp>, Placements<Partial<Max>>>;
    const X::local_type local;
    local.fill_(world.rank() == 3 ? std::numeric_limits<std::int32_t>::min() : world.rank());
    const auto x = X::unchecked(local, mesh, {});
    CHECK((x - 1).full_tensor().item() == 1);
    CHECK((5 - x).full_tensor().item() == 3);
    CHECK((-x).full_tensor().item() == -2);
    CHECK(cast<float>(x).full_tensor().item() == 2.0f);
  });
}

TEST_CASE("numbers become elements of the tensor's type") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<float, Placements<Shard<0>>>(mesh, Extents1{7}, 0);
    const auto a = expected(x, 0);
    static_assert(std::is_same_v<decltype(x * 0.5)::value_type, float>);
    check_equal(x * 0.5, each(a, [](float v) { return v * 0.5f; }));
    check_equal(1 - x, each(a, [](float v) { return 1 - v; }));
    check_equal(8 / (x * x + 1), each(a, [](float v) { return 8 / (v * v + 1); }));
    check_equal(maximum(x, 0), each(a, [](float v) { return v > 0 ? v : 0.0f; }));
    check_equal(minimum(1.5, x), each(a, [](float v) { return v < 1.5f ? v : 1.5f; }));
  });
}

TEST_CASE("where chooses element by element") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Partial<Sum>, Partial<Min>>([&](auto p) {
      each_placements<1, Replicate, Shard<1>, Partial<Sum>, Partial<Min>>([&](auto q) {
        const auto x = placed<double, decltype(p)>(mesh, Extents2{5, 3}, 0);
        const auto y = placed<double, decltype(q)>(mesh, Extents2{5, 3}, 1);
        const auto c =
            map(IsPositive{}, placed<double, Placements<Shard<0>>>(mesh, Extents2{5, 3}, 2));
        const auto a = expected(x, 0), b = expected(y, 1);
        const auto d = expected(placed<double, Placements<Replicate>>(mesh, Extents2{5, 3}, 2), 2);
        check_equal(where(c, x, y), array_of<double>({5, 3}, [&](const naive::Indices& i) {
                      return d.at(i) > 0 ? a.at(i) : b.at(i);
                    }));
        check_equal(where(c, x, 7), array_of<double>({5, 3}, [&](const naive::Indices& i) {
                      return d.at(i) > 0 ? a.at(i) : 7.0;
                    }));
      });
    });
  });
}

TEST_CASE("a cast converts every element") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<double, Placements<Partial<Sum>>>(mesh, Extents1{7}, 0);
    const auto a = expected(x, 0);
    check_equal(cast<std::int64_t>(x * 0.5),
                each(a, [](double v) { return std::int64_t(v * 0.5); }));
    check_equal(cast<bool>(x), each(a, [](double v) { return v != 0; }));
    check_equal(cast<half>(x), each(a, [](double v) { return half(float(v)); }));
    check_equal(cast<std::complex<float>>(cast<float>(x)),
                each(a, [](double v) { return std::complex<float>(float(v)); }));
  });
}

TEST_CASE("a NaN is not lost in relu, maximum and minimum") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {1}, TestDevice{});
    const auto x = full<float>({1}, std::nanf(""), mesh, Replicate{});
    CHECK(std::isnan(relu(x).to_local().item()));
    CHECK(std::isnan(maximum(x, 1).to_local().item()));
    CHECK(std::isnan(maximum(1, x).to_local().item()));
    CHECK(std::isnan(minimum(x, 1).to_local().item()));
  });
}
