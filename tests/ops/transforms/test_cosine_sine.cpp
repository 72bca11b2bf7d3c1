#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/transforms/cosine_sine.hpp>

#include "each_placements.hpp"
#include "errors.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace cosine_sine {
namespace {

using Volume = Tensor<double, 3>;
constexpr double pi = 3.14159265358979323846;

Volume volume(const std::array<index_t, 3>& shape) {
  const Volume x(shape);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(double(5 * i * i + 2));
  return x;
}

/// What SciPy's documentation states for element (k, j) of a matrix, without norm.
double wave(int type, bool is_sine, index_t n, index_t k, index_t j) {
  const double N = double(n), K = double(k), J = double(j);
  const double sign = k % 2 == 0 ? 1 : -1;
  if (!is_sine && type == 1)
    return j == 0 ? 1 : j == n - 1 ? sign : 2 * std::cos(pi * K * J / (N - 1));
  if (!is_sine && type == 2) return 2 * std::cos(pi * K * (2 * J + 1) / (2 * N));
  if (!is_sine && type == 3) return j == 0 ? 1 : 2 * std::cos(pi * (2 * K + 1) * J / (2 * N));
  if (!is_sine) return 2 * std::cos(pi * (2 * K + 1) * (2 * J + 1) / (4 * N));
  if (type == 1) return 2 * std::sin(pi * (K + 1) * (J + 1) / (N + 1));
  if (type == 2) return 2 * std::sin(pi * (K + 1) * (2 * J + 1) / (2 * N));
  if (type == 3) return j == n - 1 ? sign : 2 * std::sin(pi * (2 * K + 1) * (J + 1) / (2 * N));
  return 2 * std::sin(pi * (2 * K + 1) * (2 * J + 1) / (4 * N));
}

double& at(const Volume& x, const naive::Indices& i) {
  return x.data()[(i[0] * x.shape()[1] + i[1]) * x.shape()[2] + i[2]];
}

/// The sums over j of x[j] · wave(k, j) along dimension d.
Volume naive_transform(const Volume& x, int d, int type, bool is_sine) {
  const Volume y(x.shape());
  const index_t n = x.shape()[std::size_t(d)];
  for (const naive::Indices& index : naive::all_indices(naive::to_indices(Shape(x.shape())))) {
    double sum = 0;
    for (index_t j = 0; j < n; ++j) {
      naive::Indices from = index;
      from[std::size_t(d)] = j;
      sum += at(x, from) * wave(type, is_sine, n, index[std::size_t(d)], j);
    }
    at(y, index) = sum;
  }
  return y;
}

/// The distance of two arrays, relative to the size of the second one.
double distance(const Volume& a, const Volume& b) {
  double difference = 0, size = 0;
  for (index_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a.data()[i] - b.data()[i], 2);
    size += std::pow(b.data()[i], 2);
  }
  return size == 0 ? difference : std::sqrt(difference / size);
}

bool same_bits(const Volume& a, const Volume& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), std::size_t(a.size()) * sizeof(double)) == 0;
}

template <class D>
auto transformed(const auto& x, D over, int type, bool is_sine, Norm norm = Norm::backward) {
  return is_sine ? dst(x, over, type, norm) : dct(x, over, type, norm);
}
template <class D>
auto inverted(const auto& x, D over, int type, bool is_sine, Norm norm = Norm::backward) {
  return is_sine ? idst(x, over, type, norm) : idct(x, over, type, norm);
}

/// Calls f(type, is_sine) for all of them.
template <class F>
void each_type(const F& f) {
  for (const bool is_sine : {false, true})
    for (int type = 1; type <= 4; ++type) {
      CAPTURE(is_sine);
      CAPTURE(type);
      f(type, is_sine);
    }
}

constexpr std::array<std::array<index_t, 3>, 4> shapes{
    {{4, 6, 5}, {7, 3, 17}, {2, 2, 9}, {13, 2, 3}}};

}  // namespace

TEST_CASE("cosine and sine transforms are SciPy's sums, for all types, dimensions and factors") {
  for (const auto& shape : shapes) {
    const Volume x = volume(shape);
    each_type([&](int type, bool is_sine) {
      const Volume two = naive_transform(naive_transform(x, 0, type, is_sine), 2, type, is_sine);
      CHECK(distance(transformed(x, dim<2, 0>{}, type, is_sine), two) < 4e-15);
      CHECK(distance(transformed(x, dim<2, 0>{}, type, is_sine, Norm::none), two) < 4e-15);
      const Volume one = naive_transform(x, 1, type, is_sine);
      CHECK(distance(transformed(x, dim<-2>{}, type, is_sine), one) < 4e-15);
      const double beyond = type != 1 ? 0 : is_sine ? 1 : -1;
      const double factor = 1 / (2 * (double(shape[1]) + beyond));
      CHECK(distance(transformed(x, dim<1>{}, type, is_sine, Norm::forward), mul(one, factor)) <
            2e-15);
      const auto single = transformed(cast<float>(x), dim<1>{}, type, is_sine);
      CHECK(distance(cast<double>(single), one) < 1e-6);
      for (const Norm norm : {Norm::backward, Norm::forward, Norm::ortho}) {
        const auto y = transformed(x, every_dim{}, type, is_sine, norm);
        CHECK(distance(inverted(y, every_dim{}, type, is_sine, norm), x) < 5e-15);
        if (norm == Norm::ortho)  // an orthogonal matrix keeps lengths
          CHECK(sum(mul(y, y)).item() == doctest::Approx(sum(mul(x, x)).item()).epsilon(1e-14));
      }
    });
  }
  CHECK(dct(Volume({3, 0, 2})).size() == 0);
}

