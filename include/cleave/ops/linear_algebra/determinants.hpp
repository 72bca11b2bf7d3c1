// Determinants of matrices, and their logarithms: det, slogdet.
//
//     // d[S0] = det(a[S0,R,R])     a batch: no communication
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>
#include <vector>

#include <cleave/kernels/element_functions.hpp>
#include <cleave/kernels/host/lapack.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/linear_algebra/matrices.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The numbers whose product is the determinant of a matrix [n, n]: the pivots of its LU
/// factorisation, negated where rows change places.
template <class T>
class Pivots {
 public:
  Pivots(const cleave::Task& task, const kernels::Strided<const T>& x)
      : n_(lapack_extent(task, x.extents[x.extents.dims - 1])),
        a_(std::size_t(n_) * std::size_t(n_)),
        rows_(static_cast<std::size_t>(n_)) {}

  /// Calls visit(pivot) for each pivot of the matrix at `from`, a matrix of x.
  template <class Visit>
  void each(const T* from, const kernels::Strided<const T>& x, const Visit& visit) {
    if (n_ == 0) return;
    pack_matrix(from, x, a_.data(), false);
    kernels::factorize_in_place(n_, a_.data(), rows_.data());
    for (int i = 0; i < n_; ++i) {
      const T pivot = a_[std::size_t(i) * std::size_t(n_ + 1)];
      visit(rows_[std::size_t(i)] == i + 1 ? pivot : -pivot);
    }
  }

 private:
  int n_;
  std::vector<T> a_;
  std::vector<int> rows_;
};

}  // namespace detail

namespace ops {

/// The determinants of matrices.
struct Determinant {
  static constexpr const char* name = "det";
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    using cleave::detail::dim_letters;
    return cleave::detail::factors_text(dim_letters(0, dims[0]), dim_letters(0, dims[0] - 2));
  }
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return cleave::detail::matrix_letters(dims[0]);
  }
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& x) {
    if (y.extents.product() == 0) return;
    cleave::detail::Pivots<T> pivots(task, x);
    cleave::detail::loops_over_matrices(x, y).each([&](index_t from, index_t to) {
      T product = 1;
      pivots.each(x.data + from, x,
                  [&](const T& pivot) { product = kernels::times(product, pivot); });
      y.data[to] = product;
    });
  }
  // dL/da = g conj(y) a^-H
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x) {
    const auto scale = mul(g, conj(y));
    return mul(unsqueeze(unsqueeze(scale, dim<-1>{}), dim<-1>{}),
               cleave::detail::adjoint(call_op(Inverse{}, x)));
  }
};

/// The signs d / |d| and the logarithms log |d| of determinants d.
struct LogDeterminant {
  static constexpr const char* name = "slogdet";
  template <class T>
  using result_of = Types<T, kernels::real_t<T>>;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    using cleave::detail::dim_letters;
    const RuleText batch = dim_letters(0, dims[0] - 2);
    return cleave::detail::joined(dim_letters(0, dims[0]), "->", batch, ',', batch);
  }
  static constexpr auto replicated = Determinant::replicated;
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& sign,
                     const kernels::Strided<kernels::real_t<T>>& logarithm,
                     const kernels::Strided<const T>& x) {
    using Size = kernels::real_t<T>;
    if (sign.extents.product() == 0) return;
    cleave::detail::Pivots<T> pivots(task, x);
    cleave::detail::loops_over_matrices(x, sign, logarithm)
        .each([&](index_t from, index_t to, index_t log_to) {
          T direction = 1;
          Size sum = 0;
          pivots.each(x.data + from, x, [&](const T& pivot) {
            const Size size = kernels::magnitude(pivot);
            direction = kernels::times(direction, size == Size(0) ? T(0) : pivot / size);
            sum += std::log(size);
          });
          sign.data[to] = direction;
          logarithm.data[log_to] = sum;
        });
  }
  // with t = tr(a^-1 da): d log|d| = Re t, d sign = i sign Im t
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x) {
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    const auto& [of_sign, of_logarithm] = g;
    const auto inverse = cleave::detail::adjoint(call_op(Inverse{}, x));
    const auto times_inverse = [&](const auto& scale) {
      return mul(unsqueeze(unsqueeze(scale, dim<-1>{}), dim<-1>{}), inverse);
    };
    if constexpr (is_complex<T>) {
      const auto turned = real(mul(mul(of_sign, conj(std::get<0>(y))), T(0, -1)));
      return times_inverse(add(cast<T>(of_logarithm), mul(cast<T>(turned), T(0, 1))));
    } else {
      return times_inverse(of_logarithm);
    }
  }
};

}  // namespace ops

/// The determinants of square matrices, by LU factorisation. The gradient requires that they are
/// not exactly 0. Large matrices overflow: call slogdet.
///
/// @param a     [.., n, n], float, double or complex
/// @return      [..], sharded as the batch dimensions are; 1 for n = 0
/// @collective  every rank of the mesh, if the last two dimensions are sharded: they are gathered
/// @throws Error if a matrix is not square
template <class... R, AnyTensor A>
constexpr auto det(const A& a) {
  detail::require_square("det", a);
  return call_op<R...>(ops::Determinant{}, a);
}
CLEAVE_USAGE(det, "det(a)")

/// The signs and the logarithms of the determinants d of square matrices:
/// `const auto [sign, logarithm] = slogdet(a)`, with d = sign · exp(logarithm).
///
/// @param a     [.., n, n], float, double or complex
/// @return      a std::tuple of d / |d|, of the element type of a, and log |d|, real, both [..] and
///              sharded as the batch dimensions are; 0 and -inf if a matrix is singular, of which
///              there is no gradient. That of the sign is 0 for real matrices
/// @collective  every rank of the mesh, if the last two dimensions are sharded: they are gathered
/// @throws Error if a matrix is not square
template <AnyTensor A>
constexpr auto slogdet(const A& a) {
  detail::require_square("slogdet", a);
  return call_op(ops::LogDeterminant{}, a);
}
CLEAVE_USAGE(slogdet, "slogdet(a)")

}  // namespace cleave::inline v0
