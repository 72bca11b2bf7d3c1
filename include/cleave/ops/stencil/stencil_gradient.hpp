// The gradient of a stencil, which is a stencil again: each element adds the cotangents of the
// results that read it, directly or beyond an edge, each times the slope of that result. Nothing is
// sent to be added, so the bits are the same on every mesh.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/kernels/dual.hpp>
#include <cleave/ops/stencil/apply.hpp>
#include <cleave/ops/stencil/strided_gradient.hpp>

namespace cleave::detail {

/// The kinds of edges, per dimension and side.
template <class E, int Dims>
struct EdgeKinds;
template <class... E, int Dims>
struct EdgeKinds<Edges<E...>, Dims> {
  static constexpr std::array<EdgeKind, 2> of(int d) {
    const std::array<EdgeKind, 2> kinds[] = {of_sides<E>()...};
    return kinds[sizeof...(E) == 1 ? 0 : d];
  }
  template <class One>
  static constexpr std::array<EdgeKind, 2> of_sides() {
    if constexpr (is_sides<One>) return {decltype(One::low)::kind, decltype(One::high)::kind};
    else return {One::kind, One::kind};
  }
  static constexpr bool mirrors(int d, int side) {
    return of(d)[std::size_t(side)] == EdgeKind::neumann ||
           of(d)[std::size_t(side)] == EdgeKind::mirror;
  }
};

/// A field around an element elsewhere, as dual numbers: the slope is 1 where the element of the
/// gradient is read, also beyond an edge.
template <class Field, int Dims, bool Varies, class E>
struct DualField {
  using Kinds = EdgeKinds<E, Dims>;

  const Field& field;      ///< around the element of the gradient
  const int* shift;        ///< the offset of the element elsewhere
  const index_t* extents;  ///< of the field of the gradient

  template <class... I>
  CLEAVE_HOST_DEVICE constexpr auto operator()(I... offset) const {
    static_assert(sizeof...(I) == std::size_t(Dims));
    const int by[] = {int(offset)...};
    return [&]<std::size_t... D>(std::index_sequence<D...>) {
      const auto value = field(by[D] + shift[D]...);
      using V = std::remove_cvref_t<decltype(value)>;
      bool is_seed = Varies;
      if constexpr (Varies) is_seed = (reads_element<int(D)>(by[D]) && ...);
      return kernels::Dual<V>(value, V(is_seed ? 1 : 0));
    }(std::make_index_sequence<std::size_t(Dims)>{});
  }
  CLEAVE_HOST_DEVICE constexpr index_t index(int d) const {
    const index_t i = field.index(d) + shift[d], n = extents[d];
    return Kinds::of(d)[0] == EdgeKind::periodic ? (i % n + n) % n : i;
  }

 private:
  template <int D>
  CLEAVE_HOST_DEVICE constexpr bool reads_element(int offset) const {
    if constexpr (Kinds::mirrors(D, 0) || Kinds::mirrors(D, 1)) {
      const index_t element = field.index(D);
      return resolved_index(Kinds::of(D)[0], Kinds::of(D)[1], false, extents[D],
                            element + shift[D] + offset) == element;
    } else {
      return shift[D] + offset == 0;
    }
  }
};

/// The gradient of S with edges E with respect to operand I, of operands T: its fields are the
/// cotangents of the results, then the operands. Its edges are those of `gradient_edges`.
template <class S, int I, int Dims, class E, std::size_t Results, class... T>
class StencilGradient : public Stencil {
  using Kinds = EdgeKinds<E, Dims>;
  static constexpr Reach of_field() { return reaches_of<S, T...>.of[I]; }

