// PowerSGD: a communication hook that sends the gradients of matrices in low-rank form.
//
// T. Vogels, S. P. Karimireddy, M. Jaggi: PowerSGD: Practical low-rank gradient compression for
// distributed optimization. NeurIPS 2019. With M the gradient of a rank:
//
//     P = sum over ranks of M Q        its columns made orthonormal
//     Q = sum over ranks of M^T P      the next step starts from it
//     M becomes P Q^T; a rank adds the error of its own M to its next gradient
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/core/random_state.hpp>
#include <cleave/kernels/host/orthonormal_rows.hpp>
#include <cleave/parallel/error_feedback.hpp>

namespace cleave::inline v0 {

struct PowerSgdOptions {
  index_t rank = 1;
  index_t plain_steps = 10;  ///< first steps without compression: gradients change fast
};

/// Sums gradients of at least two dimensions, [rows, columns..], as products of two matrices of the
/// given rank if these have fewer elements; sums other gradients uncompressed.
///
/// @cost two all-reduces per bucket, of rank (rows + columns) elements per parameter, in float, or
///       in double for double gradients; keeps one element per gradient element, and Q
/// @throws Error for gradients on a GPU
class PowerSgd {
 public:
  /// @throws Error for a rank below 1
  explicit PowerSgd(const PowerSgdOptions& options = {}) : options_(options) {
    if (options.rank < 1)
      throw Error("PowerSgd", "the rank must be at least 1, not " + std::to_string(options.rank));
  }

  void operator()(const GradientBucket& bucket) {
    bucket.require_host("PowerSgd");
    if (bucket.number == 0) ++steps_;
    if (steps_ <= options_.plain_steps) return bucket.all_reduce(bucket.gradient);
    nn::detail::with_real_type("replicate", bucket.gradient.dtype,
                               [&]<class Real>(Real*) { approximate<Real>(bucket); });
  }

 private:
  /// The gradient of a parameter as a matrix; rank 0 if it is summed uncompressed.
  template <class Real, class A>
  struct Matrix {
    int key;
    Real* gradient;
    index_t size, rows = 0, columns = 0, rank = 0;
    A* m = nullptr;  ///< [rows, columns], with the error of the previous step
    A* q = nullptr;  ///< [rank, columns]
  };

  template <class Real>
  void approximate(const GradientBucket& bucket) {
    using A = accumulator_t<Real>;
    std::vector<Matrix<Real, A>> all = matrices_of<Real>(bucket);
    index_t first = 0, second = 0;  // elements of the two all-reduces
    for (const auto& x : all) {
      first += x.rank > 0 ? x.rank * x.rows : x.size;
      second += x.rank * x.columns;
    }
    const Tensor<A, 1> p({first}), q({second});
    A* at = p.data();
    for (const auto& x : all) at = write_first(x, at);
    if (first > 0) bucket.all_reduce(p.view());
    at = p.data();
    A* to = q.data();
    for (const auto& x : all) {
      if (x.rank == 0) {
        for (index_t i = 0; i < x.size; ++i) x.gradient[i] = Real(at[i]);
        at += x.size;
      } else {
        kernels::orthonormalize_rows(x.rank, x.rows, at);
        project(x, at, to);
        at += x.rank * x.rows;
        to += x.rank * x.columns;
      }
    }
    if (second > 0) bucket.all_reduce(q.view());
    at = p.data();
    to = q.data();
    for (const auto& x : all) {
      if (x.rank > 0) expand(x, at, to);
      at += x.rank > 0 ? x.rank * x.rows : x.size;
      to += x.rank * x.columns;
    }
  }

  template <class Real>
  auto matrices_of(const GradientBucket& bucket) {
    using A = accumulator_t<Real>;
    std::vector<Matrix<Real, A>> all;
    parallel::for_parts<Real>(bucket, [&](const BucketPart& part, Real* g, index_t size) {
      Matrix<Real, A>& x = all.emplace_back(Matrix<Real, A>{part.key, g, size});
      if (part.extents.dims < 2 || size == 0) return;
      x.rows = part.extents[0];
      x.columns = size / x.rows;
      const index_t r = std::min({options_.rank, x.rows, x.columns});
      if (r * (x.rows + x.columns) >= size) return;
      x.rank = r;
      x.m = left_.of<A>(part.key, size);
      x.q = start_.of<A>(part.key, r * x.columns);
      for (index_t i = 0; i < size; ++i) x.m[i] += A(g[i]);
      if (!kernels::orthonormalize_rows(r, x.columns, x.q)) {
        draw(part.key, r, x.columns, x.q);
        kernels::orthonormalize_rows(r, x.columns, x.q);
      }
    });
    return all;
  }

  /// Replaces rows of zeros by random rows, the same on all ranks.
  template <class A>
  void draw(int key, index_t rows, index_t columns, A* q) {
    const RandomState state{std::uint64_t(key), draws_++};
    for (index_t k = 0; k < rows; ++k) {
      A* const row = q + k * columns;
      if (kernels::dot(columns, row, row) != 0) continue;
      for (index_t j = 0; j < columns; ++j)
        row[j] = A(std::int32_t(state.bits(k * columns + j)[0])) / A(2147483648);
    }
  }

  /// Writes P^T = Q M^T for a matrix, and the elements of other gradients.
  template <class X, class A>
  static A* write_first(const X& x, A* to) {
    if (x.rank == 0) {
      for (index_t i = 0; i < x.size; ++i) *to++ = A(x.gradient[i]);
      return to;
    }
    for (index_t k = 0; k < x.rank; ++k)
      for (index_t i = 0; i < x.rows; ++i)
        *to++ = kernels::dot(x.columns, x.m + i * x.columns, x.q + k * x.columns);
    return to;
  }

  /// q = P^T M; M becomes the error M - P q.
  template <class X, class A>
  static void project(const X& x, const A* p, A* q) {
    std::fill(q, q + x.rank * x.columns, A(0));
    for (index_t i = 0; i < x.rows; ++i)
      for (index_t k = 0; k < x.rank; ++k)
        kernels::add_multiple(x.columns, p[k * x.rows + i], x.m + i * x.columns, q + k * x.columns);
    for (index_t i = 0; i < x.rows; ++i)
      for (index_t k = 0; k < x.rank; ++k)
        kernels::add_multiple(x.columns, -p[k * x.rows + i], q + k * x.columns,
                              x.m + i * x.columns);
  }

  /// The gradient is P q; the next step starts from q.
  template <class X, class A>
  static void expand(const X& x, const A* p, const A* q) {
    using Real = std::remove_reference_t<decltype(*x.gradient)>;
    std::vector<A> row(static_cast<std::size_t>(x.columns));
    for (index_t i = 0; i < x.rows; ++i) {
      std::fill(row.begin(), row.end(), A(0));
      for (index_t k = 0; k < x.rank; ++k)
        kernels::add_multiple(x.columns, p[k * x.rows + i], q + k * x.columns, row.data());
      for (index_t j = 0; j < x.columns; ++j)
        x.gradient[i * x.columns + j] = Real(row[std::size_t(j)]);
    }
    std::copy(q, q + x.rank * x.columns, x.q);
  }

  PowerSgdOptions options_;
  index_t steps_ = 0;
  std::uint64_t draws_ = 0;
  parallel::NumbersByKey left_{};
  parallel::NumbersByKey start_{};
};

}  // namespace cleave::inline v0
