#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/indices/one_hot.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Extents1 = std::array<index_t, 1>;
using Extents2 = std::array<index_t, 2>;

/// Addends of unsigned types lie in 0..8.
template <class T, class I>
Array<T> naive_hot(const Array<I>& a, index_t count) {
  naive::Indices shape = a.shape;
  shape.push_back(count);
  return array_of<T>(shape, [&](const naive::Indices& i) {
    return index_t(a.at(naive::Indices(i.begin(), i.end() - 1))) == i.back() ? T(1) : T(0);
  });
}

}  // namespace

TEST_CASE("one-hot rows are right for all placements of the indices and of the result") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Partial<Max>>([&](auto p) {
      for (const index_t n : {0, 1, 5, 8}) {
        const auto x = placed<std::uint32_t, decltype(p)>(mesh, Extents1{n}, 0);
        const auto hot = naive_hot<float>(expected(x, 0), 9);
        check_equal(one_hot<float>(x, 9), hot);
        each_placements<1, Replicate, Shard<0>, Shard<1>>(
            [&](auto to) { check_equal(one_hot<float, decltype(to)>(x, 9), hot); });
      }
    });
    each_placements<1, Replicate, Shard<0>, Shard<1>>([&](auto p) {
      const auto x = placed<std::uint8_t, decltype(p)>(mesh, Extents2{3, 4}, 0);
      check_equal(one_hot<std::int64_t>(x, 11), naive_hot<std::int64_t>(expected(x, 0), 11));
    });
  });
}

TEST_CASE("one-hot rows are made without communication") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto x = placed<std::uint32_t, Placements<Shard<0>, Replicate>>(mesh, Extents1{5}, 0);
    CommTrace trace(world);
    // y[S0,R] = one_hot(x[S0,R])
    const auto y = one_hot<double>(x, 9);
    static_assert(std::is_same_v<decltype(y)::placements_type, Placements<Shard<0>, Replicate>>);
    // y[S0,S1]: every rank makes its columns
    const auto z = one_hot<double, Placements<Shard<0>, Shard<1>>>(x, 9);
    CHECK(trace.events().empty());
    check_equal(y, naive_hot<double>(expected(x, 0), 9));
    check_equal(z, naive_hot<double>(expected(x, 0), 9));
  });
}

TEST_CASE("an index that is not a class is an error that names it") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = full<std::int64_t>({4}, std::int64_t(3), mesh, Shard<0>{});
    const std::string text = error_of([&] { one_hot<float>(x, 3).to_local().to(Host{}); });
    const bool at_once = std::is_same_v<TestDevice, Host>;  // includes the call's description
    CHECK(text.find(at_once ? "one_hot: index 3 is not in [0, 3) [shapes [4]; placements "
                              "(Shard(0))"
                            : "one_hot: index 3 is not in [0, 3)") == 0);
    CHECK_THROWS_AS(one_hot<float>(x, -1), Error);
  });
}