TEST_CASE("an orthogonal transform of a constant is its length, and of waves a unit vector") {
  const index_t n = 5;
  const Tensor<double, 1> ones({n}), waves({n});
  for (index_t j = 0; j < n; ++j)
    ones(j) = 1, waves(j) = std::cos(pi * 2 * (double(j) + 0.5) / double(n)) * std::sqrt(0.4);
  const auto length = dct(ones, dim<0>{}, 2, Norm::ortho);
  const auto unit = dct(waves, dim<0>{}, 2, Norm::ortho);
  for (index_t k = 0; k < n; ++k) {
    CHECK(std::abs(length(k) - (k == 0 ? std::sqrt(5.0) : 0.0)) < 1e-15);
    CHECK(std::abs(unit(k) - (k == 2 ? 1.0 : 0.0)) < 1e-15);
  }
}

TEST_CASE("sharded dimensions are exchanged as for fft, and bits do not depend on the mesh") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto alone = init_device_mesh<pp, dp>(world, {world.size(), 1});
    const auto grid = init_device_mesh<dp, tp>(world, {world.size(), 1});
    for (const auto& shape : shapes) {
      const Volume x = volume(shape);
      const auto pencils = distribute_tensor(x, grid, Shard<0>{}, Shard<1>{});
      static_assert(std::is_same_v<typename decltype(dct(pencils))::placements_type,
                                   Placements<Shard<1>, Shard<2>>>);
      each_placements<1, Replicate, Shard<0>, Shard<1>, Shard<2>>([&]<class P>(Placements<P>) {
        const auto placed = distribute_tensor(x, mesh, P{});
        const auto one = distribute_tensor(x, alone, Replicate{}, P{});
        each_type([&](int type, bool is_sine) {
          const CommTrace trace(world);
          const auto y = transformed(placed, every_dim{}, type, is_sine);
          const bool moves = world.size() > 1 && !std::is_same_v<P, Replicate>;
          CHECK(int(trace.events().size()) == int(moves));
          const Volume whole = y.full_tensor().clone();
          CHECK(
              same_bits(whole, transformed(one, every_dim{}, type, is_sine).full_tensor().clone()));
          CHECK(distance(whole, transformed(x, every_dim{}, type, is_sine)) < 5e-15);
          CHECK(distance(inverted(y, every_dim{}, type, is_sine).full_tensor().clone(), x) < 5e-15);
        });
      });
    }
  });
}

TEST_CASE("the gradient is the transposed matrix, for all types and factors") {
  const index_t n = 6;
  const Tensor<double, 1> weights({n}), start({n});
  for (index_t i = 0; i < n; ++i) weights(i) = std::sin(double(3 * i + 1)), start(i) = double(i);
  each_type([&](int type, bool is_sine) {
    for (const Norm norm : {Norm::backward, Norm::forward, Norm::ortho}) {
      const auto x = requires_grad(start.clone());
      backward(sum(mul(transformed(x, dim<0>{}, type, is_sine, norm), weights)));
      for (index_t j = 0; j < n; ++j) {
        const Tensor<double, 1> unit({n});
        for (index_t i = 0; i < n; ++i) unit(i) = i == j ? 1 : 0;
        const auto column = transformed(unit, dim<0>{}, type, is_sine, norm);
        CHECK(std::abs(grad(x)(j) - sum(mul(column, weights)).item()) < 1e-14);
      }
    }
  });
}

TEST_CASE("types that do not exist, and a single element of type 1, are errors") {
  const Volume x = volume({4, 1, 5});
  CHECK(error_of([&] { dst(x, dim<0>{}, 5); }) ==
        "dst: the type is 5; it must be 1, 2, 3 or 4 [shapes [4, 1, 5]]");
  CHECK(error_of([&] {
          idct(x, dim<0>{}, 0);
        }).starts_with("idct: the type is 0; it must be 1, 2, 3 or 4"));
  CHECK(error_of([&] { dct(x, dim<0, 1>{}, 1); }) ==
        "dct: type 1 requires two or more elements [shapes [4, 1, 5]]");
  CHECK(distance(dst(x, dim<1>{}, 1), mul(x, 2.0)) < 1e-15);
}

}  // namespace cosine_sine
