// Polar factors by products, against factors from eigenvectors by Jacobi's rotations of the global
// matrices: placements, batches, gradients, what a rank holds, errors.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/linear_algebra/newton_schulz.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace polar_factors {
namespace {

using C = std::complex<double>;

/// A matrix by rows.
struct Dense {
  index_t rows, columns;
  std::vector<C> values;

  Dense(index_t m, index_t n) : rows(m), columns(n), values(std::size_t(m * n)) {}
  C& at(index_t i, index_t j) { return values[std::size_t(i * columns + j)]; }
  const C& at(index_t i, index_t j) const { return values[std::size_t(i * columns + j)]; }
};

Dense adjoint_of(const Dense& a) {
  Dense y(a.columns, a.rows);
  for (index_t i = 0; i < y.rows; ++i)
    for (index_t j = 0; j < y.columns; ++j) y.at(i, j) = std::conj(a.at(j, i));
  return y;
}

Dense product_of(const Dense& a, const Dense& b) {
  Dense y(a.rows, b.columns);
  for (index_t i = 0; i < y.rows; ++i)
    for (index_t j = 0; j < y.columns; ++j)
      for (index_t k = 0; k < a.columns; ++k) y.at(i, j) += a.at(i, k) * b.at(k, j);
  return y;
}

/// Makes h = v diag(w) v^H diagonal. @return v
Dense diagonalize(Dense& h) {
  const index_t n = h.rows;
  Dense v(n, n);
  for (index_t i = 0; i < n; ++i) v.at(i, i) = 1;
  for (int sweep = 0; sweep < 40; ++sweep)
    for (index_t p = 0; p < n; ++p)
      for (index_t q = p + 1; q < n; ++q) {
        const double size = std::abs(h.at(p, q));
        if (size < 1e-300) continue;
        const C phase = h.at(p, q) / size;
        const double angle = 0.5 * std::atan2(2 * size, h.at(q, q).real() - h.at(p, p).real());
        Dense turn(n, n);  // its columns p and q: the eigenvectors of the two rows and columns
        for (index_t i = 0; i < n; ++i) turn.at(i, i) = 1;
        turn.at(p, p) = std::cos(angle), turn.at(p, q) = std::sin(angle) * phase;
        turn.at(q, p) = -std::sin(angle) * std::conj(phase), turn.at(q, q) = std::cos(angle);
        h = product_of(adjoint_of(turn), product_of(h, turn));
        v = product_of(v, turn);
      }
  return v;
}

/// u diag(f(s / |a|)) v^H for a = u diag(s) v^H of full rank, with the Frobenius norm |a|.
template <class F>
Dense mapped(const Dense& a, const F& f) {
  if (a.rows < a.columns) return adjoint_of(mapped(adjoint_of(a), f));
  double squares = 0;
  for (const C& x : a.values) squares += std::norm(x);
  Dense h = product_of(adjoint_of(a), a);
  const Dense v = diagonalize(h);
  Dense scaled = v;
  for (index_t j = 0; j < v.columns; ++j) {
    const double s = std::sqrt(h.at(j, j).real());
    for (index_t i = 0; i < v.rows; ++i) scaled.at(i, j) *= f(s / std::sqrt(squares)) / s;
  }
  return product_of(a, product_of(scaled, adjoint_of(v)));
}

double to_one(double) { return 1; }
double by_muon(double s) {
  for (int step = 0; step < 5; ++step)
    s = 3.4445 * s - 4.7750 * s * s * s + 2.0315 * s * s * s * s * s;
  return s;
}

/// Matrices [b, m, n] of full rank, with singular values that differ.
template <class T>
T entry(index_t b, index_t i, index_t j) {
  const double x = std::sin(double(1 + 7 * b + 3 * i + 5 * j + 2 * i * j)) + (i == j ? 2 : 0);
  if constexpr (is_complex<T>) return T(x, std::cos(double(b + 2 * i + 11 * j)));
  else return T(x);
}

/// f of each matrix of entries, as a global array.
template <class T, class F>
Array<T> expected_of(const naive::Indices& shape, const F& f) {
  Array<T> y(shape);
  for (index_t b = 0; b < shape[0]; ++b) {
    Dense a(shape[1], shape[2]);
    for (index_t i = 0; i < a.rows; ++i)
      for (index_t j = 0; j < a.columns; ++j) a.at(i, j) = C(entry<T>(b, i, j));
    const Dense q = mapped(a, f);
    for (index_t i = 0; i < a.rows; ++i)
      for (index_t j = 0; j < a.columns; ++j) {
        if constexpr (is_complex<T>) y.at({b, i, j}) = q.at(i, j);
        else y.at({b, i, j}) = T(q.at(i, j).real());
      }
  }
  return y;
}

/// The matrices of entries in placements without Partial, [b, m, n] or, without b, [m, n].
template <class T, class P, int Dims>
auto entries(const auto& mesh, const naive::Indices& shape) {
  std::array<index_t, std::size_t(Dims)> extents{};
  std::copy(shape.end() - Dims, shape.end(), extents.begin());
  using X = DTensor<T, Dims, std::remove_cvref_t<decltype(mesh)>, P>;
  const Shape e(extents);
  const auto elements =
      naive::elements(X::layout, naive::to_indices(e), naive::to_indices(mesh.extents()),
                      naive::to_indices(mesh.coordinate()));
  const Tensor<T, Dims> local(
      to_array<Dims>(local_shape(X::layout, e, mesh.extents(), mesh.coordinate())));
  for (std::size_t n = 0; n < elements.size(); ++n) {
    naive::Indices at = elements[n];
    if (Dims == 2) at.insert(at.begin(), 0);
    local.data()[n] = entry<T>(at[0], at[1], at[2]);
  }
  return X::unchecked(local.to(TestDevice{}), mesh, extents);
}

/// The largest distance of this rank's elements from those of a global array [b, m, n].
template <class X, class T>
double distance(const X& x, const Array<T>& array) {
  const auto elements = naive::elements(X::layout, naive::to_indices(Shape(x.shape())),
                                        naive::to_indices(x.mesh().extents()),
                                        naive::to_indices(x.mesh().coordinate()));
  const auto local = x.to_local().clone().to(Host{});
  REQUIRE(index_t(elements.size()) == local.size());
  double most = 0;
  for (std::size_t n = 0; n < elements.size(); ++n) {
    naive::Indices at = elements[n];
    if (X::dims == 2) at.insert(at.begin(), 0);
    most = std::max(most, double(std::abs(local.data()[n] - array.at(at))));
  }
  return most;
}

template <class T, class P, int Dims>
void check_polar(const auto& mesh, const naive::Indices& shape, double most) {
  const auto x = entries<T, P, Dims>(mesh, shape);
  INFO(described(x));
  const auto q = polar_factor(x);
  static_assert(std::is_same_v<decltype(q), const std::remove_cvref_t<decltype(x)>>);
  CHECK(distance(q, expected_of<T>(shape, to_one)) < most);
  CHECK(distance(newton_schulz(x), expected_of<T>(shape, by_muon)) < most);
}

}  // namespace
}  // namespace polar_factors

