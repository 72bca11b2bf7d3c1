// The gradient of a stencil, which is a stencil again: each element adds the cotangents of the
// results that read it, directly or beyond an edge, each times the slope of that result. Nothing is
// sent to be added, so the bits are the same on every mesh.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/kernels/dual.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/ops/stencil/apply.hpp>
#include <cleave/ops/stencil/gradient_reach.hpp>

namespace cleave::inline v0::detail {

/// Whether an offset from the centre of a result leads to an element, `seed` from that centre.
/// @tparam NearEdge  false: elements near edges are not asked for
template <class Reads, int D, bool NearEdge>
CLEAVE_HOST_DEVICE constexpr bool reads_element(int by, int seed, index_t element, index_t extent) {
  if constexpr (NearEdge && Reads::mirrors(D)) {
    constexpr auto kinds = Reads::Kinds::of(D);
    return resolved_index(kinds[0], kinds[1], false, extent, element - seed + by) == element;
  } else {
    return by == seed;
  }
}

/// A field around the centre of a result, read from where the gradient's element is, as dual
/// numbers: the slope is 1 where that element is read, directly or beyond an edge.
template <class Reads, class Field, int Dims, bool Varies, bool NearEdge>
struct DualField {
  using Kinds = typename Reads::Kinds;

  const Field& field;
  const int* moved;        ///< from where the field is read to the centre of the result
  const int* seed;         ///< the offset at which the gradient's element is read
  const index_t* element;  ///< of the gradient
  const index_t* extents;  ///< of the field of the gradient
  const index_t* result;   ///< not wrapped
  const index_t* results;  ///< their number

