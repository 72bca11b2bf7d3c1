// The gradient of a stencil between grids: with respect to a finer field, its cotangents are read
// as a coarser field, and the other way round. Nothing is sent to be added.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/kernels/dual.hpp>
#include <cleave/ops/shapes/zeros_like.hpp>
#include <cleave/ops/stencil/apply.hpp>

namespace cleave::detail {

/// A field around the centre of an element of the result, read from where the gradient's element
/// is, as dual numbers: the slope is 1 where that element is read.
template <class Field, class V, int Dims, bool Varies>
struct StridedDualField {
  const Field& field;
  const index_t* element;  ///< of the result, in the domain
  const int* moved;        ///< from where the field is read to the centre of that element
  const int* seed;         ///< the offset at which the gradient's element is read

  template <class... I>
  constexpr kernels::Dual<V> operator()(I... offset) const {
    static_assert(sizeof...(I) == std::size_t(Dims));
    const int by[] = {int(offset)...};
    return [&]<std::size_t... D>(std::index_sequence<D...>) {
      const bool is_seed = Varies && ((by[D] == seed[D]) && ...);
      return kernels::Dual<V>(V(field(by[D] + moved[D]...)), V(is_seed ? 1 : 0));
    }(std::make_index_sequence<std::size_t(Dims)>{});
  }
  constexpr index_t index(int d) const { return element[d]; }
};

/// The gradient of S with respect to operand I, of operands T: its fields are the cotangents of the
/// results, then the operands, its result is on the grid of operand I.
template <class S, int I, int Dims, std::size_t Results, class... T>
class StridedGradient : public Stencil {
  static constexpr std::size_t operands = Results + sizeof...(T);
  static constexpr std::array<DimMap, sizeof...(T)> steps(int d) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::array<DimMap, sizeof...(T)>{declared_stride<S, K>().map(d)...};
    }(std::index_sequence_for<T...>{});
  }
  static constexpr DimMap own_step(int d) { return steps(d)[std::size_t(I)]; }
  /// Of a field, for the cotangents as for the result.
  static constexpr DimMap step_of(std::size_t k, int d) {
    return k < Results ? DimMap{} : steps(d)[k - Results];
  }
  static constexpr index_t centre(const DimMap& step, index_t i) {
    return floor_divide(step.num * i, step.den);
  }
  /// The element of the result around which those that read element j are counted.
  static constexpr index_t first_reader(int d, index_t j) {
    const DimMap step = own_step(d);
    return floor_divide(step.den * j, step.num);
  }
  static constexpr Reach of_operand = reaches_of<S, T...>.of[I];

  /// Elements of the result that may read an element, counted from the first reader; and what they
  /// read of field k, counted from the gradient's element.
  struct Range {
    int least = 0, most = 0;

    constexpr void include(index_t by) {
      least = int(by) < least ? int(by) : least;
      most = int(by) > most ? int(by) : most;
    }
  };
  static constexpr Range readers_in(int d) {
    const DimMap step = own_step(d);
    const DimMap map{step.num, step.den, step.den * of_operand.lo[d], step.den * of_operand.hi[d]};
    Range range;
    for (index_t j = 0; j < step.num; ++j) {
      const IndexRange found = readers(map, {j, j + 1});
      range.include(found.begin - first_reader(d, j));
      range.include(found.end - 1 - first_reader(d, j));
    }
    return range;
  }
  /// The map from the gradient's elements to the centres of field k.
  static constexpr DimMap map_of(std::size_t k, int d) {
    const DimMap own = own_step(d), step = step_of(k, d);
    const index_t num = step.num * own.den, den = step.den * own.num;
    return {num / std::gcd(num, den), den / std::gcd(num, den)};
  }
  static constexpr Range reads_in(std::size_t k, int d) {
    const DimMap own = own_step(d), step = step_of(k, d), map = map_of(k, d);
    const Range around = readers_in(d);
    const Reach of = k < Results ? Reach{} : reaches_of<S, T...>.of[k - Results];
    Range range;
    for (index_t j = 0; j < own.num * own.den * step.num * step.den; ++j) {
      const index_t reader = first_reader(d, j), from = centre(map, j);
      // The centres are ordered as the readers.
      range.include(centre(step, reader + around.least) - from + of.lo[d]);
      range.include(centre(step, reader + around.most) - from + of.hi[d]);
    }
    return range;
  }

 public:
  static constexpr const char* name = S::name;
  static constexpr auto stride = [] {
    std::array<Stride, operands> result{};
    for (std::size_t k = 0; k < operands; ++k) {
      result[k].dims = Dims;
      for (int d = 0; d < Dims; ++d)
        result[k].num[d] = int(map_of(k, d).num), result[k].den[d] = int(map_of(k, d).den);
    }
    return result;
  }();
  static constexpr auto reach = [] {
    std::array<Reach, operands> result{};
    for (std::size_t k = 0; k < operands; ++k) {
      result[k].dims = Dims;
      result[k].corners = true;
      for (int d = 0; d < Dims; ++d) {
        const Range range = reads_in(k, d);
        result[k].lo[d] = range.least, result[k].hi[d] = range.most;
      }
    }
    return result;
  }();

  /// @param results   global extents of the results
  /// @param periodic  bit d: dimension d is
  StridedGradient(const S& stencil, const Shape& results, unsigned periodic)
      : stencil_(stencil), periodic_(periodic) {
    for (int d = 0; d < Dims; ++d) results_[d] = results[d];
  }

  template <class... A>
  auto operator()(const A&... a) const {
    const std::tuple<const A&...> all(a...);
    using V = stencil_value_t<std::tuple_element_t<std::size_t(I), std::tuple<T...>>>;
    V sum = V(0);
    index_t first[Dims];
    int by[Dims];
    for (int d = 0; d < Dims; ++d) {
      first[d] = first_reader(d, std::get<0>(all).index(d));
      by[d] = readers_in(d).least;
    }
    for (;;) {
      sum = sum + addend<V>(first, by, all, std::index_sequence_for<T...>{},
                            std::make_index_sequence<Results>{});
      int d = Dims - 1;
      for (; d >= 0 && ++by[d] > readers_in(d).most; --d) by[d] = readers_in(d).least;
      if (d < 0) return sum;
    }
  }

 private:
  /// What a result adds. @param by  the result, counted from `first`
  template <class V, std::size_t... K, std::size_t... R>
  V addend(const index_t* first, const int* by, const auto& all, std::index_sequence<K...>,
           std::index_sequence<R...>) const {
    index_t element[Dims];
    int seed[Dims], moved[operands][Dims], steps_aside = 0;
    for (int d = 0; d < Dims; ++d) {
      const index_t i = first[d] + by[d], n = results_[d], j = std::get<0>(all).index(d);
      seed[d] = int(j - centre(own_step(d), i));
      steps_aside += seed[d] != 0;
      const bool is_periodic = (periodic_ >> d & 1u) != 0;
      if (seed[d] < of_operand.lo[d] || seed[d] > of_operand.hi[d]) return V(0);
      if (!is_periodic && (i < 0 || i >= n)) return V(0);
      element[d] = is_periodic ? (i % n + n) % n : i;
      for (std::size_t k = 0; k < operands; ++k)
        moved[k][d] = int(centre(step_of(k, d), i) - centre(map_of(k, d), j));
    }
    if (steps_aside > 1 && !of_operand.corners) return V(0);
    const auto argument = [&]<std::size_t Operand>(std::integral_constant<std::size_t, Operand>) {
      using Type = std::tuple_element_t<Operand, std::tuple<T...>>;
      const auto& operand = std::get<Results + Operand>(all);
      if constexpr (is_number<Type>) return operand;
      else
        return StridedDualField<std::remove_cvref_t<decltype(operand)>, stencil_value_t<Type>, Dims,
                                int(Operand) == I>{operand, element, moved[Results + Operand],
                                                   seed};
    };
    const auto value = stencil_(argument(std::integral_constant<std::size_t, K>{})...);
    const auto cotangent = [&](const auto& g, const int* at) {
      return [&]<std::size_t... D>(std::index_sequence<D...>) {
        return V(g(at[D]...));
      }(std::make_index_sequence<std::size_t(Dims)>{});
    };
    V sum = V(0);
    if constexpr (is_tuple_of_results<std::remove_cvref_t<decltype(value)>>)
      ((sum =
            sum + V(kernels::slope_of(std::get<R>(value))) * cotangent(std::get<R>(all), moved[R])),
       ...);
    else sum = V(kernels::slope_of(value)) * cotangent(std::get<0>(all), moved[0]);
    return sum;
  }

  S stencil_;
  index_t results_[Dims];
  unsigned periodic_;
};

