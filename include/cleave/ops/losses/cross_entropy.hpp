// The cross-entropy loss of classifiers. On a GPU, if classes are not sharded, one kernel computes
// the losses of whole rows, and another their gradient.
//
//     // loss[P,R] = cross_entropy(logits[S0,S1], classes[S0,R])     nothing is gathered
#pragma once

#include <cleave/kernels/row_range.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/where.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/unsharded_dims.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/indices/one_hot.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

/// Options of classification losses.
struct ClassLoss {
  double label_smoothing = 0;   ///< fraction of the target spread evenly over all classes
  index_t ignore_index = -100;  ///< rows of this class do not count
};

namespace detail {

/// Whether a row counts, that is, is not ignored.
struct IsCounted : Elementwise {
  index_t ignored = -100;

  static constexpr const char* name = "is_counted";
  template <class I>
  CLEAVE_HOST_DEVICE bool operator()(const I& index) const {
    return kernels::is_counted(index_t(index), ignored);
  }
};

/// The class of a row; an arbitrary valid one for rows that do not count.
struct CountedClass : Elementwise {
  index_t ignored = -100;

  static constexpr const char* name = "counted_class";
  template <class I>
  CLEAVE_HOST_DEVICE I operator()(const I& index) const {
    return kernels::is_counted(index_t(index), ignored) ? index : I(0);
  }
};

/// Which rows count, broadcast to y: [n, c], with its placements.
template <class Y, class C>
constexpr auto counted_rows(const Y& y, const C& classes, const ClassLoss& options) {
  return broadcast_dims<2u>(call_op(IsCounted{{}, options.ignore_index}, classes), y);
}

/// Which elements of y, [n, c], belong to the classes of their rows, with the placements of y.
template <class Y, class C>
constexpr auto own_classes(const Y& y, const C& classes, const ClassLoss& options) {
  const auto valid = call_op(CountedClass{{}, options.ignore_index}, classes);
  return call_as(like(y), ops::OneHot<bool>{shape_of(y)[1]}, valid);
}

/// -y[n, classes[n]], 0 for rows that do not count. Elements are selected, not multiplied by 0 or
/// 1, because the other elements may be infinite.
template <class Y, class C>
constexpr auto row_losses(const Y& y, const C& classes, const ClassLoss& options) {
  const auto chosen =
      where(own_classes(y, classes, options), counted_rows(y, classes, options), false);
  return neg(sum(where(chosen, y, 0), dim<1>{}));
}

/// The losses of rows of logits, composed of operations.
template <class X, class C>
constexpr auto losses_of_parts(const X& logits, const C& classes, const ClassLoss& options) {
  using T = typename X::value_type;
  const auto y = log_softmax(logits, dim<1>{});
  const auto chosen = row_losses(y, classes, options);
  const double smoothing = options.label_smoothing;
  if (smoothing == 0) return chosen;
  const auto counted = where(counted_rows(y, classes, options), y, 0);
  const auto even = mul(sum(counted, dim<1>{}), converted<T>(smoothing / double(shape_of(y)[1])));
  return sub(mul(chosen, converted<T>(1 - smoothing)), even);
}

/// Their gradient, (softmax(logits) - target) · g.
template <class G, class X, class C>
constexpr auto slopes_of_parts(const G& g, const X& logits, const C& classes,
                               const ClassLoss& options) {
  using T = typename X::value_type;
  const auto y = softmax(logits, dim<1>{});
  const double own = 1 - options.label_smoothing;
  const double even = options.label_smoothing / double(shape_of(y)[1]);
  const auto slopes = where(own_classes(y, classes, options), sub(y, converted<T>(own + even)),
                            sub(y, converted<T>(even)));
  return where(counted_rows(y, classes, options), mul(slopes, broadcast_dims<2u>(resolve(g), y)),
               0);
}

}  // namespace detail

namespace ops {

/// The gradient of the losses of rows, on a GPU, if classes are not sharded.
struct ClassSlopesOfRows {
  ClassLoss options{};

  static constexpr const char* name = "cross_entropy";
  static constexpr const char* factors = "a,ab,a->ab";
  static constexpr const char* replicated = "b";
  template <class G, class X, class C>
  using result_of = X;
  void kernel(const auto& on, const Task&, const auto& dx, const auto& g, const auto& logits,
              const auto& classes) const {
    class_slopes(on, g, logits, classes, options.ignore_index, options.label_smoothing, dx);
  }
};

/// The same for any device and placements.
struct ClassSlopes : CompositeByPlacement {
  ClassLoss options{};

  static constexpr const char* name = ClassSlopesOfRows::name;
  template <class X>
  constexpr auto body(const auto& g, const X& logits, const auto& classes) const {
    return cleave::detail::by_rows<1>(
        logits, [&](const auto& x) { return call_op(ClassSlopesOfRows{options}, g, x, classes); },
        [&](const auto& x) { return cleave::detail::slopes_of_parts(g, x, classes, options); }, g);
  }
};

/// The losses of rows, on a GPU, if classes are not sharded.
struct ClassLossesOfRows {
  ClassLoss options{};

  static constexpr const char* name = "cross_entropy";
  static constexpr const char* factors = "ab,a->a";
  static constexpr const char* replicated = "b";
  void kernel(const auto& on, const Task&, const auto& losses, const auto& logits,
              const auto& classes) const {
    class_losses(on, logits, classes, options.ignore_index, options.label_smoothing, losses);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& logits,
                          const auto& classes) const {
    return call_op(ClassSlopes{{}, options}, g, logits, classes);
  }
};

/// The losses of rows of logits [n, c], for any placements.
struct ClassLosses : CompositeByPlacement {
  ClassLoss options{};

  static constexpr const char* name = ClassLossesOfRows::name;
  constexpr auto body(const auto& operand, const auto& classes) const {
    return cleave::detail::by_rows<1>(
        resolve(operand),
        [&](const auto& x) { return call_op(ClassLossesOfRows{options}, x, classes); },
        [&](const auto& x) { return cleave::detail::losses_of_parts(x, classes, options); });
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& logits,
                          const auto& classes) const {
    return call_op(ClassSlopes{{}, options}, g, resolve(logits), classes);
  }
};

}  // namespace ops

namespace detail {

/// The losses of rows of logits.
template <class X, class C>
constexpr auto class_losses(const X& logits, const C& classes, const ClassLoss& options) {
  if constexpr (is_on_host<X>) return losses_of_parts(logits, classes, options);
  else return call_op(ops::ClassLosses{{}, options}, logits, classes);
}

}  // namespace detail

namespace ops {

/// One-hot classes have the placements of the logits, so that sharded classes are not gathered.
/// Elements are selected, not multiplied by 0 or 1, because the other elements may be infinite.
struct CrossEntropy : Composite {
  static constexpr const char* name = "cross_entropy";
  static constexpr auto body(const auto& logits, const auto& classes) {
    if constexpr (cleave::detail::is_on_host<decltype(logits)>) {
      const auto y = log_softmax(logits, dim<1>{});
      const auto chosen =
          cleave::detail::call_as(cleave::detail::like(y), OneHot<bool>{shape_of(y)[1]}, classes);
      return neg(mean(sum(where(chosen, y, 0), dim<1>{})));
    } else {
      return mean(
          call_op(ClassLosses{{}, {.ignore_index = kernels::none_ignored}}, logits, classes));
    }
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

}  // namespace cleave::inline v0
