// The edges of the domain of a stencil, per dimension and side: what a read beyond the first or the
// last element means.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/plain_tuple.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::inline v0 {

/// The kind of an edge.
enum class EdgeKind : std::uint8_t { none, periodic, value, neumann, mirror };

/// An edge without a value.
template <EdgeKind Kind>
struct PlainEdge {
  static constexpr EdgeKind kind = Kind;
};

/// An edge beyond which elements have a value: a number, or a function of their global indices.
template <class V>
struct Dirichlet {
  static constexpr EdgeKind kind = EdgeKind::value;
  V value;
};

// A namespace of their own, so that names such as `Reduction::none` do not shadow them.
inline namespace edge_names {

/// The first element follows the last one. For both sides of a dimension.
inline constexpr PlainEdge<EdgeKind::periodic> periodic{};
/// Elements beyond the edge repeat those before it, nearest first: the derivative is zero between
/// the last element and the first one beyond, x[-1] = x[0], x[-2] = x[1].
inline constexpr PlainEdge<EdgeKind::neumann> neumann{};
/// Elements beyond the edge mirror those before it at the last element: the derivative is zero
/// there, x[-1] = x[1], x[-2] = x[2].
inline constexpr PlainEdge<EdgeKind::mirror> mirror{};
/// Nothing is beyond the edge: the result has only the elements whose neighbours exist.
inline constexpr PlainEdge<EdgeKind::none> none{};
/// Elements beyond the edge are zero.
inline constexpr Dirichlet<int> zero{0};

}  // namespace edge_names

/// Elements beyond the edge have a value, or that of a function of their global indices, which may
/// be negative: `dirichlet(1.0)`, `dirichlet([](index_t i, index_t j) { return 0.5 * double(j);
/// })`. Where an element is beyond the edges of several dimensions, the first one decides.
template <class V>
constexpr Dirichlet<V> dirichlet(const V& value) {
  return {value};
}

/// Different edges at the two sides of a dimension.
template <class Low, class High>
struct SidesOf {
  Low low;
  High high;
};

namespace detail {

template <class E>
concept OneEdge = requires {
  { E::kind } -> std::convertible_to<EdgeKind>;
};
template <class E>
inline constexpr bool is_sides = false;
template <class L, class H>
inline constexpr bool is_sides<SidesOf<L, H>> = true;

}  // namespace detail

/// The edges before the first and behind the last element: `sides(dirichlet(1.0), neumann)`.
template <detail::OneEdge Low, detail::OneEdge High>
constexpr SidesOf<Low, High> sides(const Low& low, const High& high) {
  static_assert((Low::kind == EdgeKind::periodic) == (High::kind == EdgeKind::periodic),
                "cleave: a dimension is periodic at both sides or at neither");
  return {low, high};
}

/// The edges of a domain. @see edges
template <class... E>
struct Edges {
  detail::PlainTuple<E...> of_dim;
};

/// The edges of a domain, one for all dimensions or one per dimension:
/// `edges(periodic, dirichlet(1.0))`, `edges(sides(zero, none), periodic)`.
template <class... E>
constexpr Edges<E...> edges(const E&... of_dim) {
  static_assert(((detail::OneEdge<E> || detail::is_sides<E>) && ...) && sizeof...(E) > 0,
                "cleave: edges takes periodic, dirichlet(..), neumann, mirror, zero, none or "
                "sides(.., ..), one for all dimensions or one per dimension");
  return {{of_dim...}};
}

