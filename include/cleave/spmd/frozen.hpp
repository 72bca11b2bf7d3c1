// Graphs and programs as constants: arrays of fixed length replace vectors, because a constant
// cannot own heap memory.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cleave::inline v0::spmd {

namespace detail {

/// The lengths of the lists of a graph or a program.
template <class X>
constexpr auto sizes_of(const X& x) {
  return std::apply(
      [](const auto&... list) { return std::array<int, sizeof...(list)>{int(list.size())...}; },
      lists_of(x));
}

template <class From, class To>
constexpr void copy_list(const From& from, To& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i];
}

/// The lengths of the lists of `Make{}()`. A separate variable, because clang 14 rejects the name
/// of a local constant in the lambda below if `frozen` is called inside another lambda.
template <class Make>
inline constexpr auto sizes_made_by = sizes_of(Make{}());

}  // namespace detail

/// The graph or program that `make()` returns, as a constant; `make` is a lambda without captures.
///
///     constexpr auto graph = frozen([] { return trace(step, arg<float>("x", {64, 32}), ..); });
///     constexpr auto program = frozen([] { return expand(graph, schemas); });
template <class Make>
  requires requires(const std::invoke_result_t<Make>& made) { lists_of(made); }
constexpr auto frozen(Make) {
  using X = std::invoke_result_t<Make>;
  const X made = Make{}();
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    typename X::template Fixed<detail::sizes_made_by<Make>[I]...> fixed;
    (detail::copy_list(std::get<I>(lists_of(made)), std::get<I>(lists_of(fixed))), ...);
    if constexpr (requires { typename X::Facts; }) static_cast<typename X::Facts&>(fixed) = made;
    if constexpr (std::tuple_size_v<decltype(fixed.symbolic)> > 0)
      fixed.remake = [] { return X(Make{}()); };
    return fixed;
  }(std::make_index_sequence<detail::sizes_made_by<Make>.size()>{});
}

}  // namespace cleave::inline v0::spmd