using namespace polar_factors;

TEST_CASE("polar factors of matrices under any placements") {
  on_ranks({1, 4}, [](World& world) {
    const index_t rows = world.size() == 4 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {rows, world.size() / rows}, TestDevice{});
    const auto all = [&]<class P>(P) {
      for (const naive::Indices& shape :
           {naive::Indices{1, 5, 3}, naive::Indices{1, 3, 5}, naive::Indices{1, 4, 4},
            naive::Indices{1, 7, 1}, naive::Indices{1, 1, 2}})
        check_polar<double, P, 2>(mesh, shape, 1e-12);
      check_polar<float, P, 2>(mesh, {1, 5, 4}, 2e-5);
      check_polar<C, P, 2>(mesh, {1, 3, 4}, 1e-12);
    };
    all(Placements<Shard<0>, Shard<1>>{});
    all(Placements<Shard<1>, Shard<0>>{});
    all(Placements<Shard<0>, Shard<0>>{});
    all(Placements<Replicate, Shard<1>>{});
  });
}

TEST_CASE("polar factors of batches") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    for (const naive::Indices& shape : {naive::Indices{3, 4, 2}, naive::Indices{1, 2, 3}}) {
      check_polar<double, Placements<Shard<0>, Replicate>, 3>(mesh, shape, 1e-12);
      check_polar<C, Placements<Shard<0>, Shard<1>>, 3>(mesh, shape, 1e-12);
      check_polar<double, Placements<Shard<2>, Shard<1>>, 3>(mesh, shape, 1e-12);
    }
    check_polar<double, Placements<Shard<0>, Shard<1>>, 3>(mesh, {0, 3, 2}, 1e-12);
  });
}

