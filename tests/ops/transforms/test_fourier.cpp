#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/ops/transforms/fourier.hpp>
#include <cleave/tensor/host_cache.hpp>

#include "each_placements.hpp"
#include "errors.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace fourier {
namespace {

using Complex = std::complex<double>;
using Volume = Tensor<Complex, 3>;

/// A global array whose elements depend on their index only.
Volume volume(const std::array<index_t, 3>& shape) {
  const Volume x(shape);
  for (index_t i = 0; i < x.size(); ++i)
    x.data()[i] = {std::sin(double(5 * i * i + 2)), std::cos(double(3 * i + i * i))};
  return x;
}

/// The sums over j of x[j] · exp(sign · 2πi jk / n) along dimension d.
Volume naive_transform(const Volume& x, int d, int sign) {
  const Volume y(x.shape());
  const index_t n = x.shape()[std::size_t(d)];
  const auto at = [](const Volume& of, const naive::Indices& index) -> Complex& {
    return of.data()[(index[0] * of.shape()[1] + index[1]) * of.shape()[2] + index[2]];
  };
  for (naive::Indices index : naive::all_indices(naive::to_indices(Shape(x.shape())))) {
    Complex sum = 0;
    const index_t k = index[std::size_t(d)];
    for (index_t j = 0; j < n; ++j) {
      naive::Indices from = index;
      from[std::size_t(d)] = j;
      const double angle = sign * 2 * 3.14159265358979323846 * double(j * k % n) / double(n);
      sum += at(x, from) * Complex(std::cos(angle), std::sin(angle));
    }
    at(y, index) = sum;
  }
  return y;
}

/// The distance of two arrays, relative to the size of the second one.
double distance(const Volume& a, const Volume& b) {
  double difference = 0, size = 0;
  for (index_t i = 0; i < a.size(); ++i) {
    difference += std::norm(a.data()[i] - b.data()[i]);
    size += std::norm(b.data()[i]);
  }
  return size == 0 ? difference : std::sqrt(difference / size);
}

template <class Y>
bool same_bits(const Y& a, const Y& b) {
  return a.shape() == b.shape() &&
         (a.size() == 0 ||
          std::memcmp(a.data(), b.data(), std::size_t(a.size()) * sizeof(typename Y::value_type)) ==
              0);
}

template <class Y>
auto whole(const Y& y) {
  return y.full_tensor().clone();
}

/// The number of collectives that f() calls.
template <class F>
int collectives_of(const World& world, const F& f) {
  const CommTrace trace(world);
  f();
  return int(trace.events().size());
}

constexpr std::array<std::array<index_t, 3>, 4> shapes{
    {{4, 6, 5}, {7, 3, 8}, {1, 2, 9}, {3, 1, 1}}};

/// The array under placements of a mesh whose axes that shard it have one rank each.
template <class T, class... P>
auto on_one_rank(const World& world, const Tensor<T, 3>& x, Placements<P...>) {
  if constexpr (sizeof...(P) == 1)
    return distribute_tensor(x, init_device_mesh<pp, dp>(world, {world.size(), 1}), Replicate{},
                             P{}...);
  else
    return distribute_tensor(x, init_device_mesh<pp, dp, tp>(world, {world.size(), 1, 1}),
                             Replicate{}, P{}...);
}

/// Transforms there and back have the bits of one rank.
/// @param returns  whether the result is placed as the array was
template <class P, class Mesh>
void check_round_trip(const World& world, const Mesh& mesh, P p, int exchanges, bool returns) {
  for (const auto& shape : shapes) {
    const Volume x = volume(shape);
    const auto placed = distribute_tensor(x, mesh, p);
    const auto alone = on_one_rank(world, x, p);
    CAPTURE(to_string(decltype(placed)::layout));
    const auto y = fft(placed);
    const auto back = ifft(y);
    CHECK(std::is_same_v<decltype(back), decltype(placed)> == returns);
    CHECK(same_bits(whole(y), whole(fft(alone))));
    CHECK(same_bits(whole(back), whole(ifft(fft(alone)))));
    CHECK(distance(whole(y), fft(x)) < 1e-14);
    CHECK(distance(whole(back), x) <= 5e-16 * (1 + std::log2(double(x.size()))));
    CHECK(collectives_of(world, [&] { ifft(fft(placed)); }) == exchanges);
  }
}

}  // namespace

TEST_CASE("transforms are sums of roots of unity, for all dimensions and factors") {
  for (const auto& shape : shapes) {
    const Volume x = volume(shape);
    const auto steps = [&](int sign) {
      return naive_transform(naive_transform(naive_transform(x, 0, sign), 1, sign), 2, sign);
    };
    const double n = double(x.size());
    CHECK(distance(fft(x), steps(-1)) < 1e-14);
    CHECK(distance(fft(x, dim<2, 0>{}), naive_transform(naive_transform(x, 0, -1), 2, -1)) < 1e-14);
    CHECK(distance(fft(x, every_dim{}, Norm::forward), mul(steps(-1), 1 / n)) < 1e-14);
    CHECK(distance(fft(x, every_dim{}, Norm::ortho), mul(steps(-1), 1 / std::sqrt(n))) < 1e-14);
    CHECK(distance(ifft(x, dim<-2>{}, Norm::none), naive_transform(x, 1, 1)) < 1e-14);
    CHECK(distance(ifft(x), mul(steps(1), 1 / n)) < 1e-14);
    CHECK(distance(ifft(fft(x)), x) <= 5e-16 * std::log2(n));
    const auto single = fft(cast<std::complex<float>>(x));
    CHECK(distance(cast<Complex>(single), steps(-1)) < 1e-6);
  }
}

