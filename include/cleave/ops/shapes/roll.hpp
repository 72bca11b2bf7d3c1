// Moving the elements along a dimension: roll, flip.
//
// The result is sharded as the operand is: along a sharded dimension, ranks receive what their part
// of the result reads.
//
//     // y[S0,R]  = roll(x[S0,R], dim<1>{}, 1)     // no communication
//     // y[S0,S1] = roll(x[S0,S1], dim<1>{}, 1)    // an exchange over the second axis
#pragma once

#include <cleave/kernels/copy.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Moves element i of dimension D to (i + shift) mod its extent.
template <int D>
struct Roll {
  index_t shift = 0;

  static constexpr const char* name = "roll";
  static constexpr const char* partials = moves_elements;
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr RuleText reads = detail::same_extent_reads(D);
  constexpr DimMap read_map(int, int, const OperandRef* in) const {
    const index_t by = front(in->shape[D]);
    return {1, 1, -by, -by, Beyond::wrap};
  }
  void kernel(const auto& on, const Task& task, const auto& y, const auto& x) const {
    const index_t extent = task.in->shape[D];
    copy_periods(on, x, y, D, task.box->begin[D] - front(extent) - task.in_box->begin[D], extent);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&...) const {
    return call_op(Roll{-shift}, g);
  }

 private:
  constexpr index_t front(index_t extent) const {
    return extent > 0 ? (shift % extent + extent) % extent : 0;
  }
};

/// Reverses dimension D.
template <int D>
struct Flip {
  static constexpr const char* name = "flip";
  static constexpr const char* partials = moves_elements;
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr RuleText reads = detail::same_extent_reads(D);
  static constexpr DimMap read_map(int, int, const OperandRef* in) {
    return {-1, 1, in->shape[D] - 1, in->shape[D] - 1};
  }
  static void kernel(const auto& on, const Task& task, const auto& y, const auto& x) {
    const index_t last = task.in->shape[D] - 1;
    copy_elements(
        on, every(x, D, last - task.box->begin[D] - task.in_box->begin[D], -1, y.extents[D]), y);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) {
    return call_op(Flip{}, g);
  }
};

}  // namespace ops

/// Moves element i of a dimension to (i + shift) mod its extent: `roll(x, dim<0>{}, 1)`. The shift
/// may be negative. Communicates as slice.
template <class... R, AnyTensor X, int D>
constexpr auto roll(const X& x, dim<D>, index_t shift) {
  return call_op<R...>(ops::Roll<detail::dim_index<X::dims>(dim<D>{})>{shift}, x);
}
CLEAVE_USAGE(roll, "roll(x, dim<0>{}, shift)")

/// Reverses the elements along a dimension. Communicates as slice.
template <class... R, AnyTensor X, int D>
constexpr auto flip(const X& x, dim<D>) {
  return call_op<R...>(ops::Flip<detail::dim_index<X::dims>(dim<D>{})>{}, x);
}
CLEAVE_USAGE(flip, "flip(x, dim<0>{})")

}  // namespace cleave::inline v0
