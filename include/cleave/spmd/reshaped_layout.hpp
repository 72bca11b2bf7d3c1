// Which shards of a reshaped value stay where they are. Eager calls know placements only, so that
// shards of any dimension become shards of the first one; an expansion knows the extents, too.
//
//     // [6,4:S1,5] -> [6,20:S1]     the first of merged dimensions: nothing moves if 4 is
//     divisible
//     // [4,12:S1]  -> [4,3:S1,4]    the first of split ones, likewise
//     // [6,4,5:S2] -> [24,5:S1]     a dimension that stays
//     // [6,4:S1,5] -> [24:S0,5]     another one of merged dimensions: an exchange
#pragma once

#include <cleave/placement/placement.hpp>
#include <cleave/placement/regrouping.hpp>
#include <cleave/redistribute/regroup.hpp>

namespace cleave::inline v0::spmd::detail {

/// The placements of a result with the elements of an operand in row-major order.
///
/// @param solved  those that the solver chose, for shards that cannot stay
/// @param mesh    the extents of the axes, or null if they are not known
constexpr Layout reshaped_layout(const Layout& from, const Shape& from_shape, const Layout& solved,
                                 const Shape& shape, const Shape* mesh) {
  using redistribution::Regroup;
  if (from_shape.product() != shape.product()) return solved;  // a misfit
  Regroup how{{from}, {solved}, from_shape, shape, {0, from_shape.dims, shape.dims}};
  // the dimensions from the first to the last one that changes, in the operand and in the result
  int first = -1, end = 0, result_first = 0, result_end = 0;
  Layout kept = solved;    // shards of the outer dimension of a group stay
  bool is_known = true;    // all of them do, on any mesh
  bool has_inner = false;  // there are shards of others
  how.each_group([&](const Regroup::Side& x, const Regroup::Side& y) {
    const int d = x.outer(), e = y.outer();
    const bool is_pair = d < x.end && e < y.end, stays = is_pair && x.shape[d] == y.shape[e];
    if (!stays && first < 0) first = x.first, result_first = y.first;
    if (!stays) end = x.end, result_end = y.end;
    for (int a = 0; a < from.axes; ++a) {
      if (!from[a].shards() || from[a].dim < x.first || from[a].dim >= x.end) continue;
      is_known = is_known && stays;
      if (is_pair && from[a].dim == d) kept[a] = Placement::shard(e);
      else has_inner = true;
    }
    return true;
  });
  const auto fits = [&](const Layout& to) {
    how.result.layout = to;
    const Regroup changed = how.narrowed();
    const Shape several = Shape::filled(from.axes, 2);
    return (mesh != nullptr && how.stays(*mesh)) || changed.from().has_ranges(several) ||
           changed.to().has_ranges(several);
  };
  if (!has_inner && (is_known || fits(kept))) return kept;
  // shards of dimensions that change become shards of the first of these
  const int e = Regroup::Side{how.result, shape, result_first, result_end}.outer();
  for (int a = 0; a < from.axes; ++a)
    if (from[a].shards() && from[a].dim >= first && from[a].dim < end)
      kept[a] = Placement::shard(e);
  return fits(kept) ? kept : solved;
}

}  // namespace cleave::inline v0::spmd::detail
