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

namespace cleave::redistribution {

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
      return axes_of(outer(), mesh) == axes(mesh);
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

  /// Whether the layouts allow that `stays`: then it depends on the extents.
  constexpr bool may_stay(const Shape& mesh) const {
    return from().axes(mesh) == to().axes(mesh) && from().is_cut_outside(mesh) &&
           to().is_cut_outside(mesh) && operand.order == result.order;
  }

  /// Whether every rank's part of the result is its part of the operand.
  constexpr bool stays(const Shape& mesh) const {
    if (operand_shape.product() == 0) return true;
    if (!may_stay(mesh)) return false;
    const AxisMask axes = from().axes(mesh);
    std::array<index_t, std::size_t(max_axes)> parts{};
    int count = 0;
    for (int i = 0; i < mesh.dims; ++i)
      if (const int a = operand.order[std::size_t(i)]; axes >> a & 1u)
        parts[std::size_t(count++)] = mesh[a];
    const int d = from().outer(), e = to().outer();
    return cleave::detail::shards_agree(operand_shape[d], from().inner(d), result_shape[e],
                                        to().inner(e), parts.data(), count);
  }

  constexpr std::uint64_t checksum() const {
    cleave::detail::Checksum sum;
    for (const StepLayout* side : {&operand, &result}) {
      sum.add(side->layout.packed());
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

}  // namespace cleave::redistribution

#if !CLEAVE_COMPILED
#include <cleave/redistribute/regroup_body.hpp>
#endif
