// R -> P(op), S(d) -> P(op): the value becomes one addend; the other addends are identity elements.
//
// No communication. From R the first rank of the axis keeps the value (under Avg all ranks do);
// from S(d) every rank keeps its shard in place (under Avg multiplied by the number of ranks).
#pragma once

#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/redistribute/block.hpp>

namespace cleave::inline v0::redistribution {

namespace detail {

/// The identity element of `op`. @throws Error for Max and Min of complex numbers
template <class T>
T identity(ReduceOp op) {
  if (op == ReduceOp::product) return T(1);
  if (op != ReduceOp::max && op != ReduceOp::min) return T(0);
  if constexpr (is_complex<T>) {
    throw Error("redistribute", "Partial<Max> and Partial<Min> are not defined on complex numbers");
  } else {
    return op == ReduceOp::max ? kernels::lowest<T>() : kernels::highest<T>();
  }
}

/// Multiplication by a number of ranks.
template <class T>
class Times {
 public:
  explicit Times(index_t count) : count_(Real(count)) {}
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::scaled(accumulator_t<T>(a), count_));
  }

 private:
  using Real = kernels::real_t<accumulator_t<T>>;
  Real count_;
};

/// destination = factor * source, for types that have an average.
template <class Device>
void scaled_copy(const ConstView& source, const View& destination, index_t factor) {
  if (cleave::detail::is_dry()) return;
  visit_dtype(source.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T> || is_float8<T>)
      throw Error("redistribute",
                  std::string("Partial<Avg> is not defined on ") + name_of(source.dtype));
    else
      map_elements(kernels::On<Device>{}, Times<T>(factor),
                   kernels::Strided<T>{static_cast<T*>(destination.data), destination.extents,
                                       destination.strides},
                   kernels::Strided<const T>{static_cast<const T*>(source.data), source.extents,
                                             source.strides});
  });
}

/// The reduction whose identity fills the block: that of `step`; on ranks that are not the first of
/// an inner partial axis, that of the innermost such axis.
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
template <class Device>
Block to_partial(const Step& step, const Block& block, const Context& context) {
  int axis = 0;
  while (!(step.axes >> axis & 1u)) ++axis;
  const bool sharded = step.from.layout[axis].shards();
  const bool average = step.op == ReduceOp::avg;
  if (average && !sharded) return block;
  Block result = allocate<Device>(block.view.dtype, own_extents(step.to, context));
  Box own_part = Box::of(result.view.extents);
  shard_box(own_part, step.from.layout[axis], context.mesh.extents()[axis],
            context.mesh.coordinate()[axis]);
  const bool keeps = sharded || context.mesh.coordinate()[axis] == 0;
  const ReduceOp filling = detail::filling_op(step, axis, context.mesh.coordinate());
  visit_dtype(result.view.dtype, [&]<class T>() {
    strided_fill(Device{}, result.view, detail::identity<T>(filling));
  });
  const View own = result.view[own_part];
  if (average) detail::scaled_copy<Device>(block.view, own, context.mesh.extents()[axis]);
  else if (keeps) strided_copy(Device{}, block.view, own);
  return result;
}

}  // namespace cleave::inline v0::redistribution
