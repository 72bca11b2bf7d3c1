// Dimensions that become other dimensions where shards do not end at the same elements: each rank
// receives the elements of its part of the result that it lacks.
//
//     // y[S0] = x[S0,R], 6 x 4 becomes 24: over four ranks, rows 2, 2, 2, 0 become elements 6, 6,
//     6, 6
//     // y[S0] = x[S1,R], or any other shards of these dimensions
//
// Receives |part of the result - own part of the operand| elements, the lower bound, in one message
// for each pair of ranks. On one side the part of a rank is a range of elements, which is at most
// 2 d - 1 boxes of the d dimensions of the other side; each is a collective of one round.
#pragma once

#include <cstdint>

#include <cleave/core/checksum.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/regrouping.hpp>
#include <cleave/redistribute/plan.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::redistribution {

/// An operand and a result with the same elements in row-major order.
///
/// @pre an axis shards regrouped dimensions on both sides or on neither, and on one side at least
///      only the first of them; it shards other dimensions alike
struct Regroup {
  StepLayout operand{}, result{};
  Shape operand_shape{}, result_shape{};  ///< global extents
  Regrouping dims{};

  friend constexpr bool operator==(const Regroup&, const Regroup&) = default;

  /// One of the two.
  struct Side {
    const StepLayout& layout;
    const Shape& shape;
    int first, end;  ///< its regrouped dimensions

    /// The axes of several ranks that shard them.
    constexpr AxisMask axes(const Shape& mesh) const {
      AxisMask mask = 0;
      for (int d = first; d < end; ++d) mask |= axes_of(d, mesh);
      return mask;
    }
    /// The first of them whose extent is not 1, if there is one.
    constexpr int outer() const {
      for (int d = first; d < end; ++d)
        if (shape[d] != 1) return d;
      return first;
    }
    /// Whether the elements of each rank follow each other.
    constexpr bool has_ranges(const Shape& mesh) const {
      for (int d = outer() + 1; d < end; ++d)
        if (axes_of(d, mesh) != 0) return false;
      return true;
    }
    /// Whether only that dimension is sharded.
    constexpr bool is_cut_outside(const Shape& mesh) const {
      return first == end || axes_of(outer(), mesh) == axes(mesh);
    }
    /// The number of elements of each index of a dimension.
    constexpr index_t inner(int d) const { return cleave::detail::extent_of(shape, d + 1, end); }
    /// The elements from the first to the last one of a box.
    constexpr IndexRange range(const Box& box) const {
      if (box.empty()) return {0, 0};
      index_t begin = 0, last = 0;
      for (int d = first; d < end; ++d) {
        begin = begin * shape[d] + box.begin[d];
        last = last * shape[d] + box.end[d] - 1;
      }
      return {begin, last + 1};
    }

   private:
    constexpr AxisMask axes_of(int d, const Shape& mesh) const {
      AxisMask mask = layout.layout.sharding_axes(d);
      for (int a = 0; a < mesh.dims; ++a)
        if (mesh[a] == 1) mask &= ~(AxisMask(1) << a);
      return mask;
    }
  };
  constexpr Side from() const {
    return {operand, operand_shape, dims.first, dims.first + dims.operand};
  }
  constexpr Side to() const { return {result, result_shape, dims.first, dims.first + dims.result}; }

  /// Whether the parts that must be ranges are those of the result: so that they are few boxes.
  constexpr bool result_has_ranges(const Shape& mesh) const {
    return to().has_ranges(mesh) && (dims.operand <= dims.result || !from().has_ranges(mesh));
  }

  /// The most boxes of one side that a range of the other side is.
  constexpr int pieces(const Shape& mesh) const {
    return 2 * (result_has_ranges(mesh) ? dims.operand : dims.result) - 1;
  }

  /// Whether f(x, y) is true for all groups of dimensions x of the operand that become the
  /// dimensions y of the result, in order; true if there are no elements.
  template <class F>
  constexpr bool each_group(const F& f) const {
    if (operand_shape.product() == 0) return true;
    const Side x = from(), y = to();
    int i = x.first, j = y.first;
    while (i < x.end || j < y.end) {
      const cleave::detail::DimGroup g =
          cleave::detail::group_at(x.shape, i, x.end, y.shape, j, y.end);
      i = g.operand_end, j = g.result_end;
      if (!f(Side{x.layout, x.shape, g.operand, i}, Side{y.layout, y.shape, g.result, j}))
        return false;
    }
    return true;
  }

  /// Whether the layouts allow that `stays`: then it depends on the extents.
  constexpr bool may_stay(const Shape& mesh) const {
    return operand.order == result.order && each_group([&](const Side& x, const Side& y) {
             return x.axes(mesh) == y.axes(mesh) && x.is_cut_outside(mesh) &&
                    y.is_cut_outside(mesh);
           });
  }

  /// Whether every rank's part of the result is its part of the operand.
  constexpr bool stays(const Shape& mesh) const {
    return may_stay(mesh) && each_group([&](const Side& x, const Side& y) {
             const AxisMask axes = x.axes(mesh);
             std::array<index_t, std::size_t(max_axes)> parts{};
             int count = 0;
             for (int i = 0; i < mesh.dims; ++i)
               if (const int a = operand.order[std::size_t(i)]; axes >> a & 1u)
                 parts[std::size_t(count++)] = mesh[a];
             const int d = x.outer(), e = y.outer();
             return axes == 0 || cleave::detail::shards_agree(x.shape[d], x.inner(d), y.shape[e],
                                                              y.inner(e), parts.data(), count);
           });
  }

  /// The same without the first and last dimensions that stay, shards included.
  constexpr Regroup narrowed() const {
    Regroup how = *this;
    if (!(operand.order == result.order)) return how;
    const auto alike = [&](int d, int e) {
      return operand_shape[d] == result_shape[e] &&
             operand.layout.sharding_axes(d) == result.layout.sharding_axes(e);
    };
    const auto drop = [&](bool first) {
      const Side x = how.from(), y = how.to();
      if (x.end - x.first < 2 || y.end - y.first < 2 ||
          !alike(first ? x.first : x.end - 1, first ? y.first : y.end - 1))
        return false;
      how.dims = {how.dims.first + int(first), how.dims.operand - 1, how.dims.result - 1};
      return true;
    };
    while (drop(true)) {
    }
    while (drop(false)) {
    }
    return how;
  }

  constexpr std::uint64_t checksum() const {
    cleave::detail::Checksum sum;
    for (const StepLayout* side : {&operand, &result}) {
      sum.add(side->layout.checksum());
      for (int a = 0; a < side->layout.axes; ++a)
        sum.add(std::uint64_t(side->order[std::size_t(a)]));
    }
    for (const Shape* shape : {&operand_shape, &result_shape})
      for (const index_t extent : *shape) sum.add(std::uint64_t(extent));
    for (const int number : {dims.first, dims.operand, dims.result}) sum.add(std::uint64_t(number));
    return sum.sum;
  }
};

/// Moves the elements of an operand to the ranks that own them in the result.
///
/// @param operation    the function that the user called
/// @param source       this rank's part of the operand; dense if its parts are the ranges
/// @param destination  this rank's part of the result; dense, and not in the memory of the source
/// @collective every rank of the mesh, with an equal `how`, which does not stay; a rank outside
///             returns at once
/// @cost       transfers are computed once per mesh and `how`
void regroup(const char* operation, const Regroup& how, const View& source, const View& destination,
             const MeshState& mesh);

}  // namespace cleave::inline v0::redistribution

#if !CLEAVE_COMPILED
#include <cleave/redistribute/regroup_body.hpp>
#endif
