#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "../functors.hpp"
#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Extents1 = std::array<index_t, 1>;
using Extents2 = std::array<index_t, 2>;
using Extents3 = std::array<index_t, 3>;

/// Combines the elements along the dimensions in the mask, starting from `first`.
template <class T, class F>
Array<T> naive_reduction(const Array<T>& a, unsigned mask, const T& first, const F& f) {
  naive::Indices shape;
  for (std::size_t d = 0; d < a.shape.size(); ++d)
    if (!(mask >> d & 1u)) shape.push_back(a.shape[d]);
  Array<T> result = array_of<T>(shape, [&](const naive::Indices&) { return first; });
  for (const naive::Indices& index : naive::all_indices(a.shape)) {
    naive::Indices to;
    for (std::size_t d = 0; d < index.size(); ++d)
      if (!(mask >> d & 1u)) to.push_back(index[d]);
    result.at(to) = f(result.at(to), a.at(index));
  }
  return result;
}

constexpr auto plus = [](const auto& a, const auto& b) {
  return std::remove_cvref_t<decltype(a)>(a + b);
};
constexpr auto larger = [](const auto& a, const auto& b) { return a < b ? b : a; };
constexpr auto smaller = [](const auto& a, const auto& b) { return b < a ? b : a; };

}  // namespace

TEST_CASE("sums are right for all placements and dimensions") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Avg>, Partial<Max>,
                    Partial<Product>>([&](auto p) {
      for (const Extents2 extents : {Extents2{5, 3}, {1, 1}, {0, 3}, {3, 0}, {2, 300}}) {
        const auto x = placed<double, decltype(p)>(mesh, extents, 0);
        if (!exact_averages(x)) continue;
        const auto a = expected(x, 0);
        about(described(x), [&] {
          check_equal(sum(x), naive_reduction(a, 3u, 0.0, plus));
          check_equal(sum(x, dim<0>{}), naive_reduction(a, 1u, 0.0, plus));
          check_equal(sum(x, dim<-1>{}), naive_reduction(a, 2u, 0.0, plus));
        });
      }
    });
    each_placements<1, Replicate, Shard<0>, Shard<2>, Partial<Sum>>([&](auto p) {
      const auto x = placed<std::int64_t, decltype(p)>(mesh, Extents3{3, 4, 5}, 0);
      const auto a = expected(x, 0);
      check_equal(sum(x, dim<0, 2>{}), naive_reduction(a, 5u, std::int64_t(0), plus));
      check_equal(sum(x, dim<1>{}), naive_reduction(a, 2u, std::int64_t(0), plus));
    });
    each_placements<1, Replicate, Shard<0>, Partial<Sum>>([&](auto p) {
      const auto x = placed<std::complex<float>, decltype(p)>(mesh, Extents1{7}, 0);
      check_equal(sum(x), naive_reduction(expected(x, 0), 1u, std::complex<float>(0), plus));
    });
  });
}

TEST_CASE("sums are right on two axes") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    each_placements<2, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Max>>([&](auto p) {
      const auto x = placed<double, decltype(p)>(mesh, Extents2{5, 3}, 0);
      const auto a = expected(x, 0);
      check_equal(sum(x), naive_reduction(a, 3u, 0.0, plus));
      check_equal(sum(x, dim<1>{}), naive_reduction(a, 2u, 0.0, plus));
    });
  });
}

TEST_CASE("maxima and minima are right for all placements") {
  on_ranks({1, 2, 3, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Max>, Partial<Min>>(
        [&](auto p) {
          for (const Extents2 extents : {Extents2{5, 3}, {1, 1}, {2, 300}}) {
            const auto x = placed<double, decltype(p)>(mesh, extents, 0);
            const auto a = expected(x, 0);
            check_equal(max(x), naive_reduction(a, 3u, -1e9, larger));
            check_equal(max(x, dim<1>{}), naive_reduction(a, 2u, -1e9, larger));
            check_equal(min(x, dim<0>{}), naive_reduction(a, 1u, 1e9, smaller));
          }
          const auto n = placed<std::int64_t, decltype(p)>(mesh, Extents2{5, 3}, 0);
          check_equal(min(n), naive_reduction(expected(n, 0), 3u, std::int64_t(1000), smaller));
        });
  });
}

