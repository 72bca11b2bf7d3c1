// The cross-entropy loss of classifiers.
#pragma once

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/where.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/indices/one_hot.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave {

namespace ops {

/// One-hot classes have the placements of the logits, so that sharded classes are not gathered.
/// Elements are selected, not multiplied by 0 or 1, because the other elements may be infinite.
struct CrossEntropy : Composite {
  static constexpr const char* name = "cross_entropy";
  static constexpr auto body(const auto& logits, const auto& classes) {
    const auto y = log_softmax(logits, dim<1>{});
    const auto chosen =
        cleave::detail::call_as(cleave::detail::like(y), OneHot<bool>{shape_of(y)[1]}, classes);
    return neg(mean(sum(where(chosen, y, 0), dim<1>{})));
  }
};

}  // namespace ops

/// Cross-entropy loss: the mean over n of -log(softmax(logits[n, :])[classes[n]]).
///
///     loss[P,R] = cross_entropy(logits[S0,S1], classes[S0,R])     nothing is gathered
///
/// @param logits   [n, c], real numbers; rows and classes may be sharded
/// @param classes  [n], integers in [0, c)
/// @return         a scalar; Partial<Sum> on the axes that shard rows or classes
/// @collective     every rank of the mesh, if classes are sharded or an operand is redistributed
/// @throws Error   on the ranks that hold an index outside [0, c)
template <class... R, AnyTensor X, AnyTensor C>
  requires((detail::is_placements<R> || std::is_same_v<R, explicit_communication>) && ...)
constexpr auto cross_entropy(const X& logits, const C& classes) {
  static_assert(X::dims == 2 && C::dims == 1,
                "cleave: cross_entropy takes logits [n, c] and classes [n]");
  return call_op<R...>(ops::CrossEntropy{}, logits, classes);
}
CLEAVE_USAGE(cross_entropy, "cross_entropy(logits, classes)")

}  // namespace cleave
