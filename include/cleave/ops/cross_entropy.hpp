// The loss of classifiers.
#pragma once

#include <cleave/ops/arithmetic.hpp>
#include <cleave/ops/one_hot.hpp>
#include <cleave/ops/reduce.hpp>
#include <cleave/ops/softmax.hpp>

namespace cleave {

/// The mean over n of -log(softmax(logits[n, :])[classes[n]]).
///
///     loss[P,R] = cross_entropy(logits[S0,S1], classes[S0,R])     nothing is gathered
///
/// @param logits   [n, c], real numbers; rows and classes may be sharded
/// @param classes  [n], integers in [0, c)
/// @return         a number; Partial<Sum> on the axes that shard rows or classes
/// @collective     every rank of the mesh, if classes are sharded, or an operand is elsewhere
/// @throws Error   on the ranks that have an index outside of [0, c)
template <AnyTensor X, AnyTensor C>
constexpr auto cross_entropy(const X& logits, const C& classes) {
  static_assert(X::dims == 2 && C::dims == 1,
                "cleave: cross_entropy takes logits [n, c] and classes [n]");
  const auto y = log_softmax(logits, dim<1>{});
  using T = typename X::value_type;
  const auto chosen = detail::call_as(detail::like(y), ops::OneHot<T>{shape_of(y)[1]}, classes);
  return neg(mean(sum(mul(chosen, y), dim<1>{})));
}

}  // namespace cleave
