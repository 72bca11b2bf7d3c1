// Makes modules of modules: the same struct with other parts, whose types follow from the values.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/nn/fields.hpp>
#include <cleave/nn/part.hpp>

namespace cleave::inline v0::nn {

namespace detail {

template <int I>
using number = std::integral_constant<int, I>;

template <class F, class... X, std::size_t... I>
auto map_tuple(const std::tuple<X...>& m, const F& f, std::index_sequence<I...>) {
  return std::tuple<decltype(f(std::get<I>(m), number<int(I)>{}))...>{
      f(std::get<I>(m), number<int(I)>{})...};
}

template <class M, class F, std::size_t... I, class... X>
auto map_fields(const F& f, std::index_sequence<I...>, const X&... x) {
  using New = Types<decltype(f(x, number<int(I)>{}))...>;
  if constexpr (std::is_same_v<New, Types<X...>>) return M{f(x, number<int(I)>{})...};
  else return typename Rebind<M, New>::type{f(x, number<int(I)>{})...};
}

}  // namespace detail

/// The same struct, vector or tuple with other parts: the results of f(part, index), called in
/// order. The index is an integral constant; it is 0 for all elements of a vector.
template <Inner M, class F>
auto map_parts(const M& m, const F& f) {
  if constexpr (is_vector<M>) {
    std::vector<decltype(f(m[0], detail::number<0>{}))> parts;
    parts.reserve(m.size());
    for (const auto& part : m) parts.push_back(f(part, detail::number<0>{}));
    return parts;
  } else if constexpr (is_tuple<M>) {
    return detail::map_tuple(m, f, std::make_index_sequence<std::tuple_size_v<M>>{});
  } else {
    return with_fields(m, [&f](const auto&... x) {
      return detail::map_fields<M>(f, std::make_index_sequence<sizeof...(x)>{}, x...);
    });
  }
}

/// The module with every parameter replaced by f(parameter) and every buffer's value by g(value),
/// in order. Wrappers stay, and so do the options of optimizers, unless g.options(options) replaces
/// them.
template <class M, class F, class G>
auto map_tensors(const M& m, const F& f, const G& g) {
  if constexpr (Param<M>) return f(m);
  else if constexpr (is_buffer<M>) return Buffer{g(m.value)};
  else if constexpr (Wrapper<M>)
    return m.rewrap(map_tensors(static_cast<const typename M::wrapped&>(m), f, g));
  else if constexpr (Inner<M>)
    return map_parts(m, [&f, &g](const auto& part, auto) { return map_tensors(part, f, g); });
  else if constexpr (requires { g.options(m); }) return g.options(m);
  else return m;
}
/// The same; buffers stay.
template <class M, class F>
auto map_parameters(const M& m, const F& f) {
  return map_tensors(m, f, [](const auto& buffer) { return buffer; });
}

/// The module with all wrappers removed, from it and from its parts.
template <class M>
auto unwrapped(const M& m) {
  if constexpr (Wrapper<M>) return unwrapped(static_cast<const typename M::plain&>(m));
  else if constexpr (Inner<M>)
    return map_parts(m, [](const auto& part, auto) { return unwrapped(part); });
  else return m;
}

}  // namespace cleave::inline v0::nn
