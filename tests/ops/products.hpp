// Matrix products of placed operands against naive ones.
#pragma once

#include <array>
#include <initializer_list>

#include <doctest/doctest.h>

#include <cleave/ops/products/matmul.hpp>

#include "placed.hpp"

namespace cleave::testing {

template <class T>
Array<T> naive_product(const Array<T>& a, const Array<T>& b) {
  return array_of<T>({a.shape[0], b.shape[1]}, [&](const naive::Indices& index) {
    T sum = T(0);
    for (index_t k = 0; k < a.shape[1]; ++k)
      sum = T(sum + a.at({index[0], k}) * b.at({k, index[1]}));
    return sum;
  });
}

template <class T, class P, class Q, class Mesh>
void check_product(const Mesh& mesh, index_t m, index_t k, index_t n) {
  const auto x = placed<T, P>(mesh, std::array{m, k}, 0);
  const auto w = placed<T, Q>(mesh, std::array{k, n}, 1);
  if (!exact_averages(x) || !exact_averages(w)) return;
  about(described(x) + " times " + described(w),
        [&] { check_equal(matmul(x, w), naive_product(expected(x, 0), expected(w, 1))); });
}

template <class T, int Axes, class... Choice, class Mesh>
void check_all(const Mesh& mesh, std::initializer_list<std::array<index_t, 3>> sizes) {
  each_placements<Axes, Choice...>([&](auto p) {
    each_placements<Axes, Choice...>([&](auto q) {
      for (const auto& [m, k, n] : sizes) check_product<T, decltype(p), decltype(q)>(mesh, m, k, n);
    });
  });
}

}  // namespace cleave::testing
