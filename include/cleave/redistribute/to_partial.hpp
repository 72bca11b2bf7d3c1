// R -> P(op), S(d) -> P(op): the value becomes one addend, identity elements are the others.
//
// No communication. From R the first rank of the axis keeps the value (under Avg all do); from
// S(d) every rank keeps its shard in place (under Avg times the number of ranks).
#pragma once

#include <limits>
#include <type_traits>

#include <cleave/redistribute/block.hpp>

namespace cleave::redistribution {

namespace detail {

/// The element that changes nothing under `op`. @throws Error for Max and Min of complex numbers
template <class T>
T identity(ReduceOp op) {
  if (op == ReduceOp::product) return T(1);
  if (op != ReduceOp::max && op != ReduceOp::min) return T(0);
  if constexpr (is_complex<T>) {
    throw Error("redistribute", "complex numbers have no order: no Partial<Max> or Partial<Min>");
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    const float infinity = std::numeric_limits<float>::infinity();
    return T(op == ReduceOp::max ? -infinity : infinity);
  } else if constexpr (std::is_floating_point_v<T>) {
    const T infinity = std::numeric_limits<T>::infinity();
    return op == ReduceOp::max ? -infinity : infinity;
  } else {
    return op == ReduceOp::max ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  }
}

template <class T>
void scale(const View& view, index_t factor) {
  accumulator_t<T> by;
  if constexpr (is_complex<T>) by = T(typename T::value_type(factor));
  else by = accumulator_t<T>(factor);
  T* data = static_cast<T*>(view.data);
  for (index_t i = 0; i < view.size(); ++i) data[i] = T(data[i] * by);
}

}  // namespace detail

namespace detail {

/// What reduces to the identity of `step.op`: on ranks that are not the first of an inner partial
/// axis the identity of that axis (of the innermost such).
inline ReduceOp filling_op(const Step& step, int axis, const Shape& coordinate) {
  ReduceOp op = step.op;
  for (int b = axis + 1; b < step.from.layout.axes; ++b) {
    const Placement& inner = step.from.layout[b];
    if (inner.is_partial() && inner.op != ReduceOp::avg && coordinate[b] != 0) op = inner.op;
  }
  return op;
}

}  // namespace detail

/// @return this rank's addend under `step.to`
/// @cost   a copy; allocates the result
inline Block to_partial(const Step& step, const Block& block, const Context& context) {
  int axis = 0;
  while (!(step.axes >> axis & 1u)) ++axis;
  const bool sharded = step.from.layout[axis].is_shard();
  const bool average = step.op == ReduceOp::avg;
  if (average && !sharded) return block;
  const Box before = own_box(step.from, context);
  const Box after = own_box(step.to, context);
  Block result = allocate(block.view.dtype, after.extents());
  const bool keeps = sharded || context.mesh.coordinate()[axis] == 0;
  const ReduceOp filling = detail::filling_op(step, axis, context.mesh.coordinate());
  visit_dtype(result.view.dtype, [&]<class T>() {
    const Shape& extents = result.view.extents;
    cleave::detail::strided_fill(static_cast<T*>(result.view.data), extents,
                                 result.view.strides, detail::identity<T>(filling));
    if (keeps) strided_copy(block.view, result.view[before.relative_to(after.begin)]);
    if (average) detail::scale<T>(result.view, context.mesh.extents()[axis]);
  });
  return result;
}

}  // namespace cleave::redistribution
