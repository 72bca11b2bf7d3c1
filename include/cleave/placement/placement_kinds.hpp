// How the ranks of one axis of a mesh share a tensor: as types, which users write, and as a value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include <cleave/core/config.hpp>
#include <cleave/core/reduce_op.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Where a dimension is cut. Kept until the program ends.
struct CutPoints {
  const index_t* at;  ///< parts + 1 numbers from 0 on, ascending
  index_t parts;
  std::uint64_t checksum;  ///< of the points: the same in all processes
};

/// The points with a number. @throws Error for number 0
const CutPoints& cut_points(std::int32_t number);

/// The number of equal points, from 1 on; depends on the process.
/// @throws Error unless they start at 0 and ascend
std::int32_t number_of_points(std::span<const index_t> points);

}  // namespace detail

/// The ranks of the axis own consecutive chunks of dimension `Dim`; -1 is the last dimension.
template <int Dim>
struct Shard {
  static constexpr int dim = Dim;
};

/// The ranks of the axis own consecutive parts of dimension `Dim` whose extents differ by at most
/// one, the longer parts first.
template <int Dim>
struct Balanced {
  static constexpr int dim = Dim;
};

/// Blocks of `Block` indices of dimension `Dim` are dealt to the ranks of the axis in turn. A rank
/// stores its indices in ascending order, without gaps: as ScaLAPACK does from process 0 on.
template <int Dim, int Block = 0>
struct BlockCyclic {
  static constexpr int dim = Dim;
};

/// The same with a block that is chosen at run time, equal on all ranks: `BlockCyclic<0>(64)`.
template <int Dim>
struct BlockCyclic<Dim, 0> {
  static constexpr int dim = Dim;
  std::int32_t number = 0;  ///< the block; 0: none yet

  constexpr BlockCyclic() = default;
  constexpr explicit BlockCyclic(int block) : number(block) {}
};

/// Coordinate c of the axis owns the indices [points[c], points[c + 1]) of dimension `Dim`, which
/// may be none: `Cuts<0>{0, 3, 3, 10}` on three ranks. All ranks pass the same points, from 0 to
/// the extent. No axis before may shard the same dimension.
///
/// Equal points are kept once, until the program ends.
template <int Dim>
struct Cuts {
  static constexpr int dim = Dim;
  std::int32_t number = 0;  ///< of the points in this process; 0: none yet

  constexpr Cuts() = default;
  /// @throws Error unless the points start at 0 and ascend
  explicit Cuts(std::span<const index_t> points) : number(detail::number_of_points(points)) {}
  Cuts(std::initializer_list<index_t> points) : Cuts(std::span(points.begin(), points.size())) {}

  /// The points. @throws Error if there are none yet
  std::span<const index_t> points() const {
    const detail::CutPoints& cuts = detail::cut_points(number);
    return {cuts.at, std::size_t(cuts.parts) + 1};
  }
};

/// Rank `Owner` of the axis has all values; the parts of the others have extent 0 in dimension
/// `Dim`.
template <int Owner = 0, int Dim = 0>
struct Owned {
  static constexpr int dim = Dim;
};

/// Every rank of the axis has the same values.
struct Replicate {};

/// Every rank of the axis has an addend (factor, candidate, ..) of the value; `Op` is the pending
/// reduction. Operations produce it; a DTensor cannot be distributed or redistributed to it.
template <ReductionType Op = Sum>
struct Partial {
  using op = Op;
};

namespace detail {

/// Whether a program chooses the block or the cut points of a placement at run time.
template <class P>
inline constexpr bool is_chosen_at_run_time = false;
template <int Dim>
inline constexpr bool is_chosen_at_run_time<BlockCyclic<Dim, 0>> = true;
template <int Dim>
inline constexpr bool is_chosen_at_run_time<Cuts<Dim>> = true;

template <class P>
constexpr std::int32_t number_of(const P& p) {
  if constexpr (is_chosen_at_run_time<P>) return p.number;
  else return 0;
}

}  // namespace detail

/// One placement per axis of the mesh, in the order of the axes.
template <class... P>
struct Placements {
  static constexpr int size = int(sizeof...(P));