/// A tensor of the extents of an operand, placed as a cotangent.
template <class X, class G>
auto gradient_target(const X& operand, const G& cotangent) {
  using T = typename X::value_type;
  if constexpr (call_level<X> == 2) {
    return zeros_like(operand);
  } else if constexpr (!is_dtensor<X>) {
    return Tensor<T, X::dims>(operand.shape());
  } else {
    using P = without_partials_t<typename G::placements_type>;
    using Target = DTensor<T, X::dims, typename G::mesh_type, P>;
    const MeshState& mesh = cotangent.mesh().state();
    const Shape local = mesh.is_member() ? owned_box(Target::layout, Shape(operand.shape()),
                                                     mesh.extents(), mesh.coordinate())
                                               .extents()
                                         : Shape::filled(X::dims, 0);
    return Target::unchecked(Tensor<T, X::dims>(to_array<X::dims>(local)), cotangent.mesh(),
                             operand.shape());
  }
}

/// Whether what is beyond an edge is not another element, or is periodic.
template <class E>
inline constexpr bool passes_strided_gradients =
    E::kind == EdgeKind::periodic || E::kind == EdgeKind::value;
template <class L, class H>
inline constexpr bool passes_strided_gradients<SidesOf<L, H>> =
    passes_strided_gradients<L> && passes_strided_gradients<H>;

