// Linear algebra, if there is a LAPACK.
#pragma once

#include <cleave/ops/linear_algebra/cholesky.hpp>
#include <cleave/ops/linear_algebra/determinants.hpp>
#include <cleave/ops/linear_algebra/eigenvalues.hpp>
#include <cleave/ops/linear_algebra/least_squares.hpp>
#include <cleave/ops/linear_algebra/lu.hpp>
#include <cleave/ops/linear_algebra/qr.hpp>
#include <cleave/ops/linear_algebra/singular_values.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>
#include <cleave/ops/shapes/roll.hpp>

#include "listed.hpp"

namespace cleave::ops {

/// A function of all results of an operation, which is unique where they are not.
template <class Op>
struct OfResults : Composite {
  using combines = Op;
  static constexpr const char* name = Op::name;
};

struct OfLogDeterminant : OfResults<LogDeterminant> {
  static constexpr auto body(const auto& a) {
    using T = typename std::remove_cvref_t<decltype(a)>::value_type;
    const auto [sign, logarithm] = slogdet(a);
    return add(sign, mul(sign, cast<T>(logarithm)));
  }
};
/// Of matrices whose rows have to be exchanged.
struct OfLuFactors : OfResults<LuFactors> {
  static constexpr auto body(const auto& a) {
    const auto [p, l, u] = lu(flip(a, dim<1>{}));
    return matmul(p, matmul(square(l), square(u)));
  }
};
struct OfQrFactors : OfResults<QrFactors> {
  static constexpr auto body(const auto& a) {
    const auto [q, r] = qr(a);
    return matmul(q, square(r));
  }
};
struct OfEigenvalues : OfResults<EigenvaluesHermitian> {
  static constexpr auto body(const auto& a) {
    using T = typename std::remove_cvref_t<decltype(a)>::value_type;
    const auto [w, v] = eigh(a);
    return matmul(mul(v, unsqueeze(cast<T>(mul(w, square(w))), dim<1>{})), detail::adjoint(v));
  }
};
struct OfSingularValues : OfResults<SingularValues> {
  static constexpr auto body(const auto& a) {
    using T = typename std::remove_cvref_t<decltype(a)>::value_type;
    const auto [u, s, vh] = svd(a);
    return matmul(mul(u, unsqueeze(cast<T>(mul(s, square(s))), dim<1>{})), vh);
  }
};
using ByRows = PartsOf<OfQrFactors, QrOfCutRows>;

namespace listing {

template <class Visit>
constexpr void each_of_linear_algebra([[maybe_unused]] const Visit& visit) {
#if CLEAVE_HAS_LAPACK
  using Row1 = SameTypes<1, double, float, Complex>;
  using Row2 = SameTypes<2, double, float, Complex>;
  visit(listed<Solve, Row2, DimsOf<3, 3>>(CLEAVE_CALL_2(a, b, solve(a, b))));
  visit(listed<TriangularSolve, Row2, DimsOf<3, 3>>(
      CLEAVE_CALL_2(a, b, triangular_solve(a, b, Side::upper))));
  visit(listed<Inverse, Row1, DimsOf<3>>(CLEAVE_CALL_1(a, inv(a))));
  visit(listed<Determinant, Row1, DimsOf<3>>(CLEAVE_CALL_1(a, det(a))));
  visit(listed<Cholesky, Row1, DimsOf<3>>(CLEAVE_CALL_1(a, cholesky(a))));
  visit(listed<LeastSquares, SameTypes<2, double, Complex>, DimsOf<3, 3>>(
      CLEAVE_CALL_2(a, b, lstsq(a, b))));
  const auto of_results = [&]<class Op>(const char* usage, Op) {
    visit(listed<Op, SameTypes<1, double, Complex>, DimsOf<3>>(
        usage, [](const auto& a) { return call_op(Op{}, a); }));
  };
  of_results("slogdet(a)", OfLogDeterminant{});
  of_results("lu(a)", OfLuFactors{});
  of_results("qr(a)", OfQrFactors{});
  of_results("eigh(a)", OfEigenvalues{});
  of_results("svd(a)", OfSingularValues{});
#endif
}

}  // namespace listing

}  // namespace cleave::ops
