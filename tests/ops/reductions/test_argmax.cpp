#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/reductions/argmax.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Extents1 = std::array<index_t, 1>;
using Extents2 = std::array<index_t, 2>;

template <class T, class Better>
Array<index_t> naive_arg(const Array<T>& a, std::size_t dim, const Better& better) {
  const std::size_t other = 1 - dim;
  return array_of<index_t>({a.shape[other]}, [&](const naive::Indices& at) {
    naive::Indices index{0, 0};
    index[other] = at[0];
    index_t best = 0;
    for (index_t i = 1; i < a.shape[dim]; ++i) {
      naive::Indices challenger = index, champion = index;
      challenger[dim] = i;
      champion[dim] = best;
      if (better(a.at(challenger), a.at(champion))) best = i;
    }
    return best;
  });
}

constexpr auto is_lower = [](const auto& a, const auto& b) { return a < b; };
constexpr auto is_higher = [](const auto& a, const auto& b) { return b < a; };

template <class T, class P, class Mesh>
void check_args(const Mesh& mesh, const Extents2& extents) {
  const auto x = placed<T, P>(mesh, extents, 0);  // few distinct values, many ties
  const auto a = expected(x, 0);
  about(described(x), [&] {
    check_equal(argmin(x, dim<0>{}), naive_arg(a, 0, is_lower));
    check_equal(argmin(x, dim<1>{}), naive_arg(a, 1, is_lower));
    check_equal(argmax(x, dim<-1>{}), naive_arg(a, 1, is_higher));
  });
}

}  // namespace

TEST_CASE("extreme elements are found for all placements") {
  on_ranks({1, 2, 3, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Max>>([&](auto p) {
      for (const Extents2 extents : {Extents2{5, 3}, {1, 1}, {2, 300}, {40, 2}}) {
        check_args<float, decltype(p)>(mesh, extents);   // keys
        check_args<double, decltype(p)>(mesh, extents);  // values, then indices
      }
    });
    each_placements<1, Shard<0>, Shard<1>>([&](auto p) {
      check_args<std::int32_t, decltype(p)>(mesh, {5, 3});
      check_args<std::uint8_t, decltype(p)>(mesh, {5, 3});
      check_args<std::int64_t, decltype(p)>(mesh, {5, 3});
      check_args<half, decltype(p)>(mesh, {5, 3});
    });
  });
}

TEST_CASE("extreme elements are found on two axes") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    each_placements<2, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      check_args<float, decltype(p)>(mesh, {5, 3});
      check_args<double, decltype(p)>(mesh, {5, 3});
    });
  });
}

TEST_CASE("a sharded dimension costs one all-reduce of eight bytes per result") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<float, Placements<Shard<1>>>(mesh, Extents2{8, 9}, 0);
    const auto y = placed<double, Placements<Shard<1>>>(mesh, Extents2{8, 9}, 0);
    CommTrace trace(world);
    // i[R] = argmin(x[S1], dim<1>)
    const auto i = argmin(x, dim<1>{});
    static_assert(std::is_same_v<decltype(i)::placements_type, Placements<Replicate>>);
    CHECK(trace.count() == 1);
    CHECK(trace.count(CollectiveKind::all_reduce) == 1);
    CHECK(trace.received_bytes() == 2 * 8 * 8 * (world.size() - 1) / world.size());
    trace.clear();
    argmin(y, dim<1>{});
    CHECK(trace.count(CollectiveKind::all_reduce) == 2);
    CHECK(trace.count() == 2);
    trace.clear();
    argmin(y, dim<0>{});
    CHECK(trace.events().empty());
    trace.clear();
    const auto s = argmin<Placements<Shard<0>>>(x, dim<1>{});
    CHECK(trace.count() == 1);
    CHECK(trace.count(CollectiveKind::reduce_scatter) == 1);
    check_equal(s, naive_arg(expected(x, 0), 1, is_lower));
    check_equal(argmax<Placements<Shard<0>>>(y, dim<1>{}), naive_arg(expected(y, 0), 1, is_higher));
  });
}

TEST_CASE("signs, zeros, infinities and NaNs are ordered across ranks as within one") {
  on_ranks({1, 2, 3, 5}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto test = [&]<class T>(T) {
      const T inf = T(std::numeric_limits<float>::infinity()), nan = T(std::nanf(""));
      const auto found = [&](std::initializer_list<T> values, auto arg) {
        const auto all = Tensor<T, 1>({index_t(values.size())}, values).to(TestDevice{});
        auto x = empty<T>({all.extent(0)}, mesh, Shard<0>{});
        x.to_local().copy_(all[x.local_box()]);
        return arg(x).full_tensor().item();
      };
      const auto least = [](const auto& x) { return argmin(x, dim<0>{}); };
      const auto most = [](const auto& x) { return argmax(x, dim<0>{}); };
      CHECK(found({T(3), T(-1), T(-2), T(5), T(-2)}, least) == 2);
      CHECK(found({T(3), T(-1), T(5), T(5), T(-2)}, most) == 2);
      CHECK(found({T(1), T(0), T(-0.0f), T(0), T(2)}, least) == 1);
      CHECK(found({T(-1), T(-0.0f), T(0), T(-3), T(0)}, most) == 1);
      CHECK(found({inf, inf, inf}, least) == 0);
      CHECK(found({T(1), -inf, T(2), -inf}, least) == 1);
      CHECK(found({T(1), inf, T(2), inf}, most) == 1);
      CHECK(found({T(1), -inf, T(2), nan, nan}, least) == 3);
      CHECK(found({T(1), inf, T(2), nan, nan}, most) == 3);
    };
    test(0.0f);
    test(0.0);
    test(half(0.0f));
  });
}

TEST_CASE("the maximum of no elements is an error") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = zeros<float>({3, 0}, mesh, Shard<0>{});
    const std::string text = error_of([&] { argmin(x, dim<1>{}); });
    CHECK(text.find("argmin: the reduced dimensions have no elements [shapes [3, 0]") == 0);
    CHECK(argmax(x, dim<0>{}).shape() == Extents1{0});
  });
}