  /// The first element of the results, as an index of the fields.
  static constexpr std::array<int, std::size_t(Dims)> first_result() {
    std::array<int, std::size_t(Dims)> first{};
    for (int d = 0; d < Dims; ++d)
      if (Kinds::of(d)[0] == EdgeKind::none)
        for (const Reach& read : reaches_of<S, T...>.of)
          first[std::size_t(d)] = std::max(first[std::size_t(d)], -read.lo[d]);
    return first;
  }
  /// The offsets of results that read an element.
  static constexpr Reach readers() {
    const Reach of = of_field();
    Reach result{Dims};
    result.corners = of.corners;
    for (int d = 0; d < Dims; ++d) {
      const int most = std::max(-of.lo[d], of.hi[d]);
      const bool mirrors = Kinds::mirrors(d, 0) || Kinds::mirrors(d, 1);
      const Sides sides = mirrors ? Sides(most) : Sides(-of.hi[d], -of.lo[d]);
      result.lo[d] = sides.lo, result.hi[d] = sides.hi;
    }
    return result;
  }

 public:
  static constexpr const char* name = S::name;
  /// The result has the extents and the element type of this operand.
  static constexpr std::size_t result_like = Results + std::size_t(I);
  static constexpr auto reach = [] {
    std::array<Reach, Results + sizeof...(T)> result{};
    for (std::size_t k = 0; k < result.size(); ++k) {
      Reach& here = result[k];
      here.dims = Dims;
      here.corners = of_field().corners || k >= Results;
      for (int d = 0; d < Dims; ++d) {
        const Reach other = k < Results ? Reach{} : reaches_of<S, T...>.of[k - Results];
        const int first = k < Results ? first_result()[std::size_t(d)] : 0;
        const Reach around = readers();
        const Sides sides(around.lo[d] + other.lo[d] - first, around.hi[d] + other.hi[d] - first);
        here.lo[d] = sides.lo, here.hi[d] = sides.hi;
      }
    }
    return result;
  }();

  explicit StencilGradient(const S& stencil) : stencil_(stencil) {}

  /// The gradient for fields of these extents.
  /// @throws Error if edges mirror elements of a field that ends before the results
  StencilGradient bound_to(std::span<const FieldWindow> fields) const {
    StencilGradient bound(bound_stencil(stencil_, fields.subspan(Results)));
    const bool is_field[] = {!is_number<T>...};
    std::size_t like = Results;
    for (int k = 0; k < I; ++k) like += is_field[k];
    for (int d = 0; d < Dims; ++d) {
      bound.domain_[d] = fields[like].domain[d];
      bound.results_end_[d] = first_result()[std::size_t(d)] + fields[0].domain[d];
      if (Kinds::mirrors(d, 1) && bound.domain_[d] < bound.results_end_[d])
        throw Error(
            name,
            "the gradient with edges that mirror elements requires a field of at least "
            "the extents of the result, in dimension " +
                std::to_string(d),
            {.shapes = to_string(fields[like].domain) + " and " + to_string(fields[0].domain)});
    }
    return bound;
  }

  template <class... A>
  CLEAVE_HOST_DEVICE auto operator()(const A&... a) const {
    const std::tuple<const A&...> all(a...);
    const auto& field = std::get<result_like>(all);
    constexpr auto dims = std::make_index_sequence<std::size_t(Dims)>{};
    constexpr Reach around = readers();
    const int here[std::size_t(Dims)] = {};
    using V = decltype(read(field, here, dims));
    V sum = V(0);
    int shift[std::size_t(Dims)];
    for (int d = 0; d < Dims; ++d) shift[d] = around.hi[d];
    for (;;) {
      if (is_reader(shift, around.corners) && exists(shift, field))
        sum = sum + addend<V>(shift, all, std::index_sequence_for<T...>{},
                              std::make_index_sequence<Results>{});
      int d = Dims - 1;
      for (; d >= 0 && --shift[d] < around.lo[d]; --d) shift[d] = around.hi[d];
      if (d < 0) return sum;
    }
  }

