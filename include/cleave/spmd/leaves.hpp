// The values inside of what a traced function takes and returns: tuples, arrays and vectors of
// values, modules, numbers.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <vector>

namespace cleave::inline v0::spmd {

/// Calls f with every value inside of x, in order. By default x is a value itself. Specialised for
/// modules in nn/traced_module.hpp; specialise it for structs of your own.
template <class X>
struct LeavesOf {
  template <class F>
  static constexpr void visit(const X& x, const F& f) {
    f(x);
  }
};

/// A Tensor that is the same on all ranks, as an input: Replicate on all axes of the mesh.
template <class X>
struct OnAllRanks {
  const X& tensor;
};
template <class X>
inline constexpr bool is_on_all_ranks = false;
template <class X>
inline constexpr bool is_on_all_ranks<OnAllRanks<X>> = true;

/// A number of the host as an input: the same on all ranks.
struct HostNumber {
  const double& value;
};
template <>
inline constexpr bool is_on_all_ranks<HostNumber> = true;

/// Calls f with every value inside of x.
template <class X, class F>
constexpr void each_leaf(const X& x, const F& f) {
  LeavesOf<X>::visit(x, f);
}

template <class... X>
struct LeavesOf<std::tuple<X...>> {
  template <class F>
  static constexpr void visit(const std::tuple<X...>& x, const F& f) {
    std::apply([&](const auto&... part) { (each_leaf(part, f), ...); }, x);
  }
};
template <class X, class Allocator>
struct LeavesOf<std::vector<X, Allocator>> {
  template <class F>
  static constexpr void visit(const std::vector<X, Allocator>& x, const F& f) {
    for (const X& part : x) each_leaf(part, f);
  }
};
template <class X, std::size_t N>
struct LeavesOf<std::array<X, N>> {
  template <class F>
  static constexpr void visit(const std::array<X, N>& x, const F& f) {
    for (const X& part : x) each_leaf(part, f);
  }
};

}  // namespace cleave::inline v0::spmd
