// Arrays whose elements the tests of files know, on ranks that are processes.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/dtensor.hpp>

#include "naive.hpp"
#include "processes.hpp"
#include "ranks.hpp"

namespace known_arrays {

using namespace cleave;

/// Runs a case if ranks are processes, which MPI-IO needs.
template <class F>
void between_processes(std::initializer_list<int> counts, const F& body) {
  if (cleave::testing::Processes::get().launched()) on_ranks(counts, body);
  else skip("the ranks of files by MPI-IO are MPI processes");
}

/// The element of an array at these indices.
template <class T>
T element_at(const naive::Indices& index) {
  index_t n = 3;
  for (const index_t i : index) n = n * 31 + i;
  if constexpr (std::is_same_v<T, bool>) return n % 3 == 1;
  else if constexpr (is_complex<T>)
    return T(typename T::value_type(n % 113), typename T::value_type(-(n % 31)));
  else return T(float(n % 113));
}

/// The indices of this rank's elements, as the test's own loops find them.
template <class X>
std::vector<naive::Indices> own_indices(const X& x) {
  return naive::elements(x.actual_layout(), naive::to_indices(Shape(x.shape())),
                         naive::to_indices(x.mesh().extents()),
                         naive::to_indices(x.mesh().coordinate()));
}

template <class T, int Rank, class Mesh, class... P>
auto filled(const Mesh& mesh, const std::array<index_t, std::size_t(Rank)>& shape,
            const Placements<P...>& placements) {
  const Layout layout =
      detail::with_numbers(layout_of<normalized_t<Placements<P...>, Rank>, Rank>, placements);
  using X = DTensor<T, Rank, Mesh, normalized_t<Placements<P...>, Rank>>;
  typename X::local_type local;
  if (mesh.is_member())
    local = typename X::local_type(
        to_array<Rank>(local_shape(layout, Shape(shape), mesh.extents(), mesh.coordinate())));
  const X x = X::unchecked(local, mesh, shape, layout);
  if (!mesh.is_member()) return x;
  const auto indices = own_indices(x);
  REQUIRE(index_t(indices.size()) == local.size());
  for (index_t i = 0; i < local.size(); ++i)
    local.data()[i] = element_at<T>(indices[std::size_t(i)]);
  return x;
}

template <class X>
void check_elements(const X& x) {
  using T = typename X::value_type;
  const auto indices = own_indices(x);
  REQUIRE(index_t(indices.size()) == x.to_local().size());
  int wrong = 0;
  for (index_t i = 0; i < x.to_local().size(); ++i)
    wrong += !(x.to_local().data()[i] == element_at<T>(indices[std::size_t(i)]));
  CHECK(wrong == 0);
}

}  // namespace known_arrays
