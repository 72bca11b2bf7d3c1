// What each rank reads for its part of a result: the elements of a box around or beyond its own
// part of the operand, which the ranks that own them send.
//
// Receives |needed box - own box| elements, the lower bound; periodic images of own elements are
// copied. Sender and receiver compute the same list in the same order, from extents and placements
// only. Shards thinner than what is read, empty shards and nested axes need no special treatment.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/placement/dim_map.hpp>
#include <cleave/redistribute/peers.hpp>
#include <cleave/redistribute/step_call.hpp>

namespace cleave::inline v0::redistribution {

/// An operand, a result, and what the result reads of the operand.
struct Needs {
  StepLayout operand{}, result{};
  Shape operand_shape{}, result_shape{};  ///< global extents, of equally many dimensions
  std::array<DimMap, std::size_t(max_dims)> maps{};
  /// Whether only the rank's part, and what is beyond it in one dimension at a time, is read: by a
  /// stencil without diagonal neighbours. @pre maps with num == den == 1, lo <= 0 <= hi
  bool star = false;
  /// Whether elements of the rank's own part are not copied: they lie at their places in the
  /// destination, or are read where they are. @pre operand and result have the same layout
  bool own_in_place = false;

  friend constexpr bool operator==(const Needs&, const Needs&) = default;
  /// Of all members.
  constexpr std::uint64_t checksum() const {
    cleave::detail::Checksum sum;
    for (const StepLayout* side : {&operand, &result}) {
      sum.add(side->layout.checksum());
      for (int a = 0; a < side->layout.axes; ++a)
        sum.add(std::uint64_t(side->order[std::size_t(a)]));
    }
    for (int d = 0; d < operand_shape.dims; ++d) {
      const DimMap& map = maps[std::size_t(d)];
      for (const index_t number : {operand_shape[d], result_shape[d], map.num, map.den, map.lo,
                                   map.hi, index_t(map.beyond)})
        sum.add(std::uint64_t(number));
    }
    sum.add(std::uint64_t(star) + 2 * std::uint64_t(own_in_place));
    return sum.sum;
  }

  /// The elements of the result that a rank computes.
  constexpr Box part(const Shape& mesh, const Shape& at) const {
    return owned_box(result, result_shape, mesh, at);
  }
  /// The box of the operand that it reads, neither clipped nor wrapped; mirrored and nearest
  /// indices are in the operand. Destinations of transfers count from its begin.
  constexpr Box box(const Shape& mesh, const Shape& at) const {
    Box needed = part(mesh, at);
    const bool none = needed.empty();
    for (int d = 0; d < needed.dims(); ++d) {
      const DimMap& map = maps[std::size_t(d)];
      const IndexRange read = range_of_reads(
          map.beyond, operand_shape[d],
          image(map, none ? IndexRange{0, 0} : IndexRange{needed.begin[d], needed.end[d]}));
      needed.begin[d] = read.begin, needed.end[d] = read.end;
    }
    return needed;
  }

  /// Calls f(indices of the operand, shift) for every piece of what a rank reads: the pieces are
  /// disjoint once shifted, and `indices` + `shift` is in `box`. The same order on all ranks.
  template <class F>
  constexpr void each_window(const Shape& mesh, const Shape& at, const F& f) const {
    const Box needed = box(mesh, at);
    if (!star) return each_image(needed, f);
    const Box own = part(mesh, at);
    if (own.empty()) return;
    each_image(own, f);
    for (int d = 0; d < own.dims(); ++d) {
      Box side = own;
      side.begin[d] = needed.begin[d], side.end[d] = own.begin[d];
      each_image(side, f);
      side.begin[d] = own.end[d], side.end[d] = needed.end[d];
      each_image(side, f);
    }
  }

 private:
  /// The same for one box of needed indices: its parts in each period, or the part in the domain.
  template <class F>
  constexpr void each_image(const Box& needed, const F& f) const {
    if (needed.empty() || operand_shape.product() == 0) return;
    Shape first = Shape::filled(needed.dims(), 0), count = Shape::filled(needed.dims(), 1);
    for (int d = 0; d < needed.dims(); ++d) {
      if (!is_periodic(maps[std::size_t(d)].beyond)) continue;
      first[d] = floor_divide(needed.begin[d], operand_shape[d]);
      count[d] = floor_divide(needed.end[d] - 1, operand_shape[d]) - first[d] + 1;
    }
    Shape number = Shape::filled(needed.dims(), 0);
    do {
      Shape shift = number;
      for (int d = 0; d < needed.dims(); ++d) shift[d] = (first[d] + number[d]) * operand_shape[d];
      const Box window = intersect(needed.relative_to(shift), Box::of(operand_shape));
      if (!window.empty()) f(window, shift);
    } while (next_index(count, number));
  }
};

/// The group in which the ranks exchange: those that differ in the axes that shard a dimension of
/// which some rank may read more than its own part.
constexpr AxisMask axes_of(const Needs& needs) {
  AxisMask axes = 0;
  for (int d = 0; d < needs.operand_shape.dims; ++d) {
    const DimMap& map = needs.maps[std::size_t(d)];
    const AxisMask sharding = needs.operand.layout.sharding_axes(d);
    const bool stays = map.num == 1 && map.den == 1 && map.lo == 0 && map.hi == 0 &&
                       needs.operand_shape[d] == needs.result_shape[d] &&
                       sharding == needs.result.layout.sharding_axes(d) &&
                       needs.operand.order == needs.result.order;
    if (!stays) axes |= sharding;
  }
  return axes;
}

/// What one rank receives.
struct NeedCounts {
  index_t elements = 0;  ///< from other ranks
  index_t own = 0;       ///< copied from its own part
  int messages = 0;      ///< the number of ranks from which it receives

