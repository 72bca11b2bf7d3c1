#include <array>
#include <complex>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "../functors.hpp"
#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

constexpr Curve curve;

/// curve of two arrays, aligned at their last dimension; extents of 1 are broadcast.
Array<double> naive_curve(const Array<double>& a, const Array<double>& b) {
  const std::size_t dims = std::max(a.shape.size(), b.shape.size());
  const auto extent = [&](const Array<double>& x, std::size_t d) {
    const std::size_t skip = dims - x.shape.size();
    return d < skip ? index_t(1) : x.shape[d - skip];
  };
  naive::Indices shape;
  for (std::size_t d = 0; d < dims; ++d)
    shape.push_back(extent(a, d) == 1 ? extent(b, d) : extent(a, d));
  return array_of<double>(shape, [&](const naive::Indices& index) {
    const auto own = [&](const Array<double>& x) {
      naive::Indices at;
      for (std::size_t d = dims - x.shape.size(); d < dims; ++d)
        at.push_back(extent(x, d) == 1 ? 0 : index[d]);
      return x.at(at);
    };
    return curve(own(a), own(b));
  });
}

template <class P, class Q, class Mesh, std::size_t M, std::size_t N>
void check_curve(const Mesh& mesh, const std::array<index_t, M>& a,
                 const std::array<index_t, N>& b) {
  const auto x = placed<double, P>(mesh, a, 0);
  const auto y = placed<double, Q>(mesh, b, 1);
  if (!exact_averages(x) || !exact_averages(y)) return;
  about(described(x) + " and " + described(y),
        [&] { check_equal(map(curve, x, y), naive_curve(expected(x, 0), expected(y, 1))); });
}

using Extents1 = std::array<index_t, 1>;
using Extents2 = std::array<index_t, 2>;

}  // namespace

TEST_CASE("a map is right for all placements of its operands on one axis") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Avg>, Partial<Min>>(
        [&](auto p) {
          each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto q) {
            for (const Extents2 extents : {Extents2{5, 3}, {1, 1}, {0, 3}, {3, 0}, {2, 300}})
              check_curve<decltype(p), decltype(q)>(mesh, extents, extents);
          });
        });
  });
}

TEST_CASE("a map is right for nested and mixed placements on two axes") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    each_placements<2, Replicate, Shard<0>, Shard<1>, Partial<Max>>([&](auto p) {
      check_curve<decltype(p), Placements<Shard<0>, Shard<1>>>(mesh, Extents2{5, 3},
                                                               Extents2{5, 3});
      check_curve<Placements<Shard<0>, Shard<0>>, decltype(p)>(mesh, Extents2{5, 3},
                                                               Extents2{5, 3});
    });
  });
}

TEST_CASE("operands of fewer dimensions repeat along the first ones") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      each_placements<1, Replicate, Shard<0>, Partial<Sum>>([&](auto q) {
        check_curve<decltype(p), decltype(q)>(mesh, Extents2{4, 5}, Extents1{5});
        check_curve<decltype(q), decltype(p)>(mesh, Extents1{5}, Extents2{4, 5});
        check_curve<decltype(p), decltype(q)>(mesh, Extents2{1, 5}, Extents1{5});
      });
    });
    each_placements<1, Replicate, Shard<0>, Partial<Sum>>([&](auto p) {
      const auto x = placed<double, decltype(p)>(mesh, Extents1{5}, 0);
      const auto s = placed<double, Placements<Partial<Sum>>>(mesh, std::array<index_t, 0>{}, 1);
      check_equal(map(curve, x, s), naive_curve(expected(x, 0), expected(s, 1)));
      check_equal(map(curve, s, x), naive_curve(expected(s, 1), expected(x, 0)));
    });
  });
}

TEST_CASE("a dimension of extent 1 repeats where it is on every rank") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      check_curve<decltype(p), Placements<Replicate>>(mesh, Extents2{4, 5}, Extents2{4, 1});
      check_curve<decltype(p), Placements<Replicate>>(mesh, Extents2{4, 5}, Extents2{1, 5});
      check_curve<decltype(p), Placements<Replicate>>(mesh, Extents2{4, 5}, Extents2{1, 1});
      check_curve<Placements<Replicate>, decltype(p)>(mesh, Extents2{1, 5}, Extents2{4, 5});
      check_curve<decltype(p), Placements<Partial<Sum>>>(mesh, Extents2{4, 5}, Extents2{4, 1});
      check_curve<Placements<Partial<Sum>>, decltype(p)>(mesh, Extents2{1, 0}, Extents2{4, 0});
    });
    // the other dimension of the broadcast operand may be sharded
    check_curve<Placements<Shard<0>>, Placements<Shard<0>>>(mesh, Extents2{4, 5}, Extents2{4, 1});
    check_curve<Placements<Shard<1>>, Placements<Shard<0>>>(mesh, Extents2{4, 5}, Extents2{4, 1});
  });
}

