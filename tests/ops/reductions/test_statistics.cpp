#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/reductions/any_all.hpp>
#include <cleave/ops/reductions/cumsum.hpp>
#include <cleave/ops/reductions/logsumexp.hpp>
#include <cleave/ops/reductions/variance.hpp>

#include "device.hpp"
#include "each_placements.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

template <class T, std::size_t Rank>
Tensor<T, int(Rank)> filled(const std::array<index_t, Rank>& extents, double (*f)(index_t)) {
  const Tensor<T, int(Rank)> x(extents);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = T(float(f(i)));
  return x;
}

template <class X>
auto whole(const X& x) {
  return x.full_tensor().to(Host{});
}

bool is_close(double a, double b, double tolerance = 1e-12) {
  return a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

double variance(const Tensor<double, 2>& x, index_t row, double correction) {
  const index_t n = x.extent(1);
  double mean = 0, squares = 0;
  for (index_t j = 0; j < n; ++j) mean += x(row, j) / double(n);
  for (index_t j = 0; j < n; ++j) squares += (x(row, j) - mean) * (x(row, j) - mean);
  return squares / (double(n) - correction);
}

}  // namespace

TEST_CASE("variances divide by the number of elements less the correction") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto a =
        filled<double>(std::array<index_t, 2>{3, 5}, [](index_t i) { return double(i * i % 7); });
    each_placements<1, Replicate, Shard<0>, Shard<1>>([&](auto p) {
      const auto x = distribute_tensor(a, mesh, p);
      for (const double correction : {0.0, 0.5, 1.0, 2.0}) {
        const auto y = whole(var(x, dim<1>{}, {.correction = correction}));
        const auto s = whole(stddev(x, dim<1>{}, {.correction = correction}));
        for (index_t i = 0; i < 3; ++i) {
          CHECK(is_close(y(i), variance(a, i, correction)));
          CHECK(is_close(s(i), std::sqrt(variance(a, i, correction))));
        }
      }
      CHECK(whole(var(x, dim<1>{}, {.correction = 5}))(0) == endless);
      CHECK(whole(var(x, dim<1>{}, {.correction = 9}))(0) == endless);
    });
  });
}

TEST_CASE("gradients of variances follow the correction") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto a =
        filled<double>(std::array<index_t, 2>{3, 5}, [](index_t i) { return double(i * i % 7); });
    each_placements<1, Replicate, Shard<0>, Shard<1>>([&](auto p) {
      const auto x = requires_grad(distribute_tensor(a, mesh, p));
      backward(sum(var(x, dim<1>{}, {.correction = 0})));
      const auto slope = whole(grad(x));
      for (index_t i = 0; i < 3; ++i) {
        double mean = 0;
        for (index_t j = 0; j < 5; ++j) mean += a(i, j) / 5;
        for (index_t j = 0; j < 5; ++j) CHECK(is_close(slope(i, j), 2 * (a(i, j) - mean) / 5));
      }
    });
    const auto same = requires_grad(full<double>({4}, 2.0, mesh, Shard<0>{}));
    backward(stddev(same));
    for (index_t i = 0; i < 4; ++i) CHECK(whole(grad(same))(i) == 0);
  });
}

TEST_CASE("a variance does not suffer from a large mean") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto a =
        filled<double>(std::array<index_t, 1>{1000}, [](index_t i) { return double(i % 2); });
    const auto x = distribute_tensor(a, mesh, Shard<0>{}) + 1e9;
    CHECK(is_close(whole(var(x, every_dim{}, {.correction = 0})).item(), 0.25));
  });
}

TEST_CASE("a variance of 16-bit floats is computed in float") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto a = filled<half>(std::array<index_t, 1>{4000},
                                [](index_t i) { return i % 2 == 0 ? 300.0 : -300.0; });
    const auto x = distribute_tensor(a, mesh, Shard<0>{});
    CHECK(float(whole(stddev(x)).item()) == 300.0f);
    const auto zeros = distribute_tensor(
        filled<half>(std::array<index_t, 1>{70000}, [](index_t) { return 0.0; }), mesh, Shard<0>{});
    CHECK(is_close(double(float(whole(logsumexp(zeros)).item())), std::log(70000.0), 1e-3));
  });
}

TEST_CASE("a variance over a sharded dimension costs two all-reduces, its square root none") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = ones<double>({4, 7}, mesh, Shard<1>{});
    CommTrace trace(world);
    const auto y = stddev(x, dim<1>{});
    static_assert(std::is_same_v<decltype(y)::placements_type, Placements<Replicate>>);
    CHECK(trace.events().size() == 2);
    CHECK(trace.count(CollectiveKind::all_reduce) == 2);
    trace.clear();
    const auto z = var(x, dim<0>{});
    static_assert(std::is_same_v<decltype(z)::placements_type, Placements<Shard<0>>>);
    CHECK(trace.events().empty());
  });
}