  constexpr Placements() = default;
  constexpr explicit Placements(const P&...)
    requires(sizeof...(P) > 0)
  {}
};

template <class... P>
Placements(const P&...) -> Placements<P...>;

/// The same with blocks or cut points that are chosen at run time.
template <class... P>
  requires(detail::is_chosen_at_run_time<P> || ...)
struct Placements<P...> {
  static constexpr int size = int(sizeof...(P));
  std::array<std::int32_t, sizeof...(P)> numbers{};  ///< of each axis; 0: none

  constexpr Placements() = default;
  constexpr explicit Placements(const P&... p) : numbers{detail::number_of(p)...} {}
};

namespace detail {

/// Whether a program chooses a block or cut points of a list at run time.
template <class List>
inline constexpr bool is_open_list = false;
template <class... P>
inline constexpr bool is_open_list<Placements<P...>> = (is_chosen_at_run_time<P> || ...);

}  // namespace detail

/// The kind of a placement.
enum class PlacementKind : std::uint8_t {
  replicate,
  shard,
  partial,
  balanced,
  block_cyclic,
  owned,
  cuts
};

/// A placement as a value.
struct Placement {
  PlacementKind kind = PlacementKind::replicate;
  std::int8_t dim = 0;          ///< of a placement that shards
  ReduceOp op = ReduceOp::sum;  ///< of a partial
  std::int32_t number = 0;      ///< the block, the owner, or the number of the cut points

  static constexpr Placement replicate() { return {}; }
  static constexpr Placement shard(int dim) {
    return {PlacementKind::shard, std::int8_t(dim), ReduceOp::sum};
  }
  static constexpr Placement partial(ReduceOp op) { return {PlacementKind::partial, 0, op}; }
  static constexpr Placement balanced(int dim) {
    return {PlacementKind::balanced, std::int8_t(dim)};
  }
  static constexpr Placement block_cyclic(int dim, int block) {
    return {PlacementKind::block_cyclic, std::int8_t(dim), ReduceOp::sum, block};
  }
  static constexpr Placement owned(int owner, int dim) {
    return {PlacementKind::owned, std::int8_t(dim), ReduceOp::sum, owner};
  }
  static constexpr Placement cuts(int dim, int points) {
    return {PlacementKind::cuts, std::int8_t(dim), ReduceOp::sum, points};
  }
  /// A placement that shards, of another dimension.
  constexpr Placement along(int other) const { return {kind, std::int8_t(other), op, number}; }

  constexpr bool is_replicate() const { return kind == PlacementKind::replicate; }
  /// Whether the ranks of the axis own parts of a dimension: `dim`.
  constexpr bool shards() const { return kind != PlacementKind::replicate && !is_partial(); }
  /// Whether the indices that a rank owns follow each other.
  constexpr bool is_box() const { return kind != PlacementKind::block_cyclic; }
  /// Whether it shards in another way than by chunks, as `Shard` does.
  constexpr bool is_other_cut() const { return kind > PlacementKind::partial; }
  /// Whether its block or its cut points are not known: those of types that a program chooses at
  /// run time.
  constexpr bool is_open() const {
    return number == 0 && (kind == PlacementKind::cuts || kind == PlacementKind::block_cyclic);
  }
  /// Whether they own parts of dimension d.
  constexpr bool shards(int d) const { return shards() && dim == d; }
  constexpr bool is_partial() const { return kind == PlacementKind::partial; }

  /// A number that determines the placement: a template argument. Below 256 if `number` is 0.
  constexpr std::uint64_t code() const {
    const unsigned payload = shards() ? unsigned(dim) : unsigned(op);
    return std::uint64_t(std::uint32_t(number)) << 8 | unsigned(kind) << 4 | (payload & 0xfu);
  }
  static constexpr Placement of_code(std::uint64_t code) {
    const auto kind = PlacementKind(code >> 4 & 0xfu);
    if (kind == PlacementKind::replicate) return replicate();
    if (kind == PlacementKind::partial) return partial(ReduceOp(code & 0xfu));
    return {kind, std::int8_t(code & 0xfu), ReduceOp::sum, std::int32_t(code >> 8)};
  }

  friend constexpr bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace cleave::inline v0
