// What a stencil reads: offsets per field, dimension and side, found by the compiler.
//
// The stencil is called in a constant expression with fields that record the offsets at which they
// are read. A stencil that branches on elements, or that cannot be called there, declares its
// reach.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/half.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/ops/stencil/stride.hpp>

namespace cleave::inline v0 {

/// The base of stencils: functors that compute an element from neighbours in one or more fields.
///
///     struct Heat : Stencil {
///       double c = 0.1;
///       CLEAVE_HOST_DEVICE constexpr auto operator()(const auto& u) const {
///         return u(0, 0) + c * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0));
///       }
///     };
///
/// A field is read at offsets, one per dimension; `u.index(d)` is the global index of the result's
/// element in dimension d. A tuple is several results. Elements of 16 bits are read as float.
/// `static constexpr auto stride` reads a finer or a coarser field. @see coarsen, refine
struct Stencil {
  static constexpr const char* name = "stencil";
};

/// The least and the greatest offset in a dimension, which include 0.
struct Sides {
  int lo = 0, hi = 0;

  constexpr Sides(int both) : Sides(-both, both) {}
  constexpr Sides(int least, int greatest)
      : lo(least < 0 ? least : 0), hi(greatest > 0 ? greatest : 0) {}
};

/// The offsets at which a stencil reads a field.
struct Reach {
  int dims = 0;  ///< 0: the field is not read
  int lo[max_dims] = {}, hi[max_dims] = {};
  bool corners = false;  ///< whether a read moves in several dimensions at once

  friend constexpr bool operator==(const Reach&, const Reach&) = default;

  constexpr bool contains(const Reach& other) const {
    bool inside = other.dims == 0 || dims == other.dims;
    for (int d = 0; d < other.dims; ++d)
      inside = inside && lo[d] <= other.lo[d] && other.hi[d] <= hi[d];
    return inside && (corners || !other.corners);
  }

  constexpr void include(const Reach& other) {
    if (other.dims > dims) dims = other.dims;
    for (int d = 0; d < dims; ++d) {
      if (other.lo[d] < lo[d]) lo[d] = other.lo[d];
      if (other.hi[d] > hi[d]) hi[d] = other.hi[d];
    }
    corners = corners || other.corners;
  }
};

/// Offsets in one dimension at a time: `star(1, 1)` is the stencil of five points, `star(Sides{-1,
/// 0}, 2)` reads one element before in dimension 0, two at both sides in dimension 1.
template <class... S>
  requires(std::is_convertible_v<S, Sides> && ...)
constexpr Reach star(S... of_dim) {
  Reach reach{int(sizeof...(S))};
  int d = 0;
  ((reach.lo[d] = Sides(of_dim).lo, reach.hi[d++] = Sides(of_dim).hi), ...);
  return reach;
}

/// All offsets of a box: `box(1, 1)` is the stencil of nine points. @see star
template <class... S>
  requires(std::is_convertible_v<S, Sides> && ...)
constexpr Reach box(S... of_dim) {
  Reach reach = star(of_dim...);
  reach.corners = true;
  return reach;
}

/// "star(1, {-2, 1})"
inline std::string to_string(const Reach& reach) {
  std::string text = reach.corners ? "box(" : "star(";
  for (int d = 0; d < reach.dims; ++d) {
    const int lo = reach.lo[d], hi = reach.hi[d];
    if (d > 0) text += ", ";
    if (lo != -hi) text.append("{").append(std::to_string(lo)).append(", ");
    text += std::to_string(hi);
    if (lo != -hi) text += '}';
  }
  return text + ")";
}

namespace detail {

/// The type with which a stencil computes elements T.
template <class T>
using stencil_value_t =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

/// The element of the result for which a probe calls the stencil.
using ProbedElement = std::array<index_t, std::size_t(max_dims)>;

/// A field that records the offsets at which it is read.
template <class T>
struct ProbeField {
  Reach* found;
  unsigned pattern;  ///< 0: ones are read; else bit i is the sign of the reads i, i + 3, ..
  unsigned* reads;
  const ProbedElement* element;

