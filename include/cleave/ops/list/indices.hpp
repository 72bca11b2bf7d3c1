// Operations that take indices.
#pragma once

#include <cleave/ops/index_select.hpp>
#include <cleave/ops/list/entry.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_of_indices(const Visit& visit) {
  constexpr const char* why = "indices are not numbers that vary";
  visit(listed<IndexSelect<0>,
               TypeRows<Types<double, Int>, Types<float, std::int32_t>, Types<Complex, Int>,
                        Types<Int, std::uint8_t>, Types<bool, Int>>,
               DimsOf<2, 1>>(
      "index_select(x, dim<0>{}, indices)",
      [](const auto& x, const auto& indices) { return index_select(x, dim<0>{}, indices); }, why));
  visit(listed<IndexSelect<1>, TypeRows<Types<double, Int>>, DimsOf<3, 1>>(
      "index_select(x, dim<1>{}, indices)",
      [](const auto& x, const auto& indices) { return index_select(x, dim<1>{}, indices); }, why));
  visit(listed<IndexSelect<0>, TypeRows<Types<double, Int>>, DimsOf<2, 2>>(
      "embedding(weight, tokens)",
      [](const auto& weight, const auto& tokens) { return embedding(weight, tokens); }, why));
  visit(listed<IndexAdd<0>,
               TypeRows<Types<double, Int>, Types<float, std::int32_t>, Types<Complex, Int>,
                        Types<Int, std::uint8_t>>,
               DimsOf<2, 1>>(
      "index_add(x, dim<0>{}, indices, 4)",
      [](const auto& x, const auto& indices) { return index_add(x, dim<0>{}, indices, 4); }, why));
  visit(listed<IndexAdd<1>, TypeRows<Types<double, Int>>, DimsOf<3, 1>>(
      "index_add(x, dim<1>{}, indices, 4)",
      [](const auto& x, const auto& indices) { return index_add(x, dim<1>{}, indices, 4); }, why));
}

}  // namespace cleave::ops::listing