TEST_CASE("slabs take one exchange there and one back, whole arrays none") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const int one = world.size() > 1 ? 1 : 0;
    check_round_trip(world, mesh, Placements<Replicate>{}, 0, true);
    check_round_trip(world, mesh, Placements<Shard<0>>{}, 2 * one, true);
    check_round_trip(world, mesh, Placements<Shard<2>>{}, 2 * one, false);
    using Slab = decltype(fft(distribute_tensor(volume({2, 2, 2}), mesh, Shard<0>{})));
    static_assert(std::is_same_v<typename Slab::placements_type, Placements<Shard<1>>>);
    // a dimension that is not transformed stays sharded; asked placements are given
    const auto x = distribute_tensor(volume({4, 6, 5}), mesh, Shard<0>{});
    CHECK(collectives_of(world, [&] { fft(x, dim<1, 2>{}); }) == 0);
    const auto asked = fft<Placements<Shard<0>>>(x, dim<0>{});
    static_assert(std::is_same_v<typename decltype(asked)::placements_type, Placements<Shard<0>>>);
    CHECK(same_bits(whole(asked), fft(volume({4, 6, 5}), dim<0>{})));
    // addends are added first
    const auto part = distribute_tensor(volume({4, 6, 5}), mesh, Shard<1>{});
    const auto total = sum(part, dim<1>{});
    CHECK(distance(Volume(unsqueeze(whole(fft(total)), dim<2>{}).clone()),
                   unsqueeze(fft(sum(volume({4, 6, 5}), dim<1>{})), dim<2>{}).clone()) < 1e-14);
  });
}

TEST_CASE("pencils take two exchanges each way, and all placements give the bits of one rank") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2});
    check_round_trip(world, mesh, Placements<Shard<0>, Shard<1>>{}, 4, true);
    check_round_trip(world, mesh, Placements<Shard<0>, Shard<0>>{}, 2, true);
    check_round_trip(world, mesh, Placements<Replicate, Shard<2>>{}, 2, false);
    const Volume x = volume({5, 3, 4});
    each_placements<2, Replicate, Shard<0>, Shard<1>, Shard<2>>([&](auto p) {
      const auto placed = distribute_tensor(x, mesh, p);
      CAPTURE(to_string(decltype(placed)::layout));
      const auto alone = on_one_rank(world, x, p);
      CHECK(same_bits(whole(fft(placed)), whole(fft(alone))));
      CHECK(same_bits(whole(ifft(placed, dim<0, 2>{})), whole(ifft(alone, dim<0, 2>{}))));
      CHECK(distance(whole(fft(placed)), fft(x)) < 1e-14);
    });
    const Tensor<double, 1> twos({7});
    for (index_t i = 0; i < 7; ++i) twos(i) = 2;
    const auto line = distribute_tensor(twos, mesh, Shard<0>{}, Replicate{});
    CHECK(std::abs(whole(fft(line))(0) - 14.0) < 1e-14);  // no other dimension: brought together
  });
}

TEST_CASE("a batch stays whole, and its fields are exchanged together") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const int one = world.size() > 1 ? 1 : 0;
    for (const auto& shape : shapes) {
      const Volume x = volume(shape);
      const auto placed = distribute_tensor(x, mesh, Shard<1>{});
      const auto y = fft(placed, dim<1, 2>{});
      static_assert(std::is_same_v<typename decltype(y)::placements_type, Placements<Shard<2>>>);
      CHECK(distance(whole(y), naive_transform(naive_transform(x, 1, -1), 2, -1)) < 1e-14);
      CHECK(collectives_of(world, [&] { (void)fft(placed, dim<1, 2>{}); }) == one);
      const auto z = rfft(real(placed), dim<1, 2>{});
      static_assert(std::is_same_v<typename decltype(z)::placements_type, Placements<Shard<2>>>);
      CHECK(distance(whole(z), rfft(real(x), dim<1, 2>{})) < 1e-14);
      const auto back = irfft(z, dim<1, 2>{}, shape[2]);
      static_assert(std::is_same_v<typename decltype(back)::placements_type, Placements<Shard<1>>>);
    }
  });
}

