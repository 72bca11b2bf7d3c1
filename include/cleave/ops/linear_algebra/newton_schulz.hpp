// Orthogonal polar factors of matrices by products alone: newton_schulz, polar_factor.
//
//     // q[S0,S1] = polar_factor(a[S0,S1])     a = q h: q^H q = 1, h Hermitian and positive
//     definite
//
// Every array of a step lies as a does, so that a rank holds and computes its share of each.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/linear_algebra/matrices.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/norm.hpp>
#include <cleave/ops/shapes/diagonal.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/ops/shapes/zeros_like.hpp>

namespace cleave::inline v0 {

/// Steps x -> a x + b (x x^H) x + c (x x^H)² x, which map a singular value s to a s + b s³ + c s⁵.
struct NewtonSchulz {
  int steps = 5;
  /// Those of the optimizer Muon (K. Jordan et al., 2024): five steps bring singular values from
  /// 0.002 to 1 to 0.68 .. 1.21, but more do not converge.
  double a = 3.4445, b = -4.7750, c = 2.0315;

  /// Steps by which all singular values in (0, 1.5] converge to 1, in the end by the third power of
  /// their distance (N. J. Higham, Functions of Matrices, SIAM 2008, chapter 8).
  static constexpr NewtonSchulz converging(int steps) { return {steps, 1.875, -1.25, 0.375}; }
};

namespace detail {

/// The iteration for matrices placed like X, whose partials are resolved.
template <class X>
class PolarSteps {
  static_assert(X::dims >= 2, "cleave: a polar factor requires matrices, two dimensions or more");
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: a polar factor requires floating-point or complex elements; call "
                "cast<double>(x)");

 public:
  explicit constexpr PolarSteps(const X& x)
      : x_(x), is_wide_(shape_of(x)[X::dims - 2] < shape_of(x)[X::dims - 1]) {}

  /// The matrices over their Frobenius norms, so that no singular value exceeds 1.
  constexpr X first() const {
    using T = typename X::value_type;
    const auto scaled = [&](const auto& size) {
      const auto divisor = unsqueeze(unsqueeze(call_op(OrOne{}, size), dim<-1>{}), dim<-1>{});
      return div(x_, cast<T>(divisor));
    };
    if constexpr (is_complex<T>) return scaled(norm(abs(x_), dim<-2, -1>{}));
    else return scaled(norm(x_, dim<-2, -1>{}));
  }
  /// y^H y, or y y^H where that is smaller.
  constexpr X gram(const X& y) const {
    return is_wide_ ? product(y, adjoint(y)) : product(adjoint(y), y);
  }
  constexpr X next(const X& y, const X& gram, const NewtonSchulz& by) const {
    const X more = add(mul(gram, by.b), mul(product(gram, gram), by.c));
    return add(mul(y, by.a), is_wide_ ? product(more, y) : product(y, more));
  }

 private:
  constexpr X product(const auto& a, const auto& b) const {
    if constexpr (X::dims == 2) {
      return call_as(like(x_), ops::Matmul{}, a, b);
    } else {
      using Text = decltype(einsum_of<BatchedProduct<X::dims, X::dims>>());
      return call_as(like(x_), ops::Contract<Text>{}, a, b);
    }
  }

  const X& x_;
  bool is_wide_;
};

}  // namespace detail

/// Approximates the orthogonal polar factors of matrices by a number of Newton-Schulz steps: of
/// a = u diag(s) v^H it returns u diag(p(s / |a|)) v^H, where |a| is the Frobenius norm and p the
/// steps' polynomials of `by` one after the other.
///
///     newton_schulz(g)                                  // an update of Muon: 5 steps
///     newton_schulz(g, NewtonSchulz::converging(20))    // to convergence. @see polar_factor
///
/// @param a     [.., m, n], floating-point or complex, each a matrix of its own; zeros stay zeros
/// @return      as a, with its placements; Partial is resolved
/// @collective  every rank of the mesh, unless only batches are sharded
/// @cost        with k = min(m, n), 2 m n k + k³ multiplications per step, in four products; ranks
///              of a mesh share them, and exchange operands of each. Gradients keep every step
template <AnyTensor A>
constexpr auto newton_schulz(const A& a, const NewtonSchulz& by = {}) {
  const auto x = resolve(a);
  const detail::PolarSteps steps(x);
  auto y = steps.first();
  for (int i = 0; i < by.steps; ++i) y = steps.next(y, steps.gram(y), by);
  return y;
}
CLEAVE_USAGE(newton_schulz, "newton_schulz(a), newton_schulz(a, {.steps = 5})")

/// The orthogonal polar factors of matrices: the nearest matrices with orthonormal columns, or rows
/// if m < n. a = q h for m >= n, a = h q otherwise. By Newton-Schulz steps until q^H q differs from
/// 1 by less than the third root of the rounding error, and one more.
///
/// @param a     [.., m, n], float, double or complex, of full rank: min(m, n)
/// @return      as a, with its placements; Partial is resolved
/// @collective  every rank of the mesh, unless a is replicated
/// @cost        as newton_schulz, with 1.6 log(s) + 5 steps, or a few more, where the smallest
///              singular value is |a| / s; and one reduction of a number per step
/// @throws Error if it does not converge in 100 steps: if a matrix lacks full rank, or elements are
///              not finite
template <AnyTensor A>
constexpr auto polar_factor(const A& a) {
  static_assert(detail::call_level<detail::innermost_t<A>> != 2,
                "cleave: the number of steps of polar_factor depends on elements, which a trace "
                "does not have; call newton_schulz with a number of steps");
  const auto x = resolve(a);
  const detail::PolarSteps steps(x);
  using Real = kernels::real_t<typename A::value_type>;
  const double enough = std::cbrt(double(std::numeric_limits<Real>::epsilon()));
  auto y = steps.first();
  if (!detail::knows_extents(x)) return y;
  for (int i = 0; i < 100; ++i) {
    const auto gram = steps.gram(y);
    const auto& g = detail::innermost(gram);
    const auto error = sub(g, diag(ones_like(diagonal(g))));
    y = steps.next(y, gram, NewtonSchulz::converging(1));
    const double distance = double(norm(abs(error)).item());
    if (distance <= enough) return y;
    if (std::isnan(distance)) break;
  }
  throw Error("polar_factor",
              "it does not converge: a matrix lacks full rank, or has elements that are not finite",
              detail::context_of(a));
}
CLEAVE_USAGE(polar_factor, "polar_factor(a)")

}  // namespace cleave::inline v0
