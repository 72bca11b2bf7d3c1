// Placements of a tensor on all axes of a mesh: as types, which users write, and as values, with
// which planner and solver compute. `layout_of` converts types to values, `placements_t` values to
// types. Of cuts that a program chooses at run time, types have the kind, values the number too.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>

#include <cleave/core/checksum.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/placement/placement_kinds.hpp>

namespace cleave::inline v0 {

/// The placements of a tensor on all axes of a mesh, as a value.
struct Layout {
  std::array<Placement, max_axes> on{};
  int axes = 0;

  static constexpr Layout replicated(int axes) {
    Layout layout;
    layout.axes = axes;
    return layout;
  }

  constexpr Placement& operator[](int axis) { return on[std::size_t(axis)]; }
  constexpr const Placement& operator[](int axis) const { return on[std::size_t(axis)]; }

  /// The axes whose placement satisfies a condition: bit a stands for axis a.
  template <class Condition>
  constexpr unsigned axes_where(const Condition& is_so) const {
    unsigned mask = 0;
    for (int a = 0; a < axes; ++a)
      if (is_so((*this)[a])) mask |= 1u << a;
    return mask;
  }
  constexpr unsigned partial_axes() const {
    return axes_where([](const Placement& p) { return p.is_partial(); });
  }
  constexpr unsigned sharding_axes() const {
    return axes_where([](const Placement& p) { return p.shards(); });
  }
  /// The axes that shard dimension d.
  constexpr unsigned sharding_axes(int d) const {
    return axes_where([d](const Placement& p) { return p.shards(d); });
  }
  constexpr bool has_partial() const { return partial_axes() != 0; }
  /// Whether a block or cut points are not known.
  constexpr bool is_open() const {
    return axes_where([](const Placement& p) { return p.is_open(); }) != 0;
  }
  /// The axes with cut points.
  constexpr unsigned axes_with_points() const {
    return axes_where([](const Placement& p) { return p.kind == PlacementKind::cuts; });
  }
  /// The same kinds, with the blocks and cut points that another layout has on the open axes.
  constexpr Layout with_numbers_of(const Layout& other) const {
    Layout layout = *this;
    for (int a = 0; a < axes && a < other.axes; ++a)
      if (layout[a].is_open() && other[a].kind == layout[a].kind)
        layout[a].number = other[a].number;
    return layout;
  }
  /// Whether what each rank owns is a box of indices.
  constexpr bool is_box() const {
    return axes_where([](const Placement& p) { return !p.is_box(); }) == 0;
  }

  /// The same layout with every partial replaced.
  constexpr Layout with_partials_as(const Placement& other) const {
    Layout layout = *this;
    for (int a = 0; a < axes; ++a)
      if (layout[a].is_partial()) layout[a] = other;
    return layout;
  }

  /// The same layout with chunks in place of parts that are no ranges.
  constexpr Layout with_boxes() const {
    Layout layout = *this;
    for (int a = 0; a < axes; ++a)
      if (!layout[a].is_box()) layout[a] = Placement::shard(layout[a].dim);
    return layout;
  }

  /// The codes of the axes, 64 / axes bits each, the first axis lowest: a key. Exact if `packs`,
  /// otherwise a checksum.
  constexpr std::uint64_t packed() const {
    const int bits = packed_bits(axes);
    std::uint64_t code = 0;
    for (int a = 0; a < axes; ++a) {
      const std::uint64_t all = (*this)[a].code();
      code ^= all << (bits * a);
      if (bits < 64 && all >> bits != 0) code ^= (all >> bits) * 0x9e3779b97f4a7c15u << a;
    }
    return code;
  }
  /// The layout of a key. @pre it packs
  static constexpr Layout unpacked(std::uint64_t code, int axes) {
    Layout layout = replicated(axes);
    const int bits = packed_bits(axes);
    const std::uint64_t mask = bits < 64 ? (std::uint64_t(1) << bits) - 1 : ~std::uint64_t(0);
    for (int a = 0; a < axes; ++a) layout[a] = Placement::of_code(code >> (bits * a) & mask);
    return layout;
  }
  /// Whether the layout has an exact key: blocks and owners are below 2 ^ (64 / axes - 8).
  constexpr bool packs() const {
    const int bits = packed_bits(axes);
    return axes_where([bits](const Placement& p) { return bits < 64 && p.code() >> bits != 0; }) ==
           0;
  }