namespace detail {

template <class X>
inline constexpr bool is_edges = false;
template <class... E>
inline constexpr bool is_edges<Edges<E...>> = true;

/// One side of one dimension, type-erased.
struct EdgeOfSide {
  EdgeKind kind = EdgeKind::none;
  const void* of = nullptr;  ///< the Dirichlet object
  /// Writes the value of the element at a global index.
  void (*write)(const void* of, const Shape& at, void* to) = nullptr;
};

/// All edges of the domain of a field with elements of one type. Refers to the Edges.
struct EdgesOfDomain {
  std::array<std::array<EdgeOfSide, 2>, std::size_t(max_dims)> side{};
};

/// A number as an element.
template <class T, class V>
CLEAVE_HOST_DEVICE T element_of_number(const V& value) {
  if constexpr (is_complex<T> && std::is_arithmetic_v<V>)
    return T(static_cast<typename T::value_type>(value));
  else return static_cast<T>(value);
}

/// The value beyond an edge at a global index.
template <class T, int Dims, class V>
CLEAVE_HOST_DEVICE T value_beyond(const Dirichlet<V>& edge, const index_t* at) {
  return [&]<std::size_t... D>(std::index_sequence<D...>) {
    if constexpr (std::is_convertible_v<V, T> || std::is_arithmetic_v<V>)
      return element_of_number<T>(edge.value);
    else return element_of_number<T>(edge.value(at[D]...));
  }(std::make_index_sequence<std::size_t(Dims)>{});
}
template <class T, int Dims, class E>
CLEAVE_HOST_DEVICE T value_beyond(const E&, const index_t*) {
  return T(0);
}

template <class T, int Dims, class V>
void write_edge_value(const void* of, const Shape& at, void* to) {
  const T element = value_beyond<T, Dims>(*static_cast<const Dirichlet<V>*>(of), at.begin());
  std::memcpy(to, &element, sizeof(T));
}

template <class T, int Dims, class E>
EdgeOfSide erased_edge(const E& edge) {
  return {E::kind, &edge, [](const void*, const Shape&, void* to) {
            const T element = T(0);
            std::memcpy(to, &element, sizeof(T));
          }};
}
template <class T, int Dims, class V>
EdgeOfSide erased_edge(const Dirichlet<V>& edge) {
  const auto takes_indices = []<std::size_t... D>(std::index_sequence<D...>) {
    return std::is_invocable_v<const V&, decltype(index_t(D))...>;
  };
  constexpr bool is_value = std::is_convertible_v<V, T> || std::is_arithmetic_v<V> ||
                            takes_indices(std::make_index_sequence<std::size_t(Dims)>{});
  static_assert(is_value,
                "cleave: dirichlet takes a number, or a function of one index per dimension of "
                "the fields");
  if constexpr (is_value) return {EdgeKind::value, &edge, &write_edge_value<T, Dims, V>};
  else return {};
}
template <class T, int Dims, class L, class H>
std::array<EdgeOfSide, 2> erased_sides(const SidesOf<L, H>& both) {
  return {erased_edge<T, Dims>(both.low), erased_edge<T, Dims>(both.high)};
}
template <class T, int Dims, OneEdge E>
std::array<EdgeOfSide, 2> erased_sides(const E& both) {
  return {erased_edge<T, Dims>(both), erased_edge<T, Dims>(both)};
}

/// Calls f with the edge at a side.
template <class L, class H, class F>
CLEAVE_HOST_DEVICE auto with_side(const SidesOf<L, H>& both, int side, const F& f) {
  return side == 0 ? f(both.low) : f(both.high);
}
template <OneEdge E, class F>
CLEAVE_HOST_DEVICE auto with_side(const E& both, int, const F& f) {
  return f(both);
}

/// The value beyond a side of dimension d at a global index. @pre its kind is `value`
template <class T, int Dims, class... E>
CLEAVE_HOST_DEVICE T edge_value(const Edges<E...>& edges, int d, int side, const index_t* at) {
  const auto value = [&](const auto& edge) { return value_beyond<T, Dims>(edge, at); };
  if constexpr (sizeof...(E) == 1) {
    return with_side(item<0>(edges.of_dim), side, value);
  } else {
    T found = T(0);
    [&]<std::size_t... D>(std::index_sequence<D...>) {
      ((int(D) == d ? void(found = with_side(item<D>(edges.of_dim), side, value)) : void()), ...);
    }(std::index_sequence_for<E...>{});
    return found;
  }
}

/// The edges of a field of `Dims` dimensions. The result refers to `edges`.
template <class T, int Dims, class... E>
EdgesOfDomain edges_of_domain(const Edges<E...>& edges) {
  static_assert(sizeof...(E) == 1 || int(sizeof...(E)) == Dims,
                "cleave: edges takes one edge for all dimensions of the fields, or one per "
                "dimension");
  EdgesOfDomain result;
  if constexpr (sizeof...(E) == 1) {
    for (int d = 0; d < Dims; ++d)
      result.side[std::size_t(d)] = erased_sides<T, Dims>(item<0>(edges.of_dim));
  } else if constexpr (int(sizeof...(E)) == Dims) {
    [&]<std::size_t... D>(std::index_sequence<D...>) {
      ((result.side[D] = erased_sides<T, Dims>(item<D>(edges.of_dim))), ...);
    }(std::index_sequence_for<E...>{});
  }
  return result;
}

}  // namespace detail

}  // namespace cleave::inline v0