/// @throws Error if a field has no period in which the stencil reads it
template <class X>
void check_period(const char* name, const X& field, const Stride& stride, const Shape& results,
                  unsigned periodic) {
  if constexpr (!is_number<std::remove_cvref_t<decltype(as_operand(field))>>) {
    const Shape shape(field.shape());
    for (int d = 0; d < X::dims; ++d)
      if (periodic >> d & 1u && stride.map(d).num * results[d] != stride.map(d).den * shape[d])
        throw Error(name,
                    "the gradient requires extents in periodic dimensions that are multiples of "
                    "each other; those of dimension " +
                        std::to_string(d) + " are " + std::to_string(shape[d]) + " and " +
                        std::to_string(results[d]),
                    context_of(field));
  }
}

/// The gradient of a call of S with respect to operand I.
///
/// @throws Error if a dimension is periodic and the extents are not multiples of each other
template <int I, class S, class... E, class... A, class... G>
auto strided_gradient(const S& stencil, const Edges<E...>& of_domain,
                      const std::tuple<const A&...>& operands, const G&... cotangent) {
  static_assert((passes_strided_gradients<E> && ...),
                "cleave: the gradient of a stencil with a stride requires edges that are periodic, "
                "zero or dirichlet(..)");
  const auto& operand = std::get<std::size_t(I)>(operands);
  constexpr bool on_host =
      std::is_same_v<typename std::remove_cvref_t<decltype(operand)>::device_type, Host>;
  static_assert(on_host,
                "cleave: the gradient of a stencil with a stride is computed on the host; copy the "
                "fields: .to(Host{})");
  constexpr int dims = std::remove_cvref_t<decltype(operand)>::dims;
  const auto& first = std::get<0>(std::tie(cotangent...));
  const Shape results(first.shape());
  constexpr bool are_periodic[] = {std::is_same_v<E, PlainEdge<EdgeKind::periodic>>...};
  unsigned periodic = 0;
  for (int d = 0; d < dims; ++d)
    if (are_periodic[sizeof...(E) == 1 ? 0 : d]) periodic |= 1u << d;
  const auto target = gradient_target(operand, first);
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (check_period(S::name, std::get<K>(operands), declared_stride<S, K>(), results, periodic), ...);
    using Gradient = StridedGradient<S, I, dims, sizeof...(G),
                                     typename TypeEntry<std::remove_cvref_t<decltype(as_operand(
                                         std::get<K>(operands)))>>::type...>;
    apply(out(target), Gradient(stencil, results, periodic), cotangent..., std::get<K>(operands)...,
          of_domain);
  }(std::index_sequence_for<A...>{});
  return target;
}

}  // namespace cleave::detail
