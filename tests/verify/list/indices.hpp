// Operations that take indices.
#pragma once

#include <cleave/ops/indices/gather_scatter.hpp>
#include <cleave/ops/indices/index_put.hpp>
#include <cleave/ops/indices/index_select.hpp>
#include <cleave/ops/indices/topk.hpp>

#include "listed.hpp"

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_of_gathering(const Visit& visit) {
  constexpr const char* why = "indices are not differentiable";
  visit(listed<Gather<1>,
               TypeRows<Types<double, Int>, Types<float, std::int32_t>, Types<Complex, Int>,
                        Types<Int, std::uint8_t>, Types<bool, Int>>,
               DimsOf<3, 3>>(CLEAVE_CALL_2(x, indices, gather(x, dim<1>{}, indices)), why));
  visit(listed<ScatterAdd<0>,
               TypeRows<Types<double, Int>, Types<float, std::int32_t>, Types<Complex, Int>,
                        Types<Int, std::uint8_t>>,
               DimsOf<2, 2>>(CLEAVE_CALL_2(x, indices, scatter_add(x, dim<0>{}, indices, 4)), why));
  visit(listed<OrderedIndices<1>, SameTypes<1, double, float, Int, bool>, DimsOf<2>>(
      "topk(x, dim<1>{}, 2); its indices",
      [](const auto& x) { return std::get<1>(topk(x, dim<1>{}, 2)); }, of_integers));
  visit(listed<OrderedIndices<0>, SameTypes<1, double>, DimsOf<2>>(
      CLEAVE_CALL_1(x, argsort(x, dim<0>{})), of_integers));
}

template <class Visit>
constexpr void each_of_several_indices(const Visit& visit) {
  constexpr const char* why = "indices are not differentiable";
  using Get =
      TypeRows<Types<double, Int, Int>, Types<float, std::int32_t, Int>, Types<Complex, Int, Int>>;
  visit(listed<IndexGet<2>, Get, DimsOf<3, 1, 1>>(
      CLEAVE_CALL_3(x, i, j, index_get(x, std::tie(i, j))), why));
  visit(listed<IndexFill<2, double>, TypeRows<Types<double, Int, Int>>, DimsOf<2, 1, 1>>(
      CLEAVE_CALL_3(x, i, j, index_put(x, std::tie(i, j), 3)), why));
  visit(listed<IndexPut<2>, TypeRows<Types<double, double, Int, Int>, Types<bool, bool, Int, Int>>,
               DimsOf<3, 2, 1, 1>>(
      CLEAVE_CALL_4(x, values, i, j, index_put(x, std::tie(i, j), values)), why));
  visit(listed<IndexSum<2>, Get, DimsOf<2, 1, 1>>(
      "index_put(zeros, std::tie(i, j), values, accumulate)",
      [](const auto& values, const auto& i, const auto& j) {
        return call_op(IndexSum<2>{{}, {4, 5}}, values, i, j);
      },
      why));
}

template <class Visit>
constexpr void each_of_indices(const Visit& visit) {
  each_of_gathering(visit);
  each_of_several_indices(visit);
  constexpr const char* why = "indices are not differentiable";
  visit(listed<IndexSelect<0>,
               TypeRows<Types<double, Int>, Types<float, std::int32_t>, Types<Complex, Int>,
                        Types<Int, std::uint8_t>, Types<bool, Int>>,
               DimsOf<2, 1>>(CLEAVE_CALL_2(x, indices, index_select(x, dim<0>{}, indices)), why));
  visit(listed<IndexSelect<1>, TypeRows<Types<double, Int>>, DimsOf<3, 1>>(
      CLEAVE_CALL_2(x, indices, index_select(x, dim<1>{}, indices)), why));
  visit(listed<IndexSelect<0>, TypeRows<Types<double, Int>>, DimsOf<2, 2>>(
      CLEAVE_CALL_2(weight, tokens, embedding(weight, tokens)), why));
  visit(listed<IndexAdd<0>,
               TypeRows<Types<double, Int>, Types<float, std::int32_t>, Types<Complex, Int>,
                        Types<Int, std::uint8_t>>,
               DimsOf<2, 1>>(CLEAVE_CALL_2(x, indices, index_add(x, dim<0>{}, indices, 4)), why));
  visit(listed<IndexAdd<1>, TypeRows<Types<double, Int>>, DimsOf<3, 1>>(
      CLEAVE_CALL_2(x, indices, index_add(x, dim<1>{}, indices, 4)), why));
}

}  // namespace cleave::ops::listing