  /// The same as `packed` on all ranks whose cut points are equal, whatever numbers they have.
  constexpr std::uint64_t checksum() const {
    Layout plain = *this;
    detail::Checksum points{0};
    for (int a = 0; a < axes; ++a)
      if (plain[a].kind == PlacementKind::cuts && plain[a].number != 0) {
        points.add(detail::cut_points(plain[a].number).checksum);
        points.add(std::uint64_t(a));
        plain[a].number = 0;
      }
    return plain.packed() ^ points.sum;
  }

  /// The codes of all axes: a key.
  constexpr std::array<std::uint64_t, max_axes> codes() const {
    std::array<std::uint64_t, max_axes> result{};
    for (int a = 0; a < axes; ++a) result[std::size_t(a)] = (*this)[a].code();
    return result;
  }
  static constexpr Layout of_codes(const std::array<std::uint64_t, max_axes>& codes, int axes) {
    Layout layout = replicated(axes);
    for (int a = 0; a < axes; ++a) layout[a] = Placement::of_code(codes[std::size_t(a)]);
    return layout;
  }

  static constexpr int packed_bits(int axes) { return 64 / (axes > 0 ? axes : 1); }

  friend constexpr bool operator==(const Layout& a, const Layout& b) {
    if (a.axes != b.axes) return false;
    for (int i = 0; i < a.axes; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }
};

/// "Shard(0)", "Replicate", "Partial(sum)"
std::string to_string(const Placement& p);

/// "(Shard(0), Replicate)"
std::string to_string(const Layout& layout);

namespace detail {

template <class P>
struct PlacementTraits {
  static constexpr bool valid = false;
};
template <int Dim>
struct PlacementTraits<Shard<Dim>> {
  static constexpr bool valid = true;
  static constexpr bool fits(int dims) { return Dim >= -dims && Dim < dims; }
  static constexpr Placement value(int dims) {
    return Placement::shard(Dim < 0 ? Dim + dims : Dim);
  }
};
template <int Dim>
struct PlacementTraits<Balanced<Dim>> : PlacementTraits<Shard<Dim>> {
  static constexpr Placement value(int dims) {
    return Placement::balanced(Dim < 0 ? Dim + dims : Dim);
  }
};
template <int Dim>
struct PlacementTraits<Cuts<Dim>> : PlacementTraits<Shard<Dim>> {
  static constexpr Placement value(int dims) {
    return Placement::cuts(Dim < 0 ? Dim + dims : Dim, 0);
  }
};
template <int Dim, int Block>
struct PlacementTraits<BlockCyclic<Dim, Block>> : PlacementTraits<Shard<Dim>> {
  static_assert(Block >= 0, "cleave: the block of BlockCyclic<dim, block> is at least 1");
  static constexpr Placement value(int dims) {
    return Placement::block_cyclic(Dim < 0 ? Dim + dims : Dim, Block);
  }
};
template <int Owner, int Dim>
struct PlacementTraits<Owned<Owner, Dim>> : PlacementTraits<Shard<Dim>> {
  static_assert(Owner >= 0, "cleave: Owned<owner> names a rank of the axis, from 0 on");
  static constexpr Placement value(int dims) {
    return Placement::owned(Owner, Dim < 0 ? Dim + dims : Dim);
  }
};
template <>
struct PlacementTraits<Replicate> {
  static constexpr bool valid = true;
  static constexpr bool fits(int) { return true; }
  static constexpr Placement value(int) { return Placement::replicate(); }
};
template <class Op>
struct PlacementTraits<Partial<Op>> {
  static_assert(!is_bitwise(Op::value),
                "cleave: a Partial is a sum, average, maximum, minimum or product; reductions of "
                "bits are functional::all_reduce(x, BitAnd{}, group) and the like");
  static constexpr bool valid = true;
  static constexpr bool fits(int) { return true; }
  static constexpr Placement value(int) { return Placement::partial(Op::value); }
};

template <class List>
inline constexpr bool is_placements = false;
template <class... P>
inline constexpr bool is_placements<Placements<P...>> = true;

template <int Dims, class... P>
constexpr Layout make_layout(Placements<P...>) {
  static_assert((PlacementTraits<P>::valid && ...),
                "cleave: a placement is Shard<dim>, Balanced<dim>, BlockCyclic<dim, block>, "
                "Cuts<dim>, Owned<owner>, Replicate or Partial<Op>");
  static_assert((PlacementTraits<P>::fits(Dims) && ...),
                "cleave: a placement names a dimension that the tensor does not have");
  static_assert(sizeof...(P) <= std::size_t(max_axes), "cleave: a mesh has at most 8 axes");
  Layout layout;
  ((layout[layout.axes++] = PlacementTraits<P>::value(Dims)), ...);
  return layout;
}

/// Whether cut points apply to whole dimensions: no axis before shards the same dimension.
constexpr bool cuts_come_first(const Layout& layout) {
  for (int a = 0; a < layout.axes; ++a)
    for (int b = 0; b < a; ++b)
      if (layout[a].kind == PlacementKind::cuts && layout[b].shards(layout[a].dim)) return false;
  return true;
}

template <std::uint64_t Code>
constexpr auto placement_type() {
  constexpr Placement p = Placement::of_code(Code);
  if constexpr (p.kind == PlacementKind::shard) return Shard<p.dim>{};
  else if constexpr (p.kind == PlacementKind::balanced) return Balanced<p.dim>{};
  else if constexpr (p.kind == PlacementKind::block_cyclic) return BlockCyclic<p.dim, p.number>{};
  else if constexpr (p.kind == PlacementKind::owned) return Owned<p.number, p.dim>{};
  else if constexpr (p.kind == PlacementKind::cuts) return Cuts<p.dim>{};
  else if constexpr (p.is_partial()) return Partial<reduction_type<p.op>>{};
  else return Replicate{};
}

template <class Source, int... A>
Placements<decltype(placement_type<Source::layout[A].code()>())...> placements_type(
    std::integer_sequence<int, A...>);

template <int Axes>
struct ReplicatedLayout {
  static constexpr Layout layout = Layout::replicated(Axes);
};

template <class P>
struct WithoutPartial {
  using type = P;
};
template <class Op>
struct WithoutPartial<Partial<Op>> {
  using type = Replicate;
};
template <class... P>
Placements<typename WithoutPartial<P>::type...> without_partials(Placements<P...>);

}  // namespace detail

/// A type that denotes the placement on one axis.
template <class P>
concept PlacementType = detail::PlacementTraits<P>::valid;

namespace detail {

/// The values of some placements, with their blocks and cut points.
/// @param shape  layout of their types
template <class... P>
constexpr Layout with_numbers(Layout shape, const Placements<P...>& from) {
  if constexpr ((is_chosen_at_run_time<P> || ...))
    for (int a = 0; a < shape.axes; ++a)
      if (shape[a].is_open()) shape[a].number = from.numbers[std::size_t(a)];
  return shape;
}

}  // namespace detail

/// "(Shard(0), Replicate)"; negative dimensions as they are.
template <PlacementType... P>
std::string to_string(const Placements<P...>& placements) {
  Layout layout;
  ((layout[layout.axes++] = detail::PlacementTraits<P>::value(0)), ...);
  return to_string(detail::with_numbers(layout, placements));
}

/// Writes the text of `to_string`.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Layout& layout) {
  return out << to_string(layout);
}
template <class Traits, PlacementType... P>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Placements<P...>& placements) {
  return out << to_string(placements);
}
template <class Traits, PlacementType P>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, P) {
  return out << to_string(detail::PlacementTraits<P>::value(0));
}

/// The value of a `Placements<..>` for a tensor of `Dims` dimensions; negative dims count from
/// the end.
template <class List, int Dims>
inline constexpr Layout layout_of = detail::make_layout<Dims>(List{});

/// The `Placements<..>` whose value is `Source::layout`.
template <class Source>
using placements_t = decltype(detail::placements_type<Source>(
    std::make_integer_sequence<int, Source::layout.axes>{}));

/// Replicate on each of so many axes.
template <int Axes>
using replicated_t = placements_t<detail::ReplicatedLayout<Axes>>;

/// The same placements with Replicate in place of Partial.
template <class List>
using without_partials_t = decltype(detail::without_partials(List{}));

namespace detail {

template <class List, int Dims>
struct LayoutOf {
  static constexpr Layout layout = layout_of<List, Dims>;
};

}  // namespace detail

/// The same placements with negative dimensions counted from the front.
template <class List, int Dims>
using normalized_t = placements_t<detail::LayoutOf<List, Dims>>;

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/placement/placement_body.hpp>
#endif