  template <class... I>
  CLEAVE_HOST_DEVICE constexpr auto operator()(I... offset) const {
    static_assert(sizeof...(I) == std::size_t(Dims));
    const int by[] = {int(offset)...};
    return [&]<std::size_t... D>(std::index_sequence<D...>) {
      const auto value = field(by[D] + moved[D]...);
      using V = std::remove_cvref_t<decltype(value)>;
      bool is_seed = Varies;
      if constexpr (Varies)
        is_seed =
            (reads_element<Reads, int(D), NearEdge>(by[D], seed[D], element[D], extents[D]) && ...);
      return kernels::Dual<V>(value, V(is_seed ? 1 : 0));
    }(std::make_index_sequence<std::size_t(Dims)>{});
  }
  CLEAVE_HOST_DEVICE constexpr index_t index(int d) const {
    const index_t i = result[d], n = results[d];
    return Kinds::is_periodic(d) ? (i % n + n) % n : i;
  }
};

template <class Reads, bool HasStride>
struct GradientStride : Stencil {};
template <class Reads>
struct GradientStride<Reads, true> : Stencil {
  static constexpr auto stride = Reads::strides();
};

/// The gradient of a stencil. @see GradientReach  Its edges are those of `gradient_edges`.
template <class S, int I, int Dims, class E, std::size_t Results, class... T>
class StencilGradient
    : public GradientStride<GradientReach<S, I, Dims, E, Results, T...>, declares_stride<S>> {
  using Reads = GradientReach<S, I, Dims, E, Results, T...>;
  using Kinds = typename Reads::Kinds;
  static constexpr auto each_dim = std::make_index_sequence<std::size_t(Dims)>{};

 public:
  static constexpr const char* name = S::name;
  /// The result has the extents and the element type of this operand.
  static constexpr std::size_t result_like = Results + std::size_t(I);
  static constexpr std::size_t operands_within = Results;
  static constexpr auto reach = Reads::reaches();

  explicit StencilGradient(const S& stencil) : stencil_(stencil) {}

  /// The gradient for fields of these extents.
  /// @throws Error if edges mirror elements of a field that ends before the results, or if a field
  ///               has no period in which it is read
  StencilGradient bound_to(std::span<const FieldWindow> fields) const {
    StencilGradient bound(bound_stencil(stencil_, fields.subspan(Results)));
    constexpr bool is_field[] = {!is_number<T>...};
    const Shape& results = fields[0].domain;
    std::size_t at = Results;
    for (std::size_t k = 0; k < sizeof...(T); ++k) {
      if (!is_field[k]) continue;
      const Shape& extents = fields[at++].domain;
      const auto fail = [&](int d, const std::string& message) {
        throw Error(name, "the gradient with " + message + ", in dimension " + std::to_string(d),
                    {.shapes = to_string(extents) + " and " + to_string(results)});
      };
      for (int d = 0; d < Dims; ++d) {
        const DimMap step = Reads::operand_step(k, d);
        if (Kinds::is_periodic(d) && step.num * results[d] != step.den * extents[d])
          fail(d,
               "periodic edges requires fields and results of extents that are multiples of "
               "each other");
        if (k != std::size_t(I)) continue;
        bound.extents_[d] = extents[d];
        bound.results_end_[d] = Reads::first_result(d) + results[d];
        if (Reads::mirrors(d) && Kinds::mirrors(d, 1) &&
            Reads::centre(step, bound.results_end_[d] - 1) >= extents[d])
          fail(d,
               "edges that mirror elements requires a field that does not end before the "
               "result");
      }
    }
    return bound;
  }

  template <class... A>
  CLEAVE_HOST_DEVICE auto operator()(const A&... a) const {
    const std::tuple<const A&...> all(a...);
    using V = decltype(at_centre(std::get<result_like>(all), each_dim));
    V sum = V(0);
    Reader readers[std::size_t(Dims)];
    if (is_near_edge(std::get<0>(all), each_dim)) add_readers<0, true>(sum, readers, 0, all);
    else add_readers<0, false>(sum, readers, 0, all);
    return sum;
  }

 private:
  template <std::size_t... D>
  CLEAVE_HOST_DEVICE static auto at_centre(const auto& field, std::index_sequence<D...>) {
    return field(int(D * 0)...);
  }

  /// Whether the gradient's element may be read beyond an edge.
  template <std::size_t... D>
  CLEAVE_HOST_DEVICE bool is_near_edge(const auto& field, std::index_sequence<D...>) const {
    const auto in_dim = [&]<int At>(std::integral_constant<int, At>) {
      constexpr int far = Reads::farthest(At);
      const index_t i = field.index(At);
      return Reads::mirrors(At) && (i <= far || i >= extents_[At] - 1 - far);
    };
    return (in_dim(std::integral_constant<int, int(D)>{}) || ...);
  }

  /// A result that may read the gradient's element: where, in one dimension.
  struct Reader {
    index_t result;  ///< not wrapped
    int seed;
    bool reads;
  };
  /// Adds what results add, which are at `readers` in the dimensions before D.
  /// @param steps_aside  in how many of them another element than the centre is read
  template <int D, bool NearEdge, class V>
  CLEAVE_HOST_DEVICE void add_readers(V& sum, Reader* readers, int steps_aside,
                                      const auto& all) const {
    constexpr auto around = Reads::readers_in(D);
    constexpr bool corners = Reads::of_operand.corners;
    const index_t element = std::get<0>(all).index(D);
    for (int by = around.least; by <= around.most; ++by) {
      readers[D] = reader<D, NearEdge>(element, by);
      const int aside = steps_aside + int(readers[D].seed != 0);
      if (!readers[D].reads || (aside > 1 && !corners)) continue;
      if constexpr (D + 1 < Dims) add_readers<D + 1, NearEdge>(sum, readers, aside, all);
      else
        sum = sum + addend<V, NearEdge>(readers, all, each_dim, std::index_sequence_for<T...>{},
                                        std::make_index_sequence<Results>{});
    }
  }
  template <int D, bool NearEdge>
  CLEAVE_HOST_DEVICE Reader reader(index_t element, int by) const {
    constexpr DimMap own = Reads::own_step(D);
    constexpr index_t first = Reads::first_result(D);
    const index_t result = Reads::first_reader(own, element) + by;
    const int seed = int(element - Reads::centre(own, result));
    bool reads = Kinds::is_periodic(D) || (result >= first && result < results_end_[D]);
    constexpr int lo = Reads::of_operand.lo[D], hi = Reads::of_operand.hi[D];
    if constexpr (NearEdge && Reads::mirrors(D)) {
      bool found = false;
      for (int to = lo; to <= hi; ++to)
        found = found || reads_element<Reads, D, true>(to, seed, element, extents_[D]);
      reads = reads && found;
    } else {
      reads = reads && seed >= lo && seed <= hi;
    }
    return {result, seed, reads};
  }
  /// From the centre of the gradient's element in field K to that of a result.
  template <std::size_t K, std::size_t... D>
  CLEAVE_HOST_DEVICE static void set_moved(int* moved, const index_t* element,
                                           const Reader* readers, std::index_sequence<D...>) {
    const auto one = [&]<int At>(std::integral_constant<int, At>) {
      constexpr DimMap step = Reads::step_of(K, At), map = Reads::map_of(K, At);
      constexpr index_t first = K < Results ? Reads::first_result(At) : 0;
      return int(Reads::centre(step, readers[At].result) - Reads::centre(map, element[At]) - first);
    };
    ((moved[D] = one(std::integral_constant<int, int(D)>{})), ...);
  }

  /// What a result adds.
  template <class V, bool NearEdge, std::size_t... D, std::size_t... K, std::size_t... R>
  CLEAVE_HOST_DEVICE V addend(const Reader* readers, const auto& all, std::index_sequence<D...>,
                              std::index_sequence<K...>, std::index_sequence<R...>) const {
    const index_t element[] = {std::get<0>(all).index(int(D))...};
    const int seed[] = {readers[D].seed...};
    const index_t result[] = {readers[D].result...};
    int of_field[sizeof...(K)][std::size_t(Dims)], of_cotangent[Results][std::size_t(Dims)];
    (set_moved<Results + K>(of_field[K], element, readers, each_dim), ...);
    (set_moved<R>(of_cotangent[R], element, readers, each_dim), ...);
    const auto argument = [&]<std::size_t Operand>(std::integral_constant<std::size_t, Operand>) {
      const auto& operand = std::get<Results + Operand>(all);
      if constexpr (is_number<std::tuple_element_t<Operand, std::tuple<T...>>>) return operand;
      else
        return DualField<Reads, std::remove_cvref_t<decltype(operand)>, Dims, int(Operand) == I,
                         NearEdge>{operand, of_field[Operand], seed, element, extents_,
                                   result,  results_end_};
    };
    const auto value = stencil_(argument(std::integral_constant<std::size_t, K>{})...);
    const auto cotangent = [&](const auto& g, const int* at) { return V(g(at[D]...)); };
    V sum = V(0);
    if constexpr (is_tuple_of_results<std::remove_cvref_t<decltype(value)>>)
      ((sum = sum + V(kernels::slope_of(std::get<R>(value))) *
                        cotangent(std::get<R>(all), of_cotangent[R])),
       ...);
    else sum = V(kernels::slope_of(value)) * cotangent(std::get<0>(all), of_cotangent[0]);
    return sum;
  }

  S stencil_;
  index_t extents_[std::size_t(Dims)] = {};      ///< of the operand
  index_t results_end_[std::size_t(Dims)] = {};  ///< as an index of the results
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
      using Gradient = StencilGradient<
          S, I, dims, E, sizeof...(cotangent),
          typename TypeEntry<std::remove_cvref_t<decltype(as_operand(x))>>::type...>;
      return apply(Gradient(stencil), cotangent..., x..., gradient_edges(of_domain));
    };
    if constexpr (is_tuple_of_results<G>) return std::apply(with, g);
    else return with(g);
  }
};

}  // namespace cleave::inline v0::detail