TEST_CASE("a mean is right for uneven shards, and for partial operands") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Max>>([&](auto p) {
      const auto x = placed<double, decltype(p)>(mesh, Extents2{5, 4}, 0);
      const auto total = naive_reduction(expected(x, 0), 3u, 0.0, plus);
      const auto found = mean(x).full_tensor().item();
      CHECK(found == doctest::Approx(total.values[0] / 20));
      const auto columns = naive_reduction(expected(x, 0), 1u, 0.0, plus);
      const auto means = mean(x, dim<0>{}).full_tensor().to(Host{});
      for (index_t j = 0; j < 4; ++j) CHECK(means(j) == doctest::Approx(columns.at({j}) / 5));
    });
    const auto ones = full<half>({70000}, half(1.0f), mesh, Shard<0>{});
    if (world.size() == 1)
      CHECK(float(mean(ones).to_local().item()) == 1.0f);  // no intermediate overflow
    const auto c = placed<std::complex<double>, Placements<Shard<0>>>(mesh, Extents1{4}, 0);
    const auto sum_of_c = naive_reduction(expected(c, 0), 1u, std::complex<double>(0), plus);
    CHECK(mean(c).full_tensor().item() == sum_of_c.values[0] / 4.0);
  });
}

TEST_CASE("a product of all elements") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Partial<Product>, Partial<Sum>>([&](auto p) {
      const auto x = placed<std::int64_t, decltype(p)>(mesh, Extents1{7}, 0);
      const auto a = expected(x, 0);
      std::int64_t all = 1;
      for (const std::int64_t v : a.values) all *= v;
      CHECK(prod(x).full_tensor().item() == all);
      CHECK(prod(x + 9).full_tensor().item() != 0);
    });
  });
}

TEST_CASE("the reduction over ranks stays pending as a partial") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>, Shard<1>>>(mesh, Extents2{5, 3}, 0);
    CommTrace trace(world);
    static_assert(lies<decltype(sum(x)), Partial<Sum>, Partial<Sum>>);
    static_assert(lies<decltype(sum(x, dim<1>{})), Shard<0>, Partial<Sum>>);
    static_assert(lies<decltype(max(x, dim<0>{})), Partial<Max>, Shard<0>>);
    static_assert(lies<decltype(sum(sum(x, dim<0>{}), dim<0>{})), Partial<Sum>, Partial<Sum>>);
    static_assert(lies<decltype(max(sum(x, dim<1>{}))), Partial<Max>, Replicate>);
    sum(x);
    max(x, dim<0>{});
    CHECK(trace.events().empty());
    const auto rows = sum<Placements<Shard<0>, Replicate>>(x, dim<1>{});
    CHECK(trace.count() == 1);
    CHECK(trace.count(CollectiveKind::all_reduce) == 1);
    check_equal(rows, naive_reduction(expected(x, 0), 2u, 0.0, plus));
  });
}

TEST_CASE("sums of bools count") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>>>(mesh, Extents1{7}, 0);
    const auto positive = map(IsPositive{}, x);
    index_t count = 0;
    for (const double v : expected(x, 0).values) count += v > 0;
    CHECK(sum(positive).full_tensor().item() == count);
  });
}

TEST_CASE("the maximum of no elements is an error") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = zeros<float>({0, 3}, mesh, Shard<0>{});
    const std::string text = error_of([&] { max(x, dim<0>{}); });
    CHECK(text.find("max: the reduced dimensions have no elements [shapes [0, 3]; placements "
                    "(Shard(0)); mesh tp=") == 0);
    CHECK_THROWS_AS(min(x), Error);
    CHECK(max(x, dim<1>{}).shape() == Extents1{0});
    CHECK(sum(x).full_tensor().item() == 0.0f);
    CHECK(std::isnan(mean(x).full_tensor().item()));
  });
}

TEST_CASE("ranks outside of a mesh take no part, and know no extents") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, std::vector<int>{0, 1}, TestDevice{});
    const auto local = Tensor<double, 1>({2}, {1, 2}).to(TestDevice{});
    const auto x = from_local(local, mesh, Shard<0>{});  // [4] on every rank of the mesh
    const auto y = x + ones<double>({4}, mesh, Shard<0>{});
    const auto most = max(y);
    if (mesh.is_member()) CHECK(most.full_tensor().item() == 3);
  });
}

TEST_CASE("an extreme plus infinity is infinite, empty shards or not") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = full<float>({1}, 5.0f, mesh, Shard<0>{});
    const float inf = std::numeric_limits<float>::infinity();
    CHECK((max(x) + inf).full_tensor().item() == inf);
    CHECK((max(x) - (-inf)).full_tensor().item() == inf);
    CHECK(((-inf) - max(x)).full_tensor().item() == -inf);
    CHECK((min(x) + (-inf)).full_tensor().item() == -inf);
    CHECK(std::signbit((-zeros<float>({1}, mesh, Shard<0>{})).full_tensor().item()));
  });
}
