// The gradient of a stencil, which is a stencil again: each element adds the cotangents of the
// results that read it, each times the slope of that result. Nothing is sent to be added, so the
// bits are the same on every mesh.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/kernels/dual.hpp>
#include <cleave/ops/stencil/apply.hpp>
#include <cleave/ops/stencil/strided_gradient.hpp>

namespace cleave::detail {

/// A field around an element elsewhere, as dual numbers: the slope is 1 where `seed` is read.
template <class Field, class V, int Dims, bool Varies>
struct DualField {
  const Field& field;
  const int* seed;         ///< the offset of the element that the slope belongs to; the field is
                           ///< read around the element at minus that offset
  const index_t* extents;  ///< of periodic dimensions; 0: others

  template <class... I>
  CLEAVE_HOST_DEVICE constexpr kernels::Dual<V> operator()(I... offset) const {
    static_assert(sizeof...(I) == std::size_t(Dims));
    int d = 0;
    const int moved[] = {int(offset) - seed[d++]...};
    bool is_seed = Varies;
    for (const int by : moved) is_seed = is_seed && by == 0;
    return [&]<std::size_t... D>(std::index_sequence<D...>) {
      return kernels::Dual<V>(V(field(moved[D]...)), V(is_seed ? 1 : 0));
    }(std::make_index_sequence<std::size_t(Dims)>{});
  }
  CLEAVE_HOST_DEVICE constexpr index_t index(int d) const {
    const index_t i = field.index(d) - seed[d], n = extents[d];
    return n == 0 ? i : (i % n + n) % n;
  }
};

/// The gradient of S with respect to operand I, of operands T: its fields are the cotangents of the
/// results, then the operands.
template <class S, int I, int Dims, std::size_t Results, class... T>
class StencilGradient : public Stencil {
 public:
  static constexpr const char* name = S::name;
  static constexpr auto reach = [] {
    constexpr auto of = reaches_of<S, T...>;
    std::array<Reach, Results + sizeof...(T)> result{};
    for (std::size_t k = 0; k < result.size(); ++k) {
      Reach& here = result[k];
      here = of.of[I];
      here.dims = Dims;
      here.corners = here.corners || k >= Results;
      const Reach none{};
      const Reach& other = k < Results ? none : of.of[k - Results];
      for (int d = 0; d < Dims; ++d) {
        here.lo[d] = other.lo[d] - of.of[I].hi[d];
        here.hi[d] = other.hi[d] - of.of[I].lo[d];
      }
    }
    return result;
  }();

  /// @param domain    global extents
  /// @param periodic  bit d: dimension d is
  StencilGradient(const S& stencil, const Shape& domain, unsigned periodic) : stencil_(stencil) {
    for (int d = 0; d < Dims; ++d) {
      domain_[d] = domain[d];
      period_[d] = periodic >> d & 1u ? domain[d] : 0;
    }
  }

  template <class... A>
  auto operator()(const A&... a) const {
    const std::tuple<const A&...> all(a...);
    constexpr Reach of = reaches_of<S, T...>.of[I];
    using V = stencil_value_t<std::tuple_element_t<std::size_t(I), std::tuple<T...>>>;
    V sum = V(0);
    int offset[Dims];
    for (int d = 0; d < Dims; ++d) offset[d] = of.lo[d];
    for (;;) {
      if (is_read(offset, of.corners) && exists(offset, std::get<0>(all)))
        sum = sum + addend<V>(offset, all, std::index_sequence_for<T...>{},
                              std::make_index_sequence<Results>{});
      int d = Dims - 1;
      for (; d >= 0 && ++offset[d] > of.hi[d]; --d) offset[d] = of.lo[d];
      if (d < 0) return sum;
    }
  }

 private:
  static bool is_read(const int* offset, bool corners) {
    int moved = 0;
    for (int d = 0; d < Dims; ++d) moved += offset[d] != 0;
    return corners || moved <= 1;
  }
  /// Whether there is a result that reads the element at that offset.
  bool exists(const int* offset, const auto& field) const {
    for (int d = 0; d < Dims; ++d) {
      const index_t i = field.index(d) - offset[d];
      if (period_[d] == 0 && (i < 0 || i >= domain_[d])) return false;
    }
    return true;
  }