TEST_CASE("logsumexp of large, infinite and no elements is the limit") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto of = [&](const std::vector<double>& elements) {
      const Tensor<double, 1> a({index_t(elements.size())});
      for (std::size_t i = 0; i < elements.size(); ++i) a.data()[i] = elements[i];
      const auto x = requires_grad(distribute_tensor(a, mesh, Shard<0>{}));
      const auto y = logsumexp(x);
      backward(y);
      return std::pair{whole(y.value()).item(), whole(grad(x))};
    };
    CHECK(is_close(of({1000, 1000}).first, 1000 + std::log(2.0)));
    CHECK(is_close(of({-1000, -1000, -endless}).first, -1000 + std::log(2.0)));
    CHECK(of({-endless, -endless}).first == -endless);
    CHECK(of({-endless, -endless}).second(1) == 0);
    CHECK(of({1, endless, 2}).first == endless);
    CHECK(std::isnan(of({1, std::nan(""), 2}).first));
    CHECK(of({}).first == -endless);
    CHECK(of({3, -endless}).second(1) == 0);
  });
}

TEST_CASE("logsumexp over a sharded dimension costs two all-reduces and no gather") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = requires_grad(ones<double>({4, 7}, mesh, Shard<1>{}));
    CommTrace trace(world);
    const auto y = logsumexp(x, dim<1>{});
    CHECK(trace.events().size() == 2);
    CHECK(trace.count(CollectiveKind::all_reduce) == 2);
    trace.clear();
    backward(sum(y));
    CHECK(trace.events().empty());
    CHECK(is_close(whole(grad(x))(3, 6), 1.0 / 7));
  });
}

TEST_CASE("whole lines are summed up where they are, sharded ones receive the totals before") {
  on_ranks({2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    for (const index_t n : {1, 5, 7, 12}) {
      const auto x = ones<std::int32_t>({6, n}, mesh, Shard<1>{});
      CommTrace trace(world);
      const auto down = cumsum(x, dim<0>{});
      static_assert(std::is_same_v<decltype(down)::placements_type, Placements<Shard<1>>>);
      CHECK(trace.events().empty());
      const auto along = cumsum(x, dim<1>{});
      static_assert(std::is_same_v<decltype(along)::placements_type, Placements<Shard<1>>>);
      CHECK(trace.count() == 1);
      const index_t before = x.to_local().extent(1) > 0 ? world.rank() : 0;
      CHECK(trace.received_bytes() == before * 6 * 4);
      CHECK(whole(down)(5, n - 1) == 6);
      for (index_t j = 0; j < n; ++j) CHECK(whole(along)(5, j) == j + 1);
    }
  });
}

TEST_CASE("running sums are right for any strides and numbers of lines") {
  const auto a = filled<std::int64_t>(std::array<index_t, 3>{3, 300, 5},
                                      [](index_t i) { return double(i % 11); });
  const auto check = [](const auto& x, const auto& y, int d) {
    index_t wrong = 0;
    for (index_t i = 0; i < x.extent(0); ++i)
      for (index_t j = 0; j < x.extent(1); ++j)
        for (index_t k = 0; k < x.extent(2); ++k) {
          const index_t at = d == 0 ? i : d == 1 ? j : k;
          const auto before = at == 0  ? 0
                              : d == 0 ? y(i - 1, j, k)
                              : d == 1 ? y(i, j - 1, k)
                                       : y(i, j, k - 1);
          wrong += y(i, j, k) != before + x(i, j, k);
        }
    CHECK(wrong == 0);
  };
  const auto check_all = [&](const auto& x) {
    check(x, cumsum(x, dim<0>{}), 0);
    check(x, cumsum(x, dim<1>{}), 1);
    check(x, cumsum(x, dim<-1>{}), 2);
  };
  check_all(a);
  check_all(permute(a, dim<2, 0, 1>{}));
  check_all(permute(a, dim<1, 2, 0>{}));
  check_all(broadcast_dims<1u>(
      filled<std::int64_t>(std::array<index_t, 2>{4, 2}, [](index_t i) { return double(i); }),
      Tensor<std::int64_t, 3>({3, 4, 2})));
  check_all(Tensor<std::int64_t, 3>({3, 0, 2}));
}

TEST_CASE("running sums of float are accurate") {
  const auto x = filled<float>(std::array<index_t, 1>{1 << 20}, [](index_t) { return 0.1; });
  CHECK(cumsum(x, dim<0>{})((1 << 20) - 1) == float(double(0.1f) * (1 << 20)));
}

TEST_CASE("any, all and counts over sharded dimensions stay partial maxima, minima and sums") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = ones<double>({4, 1}, mesh, Shard<1>{});  // all elements on one rank
    CommTrace trace(world);
    const auto some = any(x, dim<1>{});
    const auto each = all(x);
    const auto count = count_nonzero(x);
    CHECK(trace.events().empty());
    static_assert(std::is_same_v<decltype(some)::placements_type, Placements<Partial<Max>>>);
    static_assert(std::is_same_v<decltype(each)::placements_type, Placements<Partial<Min>>>);
    static_assert(std::is_same_v<decltype(count)::value_type, index_t>);
    CHECK(whole(some)(3));
    CHECK(whole(each).item());
    CHECK(whole(count).item() == 4);
    CHECK_FALSE(whole(any(ones<float>({0, 2}, mesh, Shard<0>{}))).item());
    CHECK(whole(all(ones<float>({0, 2}, mesh, Shard<0>{}))).item());
    CHECK(whole(any(full<float>({3}, std::nanf(""), mesh, Shard<0>{}))).item());
  });
}