 private:
  template <std::size_t... D>
  CLEAVE_HOST_DEVICE static auto read(const auto& field, const int* at, std::index_sequence<D...>) {
    return field(at[D]...);
  }
  CLEAVE_HOST_DEVICE static bool is_reader(const int* shift, bool corners) {
    int moved = 0;
    for (int d = 0; d < Dims; ++d) moved += shift[d] != 0;
    return corners || moved <= 1;
  }
  /// Whether there is a result at that offset.
  CLEAVE_HOST_DEVICE bool exists(const int* shift, const auto& field) const {
    constexpr auto first = first_result();
    for (int d = 0; d < Dims; ++d) {
      const index_t i = field.index(d) + shift[d];
      if (Kinds::of(d)[0] != EdgeKind::periodic &&
          (i < first[std::size_t(d)] || i >= results_end_[d]))
        return false;
    }
    return true;
  }

  template <class V, std::size_t... K, std::size_t... R>
  CLEAVE_HOST_DEVICE V addend(const int* shift, const auto& all, std::index_sequence<K...>,
                              std::index_sequence<R...>) const {
    const auto argument = [&]<std::size_t Operand>(std::integral_constant<std::size_t, Operand>) {
      const auto& operand = std::get<Results + Operand>(all);
      if constexpr (is_number<std::tuple_element_t<Operand, std::tuple<T...>>>) return operand;
      else
        return DualField<std::remove_cvref_t<decltype(operand)>, Dims, int(Operand) == I, E>{
            operand, shift, domain_};
    };
    const auto value = stencil_(argument(std::integral_constant<std::size_t, K>{})...);
    constexpr auto first = first_result();
    int result[std::size_t(Dims)];
    for (int d = 0; d < Dims; ++d) result[d] = shift[d] - first[std::size_t(d)];
    const auto cotangent = [&](const auto& g) {
      return V(read(g, result, std::make_index_sequence<std::size_t(Dims)>{}));
    };
    V sum = V(0);
    if constexpr (is_tuple_of_results<std::remove_cvref_t<decltype(value)>>)
      ((sum = sum + V(kernels::slope_of(std::get<R>(value))) * cotangent(std::get<R>(all))), ...);
    else sum = V(kernels::slope_of(value)) * cotangent(std::get<0>(all));
    return sum;
  }

  S stencil_;
  index_t domain_[std::size_t(Dims)] = {};       ///< extents of the operand
  index_t results_end_[std::size_t(Dims)] = {};  ///< as an index of the fields
};

/// The edges of the gradient: no result exists beyond `none`.
template <class E>
constexpr auto gradient_edge(const E& edge) {
  if constexpr (E::kind == EdgeKind::none) return zero;
  else return edge;
}
template <class L, class H>
constexpr auto gradient_edge(const SidesOf<L, H>& both) {
  const auto low = gradient_edge(both.low);
  const auto high = gradient_edge(both.high);
  return SidesOf<std::remove_const_t<decltype(low)>, std::remove_const_t<decltype(high)>>{low,
                                                                                          high};
}
template <class... E>
constexpr auto gradient_edges(const Edges<E...>& of) {
  return of.of_dim.apply([](const E&... of_dim) { return edges(gradient_edge(of_dim)...); });
}

/// A call of a stencil as the tape records it.
template <class S, class E>
struct StencilOp {
  static constexpr const char* name = S::name;
  static constexpr unsigned gradient_reads = ~1u;  ///< the operands, not the results
  S stencil;
  E of_domain;

  template <int I, class G, class Y, AnyOperand... X>
    requires AnyTensor<std::tuple_element_t<std::size_t(I), std::tuple<X...>>>
  auto gradient(wrt<I>, const G& g, const Y&, const X&... x) const {
    constexpr int dims = std::tuple_element_t<std::size_t(I), std::tuple<X...>>::dims;
    const auto with = [&](const auto&... cotangent) {
      if constexpr (declares_stride<S>) {
        return strided_gradient<I>(stencil, of_domain, std::tie(x...), cotangent...);
      } else {
        using Gradient = StencilGradient<
            S, I, dims, E, sizeof...(cotangent),
            typename TypeEntry<std::remove_cvref_t<decltype(as_operand(x))>>::type...>;
        return apply(Gradient(stencil), cotangent..., x..., gradient_edges(of_domain));
      }
    };
    if constexpr (is_tuple_of_results<G>) return std::apply(with, g);
    else return with(g);
  }
};

}  // namespace cleave::detail
