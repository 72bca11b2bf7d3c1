// Which results of a stencil read an element of a field, and what the gradient with respect to that
// field therefore reads: constants of types, the places in grids of different spacing among them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include <cleave/core/config.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/ops/stencil/edges.hpp>
#include <cleave/ops/stencil/reach.hpp>
#include <cleave/ops/stencil/stride.hpp>
#include <cleave/placement/dim_map.hpp>

namespace cleave::inline v0::detail {

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
  static constexpr bool is_periodic(int d) { return of(d)[0] == EdgeKind::periodic; }
};

/// The number of operands, from the first, that a stencil reads only where they have elements.
template <class S>
constexpr std::size_t operands_within() {
  if constexpr (requires { S::operands_within; }) return S::operands_within;
  else return 0;
}

/// The gradient of S with edges E with respect to operand I, of operands T. Its fields are the
/// cotangents of the results, then the operands; its result is on the grid of operand I.
template <class S, int I, int Dims, class E, std::size_t Results, class... T>
struct GradientReach {
  using Kinds = EdgeKinds<E, Dims>;
  static constexpr std::size_t operands = Results + sizeof...(T);
  static constexpr Reach of_operand = reaches_of<S, T...>.of[I];

  /// Offsets, from the least to the most.
  struct Range {
    int least = 0, most = 0;

    constexpr void include(index_t by) {
      least = std::min(least, int(by)), most = std::max(most, int(by));
    }
  };

  /// Whether elements are also read as those beyond an edge.
  CLEAVE_HOST_DEVICE static constexpr bool mirrors(int d) {
    return std::size_t(I) >= operands_within<S>() && (Kinds::mirrors(d, 0) || Kinds::mirrors(d, 1));
  }
  /// How far from a centre an element is read. Beyond an edge, none that is farther from the edge.
  static constexpr int farthest(int d) { return std::max(-of_operand.lo[d], of_operand.hi[d]); }
  /// From the results to the centres of operand k.
  static constexpr DimMap operand_step(std::size_t k, int d) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      const DimMap steps[] = {declared_stride<S, K>().map(d)...};
      return steps[k];
    }(std::index_sequence_for<T...>{});
  }
  static constexpr DimMap own_step(int d) { return operand_step(std::size_t(I), d); }
  /// From the results to the centres of field k.
  static constexpr DimMap step_of(std::size_t k, int d) {
    return k < Results ? DimMap{} : operand_step(k - Results, d);
  }
  /// From the gradient's elements to the centres of field k.
  static constexpr DimMap map_of(std::size_t k, int d) {
    const DimMap own = own_step(d), step = step_of(k, d);
    const index_t num = step.num * own.den, den = step.den * own.num;
    return {num / std::gcd(num, den), den / std::gcd(num, den)};
  }
  CLEAVE_HOST_DEVICE static constexpr index_t centre(const DimMap& step, index_t i) {
    return floor_divide(step.num * i, step.den);
  }
  /// The result from which those that read element j are counted.
  CLEAVE_HOST_DEVICE static constexpr index_t first_reader(const DimMap& own, index_t j) {
    return floor_divide(own.den * j, own.num);
  }
  /// The results that may read an element, counted from the first reader. Mirroring brings an index
  /// no farther from the centre, which is in the field.
  static constexpr Range readers_in(int d) {
    const DimMap step = own_step(d);
    const DimMap map{step.num, step.den, step.den * (mirrors(d) ? -farthest(d) : of_operand.lo[d]),
                     step.den * (mirrors(d) ? farthest(d) : of_operand.hi[d])};
    Range range;
    for (index_t j = 0; j < step.num; ++j) {
      const IndexRange found = readers(map, {j, j + 1});
      range.include(found.begin - first_reader(step, j));
      range.include(found.end - 1 - first_reader(step, j));
    }
    return range;
  }
  /// The first element of the results: those before it read elements that do not exist.
  static constexpr index_t first_result(int d) {
    index_t first = 0;
    if (Kinds::of(d)[0] == EdgeKind::none)
      for (const FieldReach& read : field_reaches_of<S, T...>) {
        const DimMap& map = read.maps[std::size_t(d)];
        first = std::max(first, -floor_divide(map.lo, map.num));
      }
    return first;
  }
  /// What is read of field k, counted from the centre in it of the gradient's element.
  static constexpr Range reads_in(std::size_t k, int d) {
    const DimMap own = own_step(d), step = step_of(k, d), map = map_of(k, d);
    const Range around = readers_in(d);
    const Reach of = k < Results ? Reach{} : reaches_of<S, T...>.of[k - Results];
    const index_t first = k < Results ? first_result(d) : 0;
    Range range;
    for (index_t j = 0; j < own.num * own.den * step.num * step.den; ++j) {
      // the centres are ordered as the readers
      const index_t reader = first_reader(own, j), from = centre(map, j) + first;
      range.include(centre(step, reader + around.least) - from + of.lo[d]);
      range.include(centre(step, reader + around.most) - from + of.hi[d]);
    }
    return range;
  }

  static constexpr std::array<Stride, operands> strides() {
    std::array<Stride, operands> result{};
    for (std::size_t k = 0; k < operands; ++k) {
      result[k].dims = Dims;
      for (int d = 0; d < Dims; ++d)
        result[k].num[d] = int(map_of(k, d).num), result[k].den[d] = int(map_of(k, d).den);
    }
    return result;
  }
  static constexpr std::array<Reach, operands> reaches() {
    std::array<Reach, operands> result{};
    for (std::size_t k = 0; k < operands; ++k) {
      result[k].dims = Dims;
      result[k].corners = of_operand.corners || k >= Results;
      for (int d = 0; d < Dims; ++d) {
        const Range range = reads_in(k, d);
        result[k].lo[d] = range.least, result[k].hi[d] = range.most;
      }
    }
    return result;
  }
};

}  // namespace cleave::inline v0::detail