TEST_CASE("the polar factor of a sum over ranks is that of the sum") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto whole = entries<double, Placements<Replicate>, 2>(mesh, {1, 4, 3});
    auto share = whole.to_local().clone();
    share = mul(share, mesh.coordinate()[0] == 0 ? 3. : -2.);
    const auto sum = from_local(share, mesh, Partial<Sum>{});
    const auto q = polar_factor(sum);
    static_assert(lies<std::remove_cvref_t<decltype(q)>, Replicate>);
    CHECK(distance(q, expected_of<double>({1, 4, 3}, to_one)) < 1e-12);
  });
}

TEST_CASE("a nearly singular matrix converges") {
  const Tensor<double, 2> a({3, 2}, {1, 1, 1, 1 + 1e-7, 1, 1 - 1e-7});
  const auto q = polar_factor(a);
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 2; ++j) {
      double dot = 0;
      for (index_t k = 0; k < 3; ++k) dot += q(k, i) * q(k, j);
      CHECK(dot == doctest::Approx(i == j ? 1 : 0).epsilon(1e-13));
    }
}

TEST_CASE("gradients of polar factors are those of differences") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto check = [&]<class P>(P, const naive::Indices& shape, const auto& f,
                                    const auto& of_values) {
      const auto x = requires_grad(entries<double, P, 2>(mesh, shape));
      const auto w = placed<double, P>(mesh, std::array<index_t, 2>{shape[1], shape[2]}, 1);
      const Array<double> weights = expected(w, 1);
      backward(sum(mul(f(x), w)));
      Dense a(shape[1], shape[2]);
      for (index_t i = 0; i < a.rows; ++i)
        for (index_t j = 0; j < a.columns; ++j) a.at(i, j) = entry<double>(0, i, j);
      const auto loss = [&] {
        const Dense y = mapped(a, of_values);
        double total = 0;
        for (index_t i = 0; i < a.rows; ++i)
          for (index_t j = 0; j < a.columns; ++j) total += y.at(i, j).real() * weights.at({i, j});
        return total;
      };
      Array<double> slopes(shape);
      for (index_t i = 0; i < a.rows; ++i)
        for (index_t j = 0; j < a.columns; ++j) {
          const C kept = a.at(i, j);
          a.at(i, j) = kept + 1e-5;
          const double above = loss();
          a.at(i, j) = kept - 1e-5;
          slopes.at({0, i, j}) = (above - loss()) / 2e-5;
          a.at(i, j) = kept;
        }
      CHECK(distance(grad(x), slopes) < 1e-6);
    };
    const auto exact = [](const auto& x) { return polar_factor(x); };
    const auto muon = [](const auto& x) { return newton_schulz(x); };
    check(Placements<Shard<0>, Shard<1>>{}, {1, 4, 3}, exact, to_one);
    check(Placements<Shard<1>, Replicate>{}, {1, 2, 4}, exact, to_one);
    check(Placements<Shard<0>, Shard<1>>{}, {1, 3, 4}, muon, by_muon);
  });
}

TEST_CASE("a rank of a square grid holds its share of every step, and what a product gathers") {
  const index_t n = 4096, q = 16;
  const Budget cost = budget(100, int(q * q), [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {q, q});
    const auto x = zeros<float>({n, n}, mesh, Shard<0>{}, Shard<1>{});
    newton_schulz(x);
  });
  const double own = double(n * n / (q * q)) * sizeof(float);
  CHECK(double(cost.peak_bytes()) < (2 * double(q) + 8) * own);
}

TEST_CASE("matrices without a polar factor are errors, zeros stay zeros") {
  const Tensor<double, 2> singular({2, 2}, {1, 1, 1, 1});
  const std::string error = error_of([&] { polar_factor(singular); });
  CHECK(error.find("polar_factor: it does not converge: a matrix lacks full rank") != error.npos);
  CHECK(error.find("[2, 2]") != error.npos);
  const Tensor<double, 2> infinite({2, 2}, {1, INFINITY, 1, 1});
  CHECK(error_of([&] { polar_factor(infinite); }).find("not finite") != std::string::npos);
  const Tensor<double, 2> zeroes({2, 3}, {0, 0, 0, 0, 0, 0});
  const auto y = newton_schulz(zeroes);
  for (index_t i = 0; i < 6; ++i) CHECK(y.data()[i] == 0);
}
