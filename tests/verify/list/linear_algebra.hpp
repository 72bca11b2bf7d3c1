// Linear algebra, if there is a LAPACK.
#pragma once

#include <cleave/ops/linear_algebra/cholesky.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>

#include "listed.hpp"

namespace cleave::ops {

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
#endif
}

}  // namespace listing

}  // namespace cleave::ops