  template <class... I>
  CLEAVE_HOST_DEVICE constexpr T operator()(I... offset) const {
    const int at[] = {int(offset)..., 0};
    const int dims = int(sizeof...(I));
    if (found->dims < dims) found->dims = dims;
    int moved = 0;
    for (int d = 0; d < dims; ++d) {
      if (at[d] < found->lo[d]) found->lo[d] = at[d];
      if (at[d] > found->hi[d]) found->hi[d] = at[d];
      moved += at[d] != 0;
    }
    found->corners = found->corners || moved > 1;
    if (pattern == 0) return T(1);
    const unsigned number = (*reads)++;
    const float size = float(1 + number * 7 % 5);
    return static_cast<T>(pattern >> number % 3 & 1u ? -size : size);
  }
  CLEAVE_HOST_DEVICE constexpr index_t index(int d) const { return (*element)[std::size_t(d)]; }
};

/// The argument of a stencil in a probe: T is the element type of a field, or a Number.
template <class T>
constexpr auto probe_argument(std::type_identity<T>, Reach& found, unsigned pattern,
                              unsigned& reads, const ProbedElement& element) {
  return ProbeField<stencil_value_t<T>>{&found, pattern, &reads, &element};
}
template <class T>
constexpr T probe_argument(std::type_identity<Number<T>>, Reach&, unsigned, unsigned&,
                           const ProbedElement&) {
  return T(1);
}

template <std::size_t Operands>
struct Reaches {
  Reach of[Operands];

  constexpr void include(const Reaches& other) {
    for (std::size_t i = 0; i < Operands; ++i) of[i].include(other.of[i]);
  }
};

inline constexpr ProbedElement first_probed{1, 1, 1, 1, 1, 1, 1, 1};
static_assert(first_probed.size() == 8);

/// What one call of a stencil reads of each operand.
template <class S, class... T, std::size_t... I>
constexpr auto probe(unsigned pattern, std::index_sequence<I...>,
                     const ProbedElement& element = first_probed) {
  Reaches<sizeof...(T)> found{};
  unsigned reads = 0;
  const S stencil{};
  static_cast<void>(
      stencil(probe_argument(std::type_identity<T>{}, found.of[I], pattern, reads, element)...));
  return found;
}

/// Whether the probe is a constant expression.
template <class S, unsigned Pattern, class... T>
concept can_probe = requires {
  typename std::bool_constant<(probe<S, T...>(Pattern, std::index_sequence_for<T...>{}), true)>;
};

template <class S>
concept declares_reach = requires { S::reach; };

/// The declared reach of operand I: one for all fields, or an array.
template <class S, std::size_t I>
constexpr Reach declared_reach() {
  if constexpr (std::is_convertible_v<decltype(S::reach), Reach>) return S::reach;
  else return S::reach[I];
}

/// What a stencil with operands T, element types of fields or Numbers, reads of each for an
/// element.
template <class S, class... T>
constexpr auto find_reaches(const ProbedElement& element) {
  constexpr auto operands = std::index_sequence_for<T...>{};
  constexpr unsigned patterns = 8;
  Reaches<sizeof...(T)> found{};
  constexpr bool can_be_called = std::is_default_constructible_v<S>;
  static_assert(can_be_called || declares_reach<S>,
                "cleave: a stencil without a default constructor must declare its reach: static "
                "constexpr auto reach = star(1, 1);");
  if constexpr (can_be_called) {
    static_assert(can_probe<S, 0, T...> || declares_reach<S>,
                  "cleave: the reach of this stencil cannot be found, because its operator() "
                  "cannot be called in a constant expression; make it constexpr, or declare "
                  "static constexpr auto reach = star(1, 1);");
    const auto probe_all = [&]<unsigned... P>(std::integer_sequence<unsigned, P...>) {
      const auto include = [&]<unsigned K>(std::integral_constant<unsigned, K>) {
        if constexpr (can_probe<S, K, T...>) found.include(probe<S, T...>(K, operands, element));
      };
      (include(std::integral_constant<unsigned, P>{}), ...);
    };
    probe_all(std::make_integer_sequence<unsigned, patterns>{});
  }
  return found;
}

/// Calls f(element, reaches) for one element, or for one at each place in the fields that a stencil
/// refines.
template <class S, class... T, class F>
constexpr void each_probed(const F& f) {
  ProbedElement element = first_probed;
  const auto first = find_reaches<S, T...>(element);
  f(element, first);
  if constexpr (declares_stride<S>) {
    constexpr auto periods = periods_of<S>(std::index_sequence_for<T...>{});
    int dims = 0;
    for (const Reach& reach : first.of) dims = reach.dims > dims ? reach.dims : dims;
    for (int d = 0; d < dims;) {
      if (++element[std::size_t(d)] > periods[std::size_t(d)]) {
        element[std::size_t(d++)] = 1;
        continue;
      }
      f(element, find_reaches<S, T...>(element));
      d = 0;
    }
  }
}

template <class S, class... T>
inline constexpr auto found_reaches = [] {
  Reaches<sizeof...(T)> found{};
  using Found = Reaches<sizeof...(T)>;  // nvcc 13 fails at a generic function
  each_probed<S, T...>([&](const ProbedElement&, const Found& here) { found.include(here); });
  return found;
}();

template <class S, class... T, std::size_t... I>
constexpr auto reaches(std::index_sequence<I...>) {
  if constexpr (!declares_reach<S>) {
    return found_reaches<S, T...>;
  } else {
    constexpr bool keeps_to_it =
        (declared_reach<S, I>().contains(found_reaches<S, T...>.of[I]) && ...);
    static_assert(keeps_to_it, "cleave: a stencil reads farther than its declared reach");
    return Reaches<sizeof...(T)>{{(is_number<T> ? Reach{} : declared_reach<S, I>())...}};
  }
}
/// What a stencil reads of each operand.
template <class S, class... T>
inline constexpr auto reaches_of = reaches<S, T...>(std::index_sequence_for<T...>{});

/// What a stencil reads of its fields, as many as it takes.
template <class S, class... T>
constexpr auto reaches_of_fields() {
  constexpr bool takes_more = sizeof...(T) < 15;
  static_assert(takes_more, "cleave: reach_of requires a stencil that takes 1 to 15 fields");
  if constexpr (std::is_invocable_v<const S&, ProbeField<T>..., ProbeField<double>>)
    return reaches_of<S, T..., double>;
  else if constexpr (takes_more) return reaches_of_fields<S, T..., double>();
}

/// What a stencil reads of a field in each dimension: the indices floor((num * i + lo) / den) to
/// floor((num * i + hi) / den) for element i of the result.
struct FieldReach {
  std::array<DimMap, std::size_t(max_dims)> maps{};
  bool corners = false;  ///< whether a read moves in several dimensions at once

