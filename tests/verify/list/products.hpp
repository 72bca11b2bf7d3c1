// Products of matrices, and their diagonals.
#pragma once

#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/products/exact_products.hpp>
#include <cleave/ops/products/linear.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/shapes/diagonal.hpp>

#include "listed.hpp"

namespace cleave::ops {

/// Parts that are not called on their own.
using MatrixProduct = decltype("ik,kj->ij"_ein);
using ExactMatrixParts = PartsOf<ExactContract<MatrixProduct>, ExactProductParts<MatrixProduct>,
                                 ExactProductWhole<MatrixProduct>>;

}  // namespace cleave::ops

namespace cleave::ops::listing {

template <int Left, int Right>
using BatchedMatmul =
    Contract<decltype(cleave::detail::einsum_of<cleave::detail::BatchedProduct<Left, Right>>()),
             cleave::detail::BatchedProduct<Left, Right>::repeats>;
using Crossed = Contract<decltype("aij,kja->ik"_ein)>;

using Outer = Contract<decltype("i,j->ij"_ein)>;

template <class Visit>
constexpr void each_of_diagonals(const Visit& visit) {
  visit(listed<Diagonal, SameTypes<1, double, float, Complex, Int>, DimsOf<3>>(
      CLEAVE_CALL_1(x, diagonal(x))));
  visit(listed<Diag, SameTypes<1, double, Complex, Int>, DimsOf<2>>(CLEAVE_CALL_1(x, diag(x))));
  visit(
      listed<Outer, SameTypes<2, double, Complex>, DimsOf<1, 1>>(CLEAVE_CALL_2(a, b, outer(a, b))));
}

template <class Visit>
constexpr void each_exact_product(const Visit& visit) {
  visit(listed<ExactContract<MatrixProduct>, SameTypes<2, double, float, Complex>, DimsOf<2, 2>>(
      CLEAVE_CALL_2(x, w, matmul<exact>(x, w))));
  visit(listed<ExactContract<decltype("aij,kja->ik"_ein)>, SameTypes<2, double>, DimsOf<3, 3>>(
      CLEAVE_CALL_2(x, w, einsum<exact>("aij,kja->ik"_ein, x, w))));
  visit(listed<ExactLinear, SameTypes<3, double, float>, DimsOf<3, 2, 1>>(
      CLEAVE_CALL_3(x, weight, bias, linear<exact>(x, weight, bias))));
}

template <class Visit>
constexpr void each_product(const Visit& visit) {
  each_exact_product(visit);
  each_of_diagonals(visit);
  visit(listed<Matmul, SameTypes<2, double, float, Complex, Int>, DimsOf<2, 2>>(
      CLEAVE_CALL_2(x, w, matmul(x, w))));
  visit(listed<BatchedMatmul<3, 3>, SameTypes<2, double, Complex>, DimsOf<3, 3>>(
      "matmul(x, w); batched", [](const auto& x, const auto& w) { return matmul(x, w); }));
  visit(listed<BatchedMatmul<3, 2>, SameTypes<2, double>, DimsOf<3, 2>>(
      "matmul(x, w); batched x", [](const auto& x, const auto& w) { return matmul(x, w); }));
  visit(listed<BatchedMatmul<2, 1>, SameTypes<2, double, float, Int>, DimsOf<2, 1>>(
      "matmul(x, w); of matrix and vector",
      [](const auto& x, const auto& w) { return matmul(x, w); }));
  visit(listed<Crossed, SameTypes<2, double, Complex>, DimsOf<3, 3>>(
      CLEAVE_CALL_2(x, w, einsum("aij,kja->ik"_ein, x, w))));
  visit(listed<ContractAll<decltype("ab,bc,cd->ad"_ein)>, SameTypes<3, double, Complex>,
               DimsOf<2, 2, 2>>(CLEAVE_CALL_3(x, v, w, einsum("ab,bc,cd->ad"_ein, x, v, w))));
  visit(listed<Linear, SameTypes<3, double, float, Complex>, DimsOf<2, 2, 1>>(
      CLEAVE_CALL_3(x, weight, bias, linear(x, weight, bias))));
  visit(listed<Linear, SameTypes<3, double>, DimsOf<3, 2, 1>>(
      "linear(x, weight, bias); x has three dimensions",
      [](const auto& x, const auto& weight, const auto& bias) { return linear(x, weight, bias); }));
}

}  // namespace cleave::ops::listing