TEST_CASE("real transforms keep half, for even and odd lengths, on any mesh") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    for (const auto& shape : shapes) {
      const auto x = real(volume(shape)).clone();
      const index_t n = shape[2];
      const auto y = rfft(x, dim<0, 1, 2>{});
      CHECK(y.shape() == std::array<index_t, 3>{shape[0], shape[1], n / 2 + 1});
      CHECK(distance(y, Volume(slice(fft(x), dim<2>{}, 0, n / 2 + 1).clone())) < 1e-14);
      const auto back = irfft(y, dim<0, 1, 2>{}, n);
      CHECK(distance(cast<Complex>(back), cast<Complex>(x)) < 1e-14);
      each_placements<1, Replicate, Shard<0>, Shard<1>, Shard<2>>([&](auto p) {
        const auto placed = distribute_tensor(x, mesh, p);
        const auto there = rfft(placed, dim<0, 1, 2>{});
        const auto alone = rfft(on_one_rank(world, x, p), dim<0, 1, 2>{});
        CHECK(same_bits(whole(there), whole(alone)));
        CHECK(same_bits(whole(irfft(there, dim<0, 1, 2>{}, n)),
                        whole(irfft(alone, dim<0, 1, 2>{}, n))));
        CHECK(distance(whole(there), y) < 1e-14);
      });
    }
  });
}

TEST_CASE("extents to 17 and primes give the sums under all placements of one and two axes") {
  on_ranks({4}, [](World& world) {
    const auto line = init_device_mesh<dp>(world, {4});
    const auto square = init_device_mesh<dp, tp>(world, {2, 2});
    for (const index_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 37, 101}) {
      const Volume x = volume({2, 3, n});
      const Volume sums = naive_transform(naive_transform(naive_transform(x, 0, -1), 1, -1), 2, -1);
      const auto real_x = real(x).clone();
      const Volume complex_x = cast<Complex>(real_x).clone();
      const Volume all_real_sums =
          naive_transform(naive_transform(naive_transform(complex_x, 0, -1), 1, -1), 2, -1);
      const Volume real_sums = slice(all_real_sums, dim<2>{}, 0, n / 2 + 1).clone();
      const double round_trip = 5e-16 * std::log2(double(x.size()));
      const auto check = [&](const auto& mesh, auto p) {
        CAPTURE(n);
        const auto placed = distribute_tensor(x, mesh, p);
        CAPTURE(to_string(decltype(placed)::layout));
        const auto y = fft(placed);
        CHECK(distance(whole(y), sums) < 1e-14);
        CHECK(distance(whole(ifft(y)), x) <= round_trip);
        const auto z = rfft(distribute_tensor(real_x, mesh, p), dim<0, 1, 2>{});
        CHECK(distance(whole(z), real_sums) < 1e-14);
        const auto back = irfft(z, dim<0, 1, 2>{}, n);
        CHECK(distance(cast<Complex>(whole(back)).clone(), complex_x) <= round_trip);
      };
      each_placements<1, Replicate, Shard<0>, Shard<1>, Shard<2>>([&](auto p) { check(line, p); });
      each_placements<2, Replicate, Shard<0>, Shard<1>, Shard<2>>(
          [&](auto p) { check(square, p); });
    }
  });
}

TEST_CASE("a transform holds its argument, its result and one buffer") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = distribute_tensor(volume({32, 32, 32}), mesh, Shard<0>{});
    const std::size_t part = std::size_t(x.to_local().size()) * sizeof(Complex);
    const auto most = [&](const auto& f) {
      const std::size_t before = memory_stats().allocated;
      reset_memory_peak();
      f();
      return memory_stats().peak - before;
    };
    CHECK(most([&] { (void)fft(x); }) >= part);
    CHECK(most([&] { (void)fft(x); }) <= 2 * part + part / 8);
    CHECK(most([&] { (void)ifft(x); }) <= 2 * part + part / 8);
    const auto real_x = real(x);
    const std::size_t half = part * 17 / 32;
    CHECK(most([&] { (void)rfft(real_x, dim<0, 1, 2>{}); }) <= 2 * half + half / 8);
  });
}

TEST_CASE("a transform of pencils holds its argument, its result and one buffer") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto x = distribute_tensor(volume({32, 32, 32}), mesh, Shard<0>{}, Shard<1>{});
    const std::size_t part = std::size_t(x.to_local().size()) * sizeof(Complex);
    const std::size_t before = memory_stats().allocated;
    reset_memory_peak();
    (void)fft(x);
    CHECK(memory_stats().peak - before <= 2 * part + part / 8);
  });
}

TEST_CASE("lengths that do not fit are errors with shapes") {
  const Volume x = volume({4, 6, 5});
  CHECK(error_of([&] { irfft(x, dim<2>{}, 12); }) ==
        "irfft: 12 real elements have 7 complex ones, not 5 [shapes [4, 6, 5]]");
  CHECK(error_of([&] {
          irfft(slice(x, dim<2>{}, 0, 1), dim<2>{});
        }).find("irfft: 0 real elements") == 0);
  CHECK(error_of([&] {
          rfft(Tensor<double, 2>({3, 0}), dim<1>{});
        }).find("rfft: the dimension has no elements") == 0);
  CHECK(fft(Volume({3, 0, 2})).size() == 0);
}

}  // namespace fourier