  constexpr FieldReach() = default;
  /// Of offsets that may be read for any element.
  constexpr FieldReach(const Reach& reach, const Stride& stride) : corners(reach.corners) {
    for (int d = 0; d < max_dims; ++d) {
      DimMap& map = maps[std::size_t(d)];
      map = stride.map(d);
      map.lo = map.den * reach.lo[d], map.hi = map.den * reach.hi[d];
    }
  }

  /// Includes the offsets that are read for one element.
  constexpr void include(const Reach& reach, const ProbedElement& element) {
    for (int d = 0; d < max_dims; ++d) {
      DimMap& map = maps[std::size_t(d)];
      const index_t place = element[std::size_t(d)] % map.den;
      const index_t lo = map.den * (reach.lo[d] + 1) - 1 - place;
      const index_t hi = map.den * reach.hi[d] - place;
      if (lo < map.lo) map.lo = lo;
      if (hi > map.hi) map.hi = hi;
    }
    corners = corners || reach.corners;
  }

  /// Whether element i of the result is at index i of the field.
  constexpr bool is_aligned() const {
    for (const DimMap& map : maps)
      if (map.num != 1 || map.den != 1) return false;
    return true;
  }
};

template <class S, class... T, std::size_t... I>
constexpr auto field_reaches(std::index_sequence<I...>) {
  if constexpr (declares_stride<S> && !declares_reach<S>) {
    std::array<FieldReach, sizeof...(T)> found{FieldReach({}, declared_stride<S, I>())...};
    using Found = Reaches<sizeof...(T)>;
    each_probed<S, T...>([&](const ProbedElement& element, const Found& here) {
      (found[I].include(here.of[I], element), ...);
    });
    return found;
  } else {
    return std::array{FieldReach(reaches_of<S, T...>.of[I], declared_stride<S, I>())...};
  }
}
/// What a stencil reads of each operand, with its strides.
template <class S, class... T>
inline constexpr auto field_reaches_of = field_reaches<S, T...>(std::index_sequence_for<T...>{});

}  // namespace detail

/// What a stencil reads of a field, counted from 0: `static_assert(reach_of<Heat> == star(1, 1))`.
///
/// A stencil that declares `static constexpr auto reach`, one for all fields or an array of one per
/// field, reads no farther. Offsets behind a branch on elements are found if numbers of either sign
/// take it.
/// @tparam S  default constructible; all its operands are fields
template <class S, int Field = 0>
inline constexpr Reach reach_of = detail::reaches_of_fields<S>().of[Field];

}  // namespace cleave::inline v0
