#include <algorithm>
#include <cmath>
#include <complex>
#include <initializer_list>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/ops/transforms/spectral.hpp>

#include "each_placements.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace {

constexpr double pi = 3.14159265358979323846;

/// f at the points of a grid of [0, 2π)².
template <class T, class F>
Tensor<T, 2> on_grid(index_t rows, index_t columns, const F& f) {
  const Tensor<T, 2> x({rows, columns});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j)
      x(i, j) = f(2 * pi * double(i) / double(rows), 2 * pi * double(j) / double(columns));
  return x;
}

template <class X, class T>
double largest_error(const X& x, const Tensor<T, 2>& expected) {
  const auto found = x.full_tensor().clone();
  double worst = 0;
  for (index_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(found.data()[i] - expected.data()[i]));
  return worst;
}

}  // namespace

TEST_CASE("functions of wave numbers differentiate periodic fields and solve Poisson's equation") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto wave = [](double a, double b) {
      return std::sin(2 * a) * std::cos(3 * b) + std::cos(b);
    };
    for (const auto& [rows, columns] : {std::pair<index_t, index_t>{9, 8}, {12, 7}}) {
      const auto u = on_grid<double>(rows, columns, wave);
      const auto slope = on_grid<double>(
          rows, columns, [](double a, double b) { return 2 * std::cos(2 * a) * std::cos(3 * b); });
      const auto load = on_grid<double>(rows, columns, [](double a, double b) {
        return 13 * std::sin(2 * a) * std::cos(3 * b) + std::cos(b);
      });
      each_placements<1, Replicate, Shard<0>, Shard<1>>([&](auto p) {
        const auto placed = distribute_tensor(u, mesh, p);
        const auto first = [](const auto& k) { return std::complex<double>(0, k[0]); };
        CHECK(largest_error(spectral(placed, first), slope) < 1e-13);
        const auto inverse = [](const auto& k) { return k.norm2() == 0 ? 0 : 1 / k.norm2(); };
        CHECK(largest_error(spectral(distribute_tensor(load, mesh, p), inverse), u) < 1e-13);
        CHECK(largest_error(spectral(cast<std::complex<double>>(placed), first),
                            cast<std::complex<double>>(slope)) < 1e-13);
      });
    }
  });
}

TEST_CASE("frequencies are NumPy's, and shifts move 0 to the middle and back") {
  const auto same = [](const Tensor<double, 1>& x, std::initializer_list<double> expected) {
    return x.size() == index_t(expected.size()) &&
           std::equal(expected.begin(), expected.end(), x.data());
  };
  CHECK(same(fftfreq(4, 0.5), {0, 0.5, -1, -0.5}));
  CHECK(same(fftfreq(5, 0.2), {0, 1, 2, -2, -1}));
  CHECK(same(fftfreq(0), {}));
  CHECK(same(fftshift(fftfreq(4, 0.25)).clone(), {-2, -1, 0, 1}));
  CHECK(same(fftshift(fftfreq(5, 0.2)).clone(), {-2, -1, 0, 1, 2}));
  CHECK(same(ifftshift(fftshift(fftfreq(5, 0.2))).clone(), {0, 1, 2, -2, -1}));
}