  template <class V, std::size_t... K, std::size_t... R>
  V addend(const int* offset, const auto& all, std::index_sequence<K...>,
           std::index_sequence<R...>) const {
    const auto argument = [&]<std::size_t Operand>(std::integral_constant<std::size_t, Operand>) {
      using Type = std::tuple_element_t<Operand, std::tuple<T...>>;
      const auto& operand = std::get<Results + Operand>(all);
      if constexpr (is_number<Type>) return operand;
      else
        return DualField<std::remove_cvref_t<decltype(operand)>, stencil_value_t<Type>, Dims,
                         int(Operand) == I>{operand, offset, period_};
    };
    const auto value = stencil_(argument(std::integral_constant<std::size_t, K>{})...);
    const auto cotangent = [&](const auto& g) {
      return [&]<std::size_t... D>(std::index_sequence<D...>) {
        return V(g(-offset[D]...));
      }(std::make_index_sequence<std::size_t(Dims)>{});
    };
    V sum = V(0);
    if constexpr (is_tuple_of_results<std::remove_cvref_t<decltype(value)>>)
      ((sum = sum + V(kernels::slope_of(std::get<R>(value))) * cotangent(std::get<R>(all))), ...);
    else sum = V(kernels::slope_of(value)) * cotangent(std::get<0>(all));
    return sum;
  }

  S stencil_;
  index_t domain_[Dims];
  index_t period_[Dims];  ///< 0: not periodic
};

template <class S>
inline constexpr bool is_stencil_gradient = false;
template <class S, int I, int Dims, std::size_t Results, class... T>
inline constexpr bool is_stencil_gradient<StencilGradient<S, I, Dims, Results, T...>> = true;

/// Whether gradients can pass an edge: what is beyond it is not another element, or is periodic.
template <class E>
inline constexpr bool passes_gradients =
    E::kind == EdgeKind::periodic || E::kind == EdgeKind::value;
template <class L, class H>
inline constexpr bool passes_gradients<SidesOf<L, H>> = passes_gradients<L> && passes_gradients<H>;

/// A call of a stencil as the tape records it.
template <class S, class E>
struct StencilOp;
template <class S, class... E>
struct StencilOp<S, Edges<E...>> {
  static constexpr const char* name = S::name;
  static constexpr unsigned gradient_reads = ~1u;  ///< the operands, not the results
  S stencil;
  Edges<E...> of_domain;

  template <int I, class G, class Y, AnyOperand... X>
    requires AnyTensor<std::tuple_element_t<std::size_t(I), std::tuple<X...>>>
  auto gradient(wrt<I>, const G& g, const Y&, const X&... x) const {
    static_assert((passes_gradients<E> && ...),
                  "cleave: the gradient of a stencil requires edges that are periodic, zero or "
                  "dirichlet(..)");
    static_assert(!is_stencil_gradient<S>,
                  "cleave: the gradient of a stencil cannot be differentiated again");
    const auto& operand = std::get<std::size_t(I)>(std::tuple<const X&...>(x...));
    constexpr int dims = std::remove_cvref_t<decltype(operand)>::dims;
    const auto with = [&](const auto&... cotangent) {
      if constexpr (declares_stride<S>) {
        return strided_gradient<I>(stencil, of_domain, std::tie(x...), cotangent...);
      } else {
        const auto& first = std::get<0>(std::tie(cotangent...));
        if (knows_extents(operand) && !(shape_of(operand) == shape_of(first)))
          throw Error(name, "the gradient requires fields of the extents of the result",
                      context_of(operand));
        using Gradient = StencilGradient<
            S, I, dims, sizeof...(cotangent),
            typename TypeEntry<std::remove_cvref_t<decltype(as_operand(x))>>::type...>;
        return apply(Gradient(stencil, shape_of(first), periodic_dims(dims)), cotangent..., x...,
                     of_domain);
      }
    };
    if constexpr (is_tuple_of_results<G>) return std::apply(with, g);
    else return with(g);
  }

 private:
  static constexpr unsigned periodic_dims(int dims) {
    const bool is_periodic[] = {std::is_same_v<E, PlainEdge<EdgeKind::periodic>>...};
    unsigned periodic = 0;
    for (int d = 0; d < dims; ++d)
      if (is_periodic[sizeof...(E) == 1 ? 0 : d]) periodic |= 1u << d;
    return periodic;
  }
};

}  // namespace cleave::detail