  friend constexpr bool operator==(const NeedCounts&, const NeedCounts&) = default;
};

/// @cost proportional to the number of peers, and to the square of the number of periodic images
constexpr NeedCounts need_counts(const Needs& needs, const Shape& mesh, const Shape& at) {
  NeedCounts counts;
  const Shape none = Shape::filled(needs.operand_shape.dims, 0);
  int windows = 0;
  needs.each_window(mesh, at, [&](const Box& window, const Shape& shift) {
    each_box_within(needs.operand, needs.operand_shape, mesh, axes_of(needs), at, window,
                    [&](const Shape& owner, const Box& shared) {
                      if (owner == at) {
                        if (!needs.own_in_place || !(shift == none)) counts.own += shared.volume();
                        return;
                      }
                      counts.elements += shared.volume();
                      const Box theirs = owned_box(needs.operand, needs.operand_shape, mesh, owner);
                      bool is_new = true;
                      int before = windows;
                      needs.each_window(mesh, at, [&](const Box& earlier, const Shape&) {
                        if (before-- > 0 && !intersect(earlier, theirs).empty()) is_new = false;
                      });
                      counts.messages += is_new;
                    });
    ++windows;
  });
  return counts;
}

/// The same box, `by` farther.
constexpr Box shifted(Box box, const Shape& by) {
  for (int d = 0; d < box.dims(); ++d) box.begin[d] += by[d], box.end[d] += by[d];
  return box;
}

/// The coordinates of the ranks of the group whose results may read a box of the operand.
inline std::vector<Shape> possible_readers(const Needs& needs, const Shape& mesh, const Shape& at,
                                           const Box& had) {
  const Box results = Box::of(needs.result_shape);
  if (had.empty() || results.empty()) return {};
  const AxisMask replicas = axes_of(needs) & ~needs.result.layout.sharding_axes();
  std::vector<index_t> found;
  const auto add = [&](const auto& self, int d, Box window) -> void {
    if (d < had.dims()) {
      const auto within = [&](IndexRange who) {
        window.begin[d] = who.begin, window.end[d] = who.end;
        self(self, d + 1, window);
      };
      const DimMap& map = needs.maps[std::size_t(d)];
      const index_t extent = needs.result_shape[d];
      if (map.num == 0) return within({0, extent});
      return each_readers(map, needs.operand_shape[d], extent, {had.begin[d], had.end[d]}, within);
    }
    each_box_within(needs.result, needs.result_shape, mesh, axes_of(needs), at,
                    intersect(window, results), [&](const Shape& reader, const Box&) {
                      for (index_t i = 0; i < product_over(mesh, replicas); ++i)
                        found.push_back(linear_index(mesh, member_at(mesh, reader, replicas, i)));
                    });
  };
  add(add, 0, had);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<Shape> ranks;
  for (const index_t index : found) ranks.push_back(coordinate_of(mesh, index));
  return ranks;
}

/// The transfers of the rank at `at` with its group, sorted by peer, those with one peer in the
/// order of `Needs::each_window`. Sources count from the own box, destinations from `Needs::box`.
///
/// @cost O(p log p) for p peers and ranks that might be, whatever the number of ranks
inline Transfers need_transfers(const Needs& needs, const Shape& mesh, const Shape& at) {
  Transfers transfers;
  const Box had = owned_box(needs.operand, needs.operand_shape, mesh, at);
  const Shape none = Shape::filled(had.dims(), 0);
  const auto stays = [&](const Shape& peer, const Shape& shift) {
    return needs.own_in_place && peer == at && shift == none;
  };
  const auto number = [&](const Shape& of) { return int(linear_index(mesh, of, axes_of(needs))); };
  const Shape place = needs.box(mesh, at).begin;
  needs.each_window(mesh, at, [&](const Box& window, const Shape& shift) {
    each_box_within(needs.operand, needs.operand_shape, mesh, axes_of(needs), at, window,
                    [&](const Shape& owner, const Box& shared) {
                      if (stays(owner, shift)) return;
                      const Box theirs = owned_box(needs.operand, needs.operand_shape, mesh, owner);
                      transfers.receives.push_back({number(owner), shared.relative_to(theirs.begin),
                                                    shifted(shared, shift).relative_to(place)});
                    });
  });
  for (const Shape& reader : possible_readers(needs, mesh, at, had)) {
    const Shape there = needs.box(mesh, reader).begin;
    needs.each_window(mesh, reader, [&](const Box& window, const Shape& shift) {
      const Box shared = intersect(window, had);
      if (shared.empty() || stays(reader, shift)) return;
      transfers.sends.push_back({number(reader), shared.relative_to(had.begin),
                                 shifted(shared, shift).relative_to(there)});
    });
  }
  for (std::vector<Transfer>* list : {&transfers.sends, &transfers.receives})
    std::stable_sort(list->begin(), list->end(),
                     [](const Transfer& a, const Transfer& b) { return a.peer < b.peer; });
  return transfers;
}

}  // namespace cleave::inline v0::redistribution