TEST_CASE("a column next to a matrix that is sharded along its rows is not sliced") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>, Shard<1>>>(mesh, Extents2{5, 4}, 0);
    const auto n = placed<double, Placements<Shard<0>, Replicate>>(mesh, Extents1{5}, 1);
    CommTrace trace(world);
    // y[S0,S1] = f(x[S0,S1], n[S0,R])
    const auto y = map(curve, x, unsqueeze(n, dim<1>{}));
    static_assert(std::is_same_v<decltype(y)::placements_type, Placements<Shard<0>, Shard<1>>>);
    CHECK(trace.events().empty());
    auto column = expected(n, 1);
    column.shape = {5, 1};
    check_equal(y, naive_curve(expected(x, 0), column));
  });
}

TEST_CASE("a repeated dimension that is sharded is refused") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto x = placed<double, Placements<Shard<1>>>(mesh, Extents2{4, 5}, 0);
    const auto y = placed<double, Placements<Shard<1>>>(mesh, Extents2{4, 1}, 1);
    const std::string text = error_of([&] { map(curve, x, y); });
    CHECK(text.find("map: dimension 1 of operand 1 has extent 1 and broadcasts, but is sharded "
                    "over axis 'tp'; redistribute it to Replicate first [") == 0);
    check_equal(map(curve, x, y.redistribute(Replicate{})),
                naive_curve(expected(x, 0), expected(y, 1)));
  });
}

TEST_CASE("extents that do not fit are refused") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<double, Placements<Shard<1>>>(mesh, Extents2{4, 5}, 0);
    const auto y = placed<double, Placements<Replicate>>(mesh, Extents1{4}, 1);
    const auto z = placed<double, Placements<Replicate>>(mesh, Extents1{0}, 1);
    const std::string text = error_of([&] { map(curve, x, y); });
    CHECK(text.find("map: the extents of 'b' in ab,b->ab differ: operand 1 has 4, preceding "
                    "operands have 5 [") == 0);
    CHECK_THROWS_AS(map(curve, x, z), Error);
  });
}

TEST_CASE("a map may change the element type, mix them, and take numbers") {
  on_ranks({1, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<float, Placements<Shard<0>>>(mesh, Extents1{7}, 0);
    const auto n = placed<std::int64_t, Placements<Replicate>>(mesh, Extents1{7}, 1);
    const auto y = map(Exceeds{}, x, n, 0.5);
    static_assert(std::is_same_v<decltype(y)::value_type, bool>);
    static_assert(std::is_same_v<decltype(y)::placements_type, Placements<Shard<0>>>);
    const auto a = expected(x, 0);
    const auto b = expected(n, 1);
    check_equal(y, array_of<bool>({7}, [&](const naive::Indices& i) {
                  return a.at(i) > float(b.at(i)) * 0.5f;
                }));
    const auto z = map(Joined{}, 2.0, x);
    check_equal(z, array_of<std::complex<double>>({7}, [&](const naive::Indices& i) {
                  return std::complex<double>(a.at(i), 2.0);
                }));
  });
}

TEST_CASE("a functor may say in which partials it is linear") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<double, Placements<Partial<Sum>>>(mesh, Extents1{7}, 0);
    const auto a = expected(x, 0);
    const auto half = array_of<double>({7}, [&](const naive::Indices& i) { return a.at(i) / 2; });
    const auto y = map(Halve{}, x);
    static_assert(std::is_same_v<decltype(y)::placements_type, Placements<Partial<Sum>>>);
    check_equal(y, half);
    const auto z = map(PlainHalve{}, x);  // declares nothing, so its operand is reduced
    static_assert(std::is_same_v<decltype(z)::placements_type, Placements<Shard<0>>>);
    check_equal(z, half);
    check_equal(map<Placements<Replicate>>(Halve{}, x), half);
  });
}

TEST_CASE("a map reads transposed operands in place") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<double, Placements<Shard<1>>>(mesh, Extents2{4, 5}, 0);
    const auto y = placed<double, Placements<Shard<0>>>(mesh, Extents2{5, 4}, 1);
    const auto a = expected(x, 0), b = expected(y, 1);
    CommTrace trace(world);
    check_equal(map(curve, transpose(x), y), array_of<double>({5, 4}, [&](const naive::Indices& i) {
                  return curve(a.at({i[1], i[0]}), b.at(i));
                }));
    CHECK(trace.events().empty());
  });
}
