// Gradients: marking the values that require them, computing and reading them.
//
//     auto w = requires_grad(weights);
//     auto loss = cross_entropy(matmul(x, w), classes);
//     backward(loss);
//     auto g = grad(w);                    // placed as w, partials resolved
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include <cleave/grad/tracked.hpp>

namespace cleave::inline v0 {

/// Tells `backward` to keep the tape for another backward (`retain_graph` in PyTorch).
struct retain_t {};
inline constexpr retain_t retain{};

/// Makes the value a leaf of the tape: `backward` accumulates its gradient.
template <AnyTensor X>
constexpr Tracked<X> requires_grad(const X& x) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: requires_grad requires real or complex elements");
  return Tracked<X>(x, new tape::Leaf<X>(x));
}

/// The value without its place in the tape: operations on it are not recorded.
template <class X>
constexpr const X& detach(const Tracked<X>& x) {
  return x.value();
}
template <AnyTensor X>
  requires(!tape::is_tracked<X>)
constexpr const X& detach(const X& x) {
  return x;
}

namespace tape {

template <class X>
constexpr Leaf<X>& leaf_of(const Tracked<X>& x, const char* operation) {
  RecordBase* const record = x.slot();
  if (record == nullptr || record->table != &Leaf<X>::functions)
    throw Error(operation, "the value is not a leaf; call requires_grad");
  return *static_cast<Leaf<X>*>(record);
}

/// The gradient of a scalar with respect to itself.
template <class X>
constexpr gradient_t<X> one_like(const X& x) {
  static_assert(X::dims == 0,
                "cleave: backward requires a scalar; for another value pass its gradient: "
                "backward(y, gradient)");
  return filled_gradient(x, typename X::value_type(1));
}

template <class X, class G>
constexpr void run_backward(const Tracked<X>& y, const G& gradient, bool retains) {
  Slot<X>* const slot = y.slot();
  if (slot == nullptr)
    throw Error("backward", "the value does not depend on anything that requires a gradient");
  if (!(shape_of(gradient) == shape_of(y)))
    throw Error("backward", "the gradient and the value have different extents",
                {.shapes = to_string(shape_of(gradient)) + " and " + to_string(shape_of(y))});
  slot->sum.add(gradient, slot->like);
  if (std::is_constant_evaluated()) detail::visit(slot, retains);
  else sweep(slot, retains);
}

}  // namespace tape

/// Computes the gradients of a scalar with respect to all leaves, and accumulates them.
///
/// The tape is freed as backward proceeds, unless `retain` is given.
/// @collective every rank of the mesh
/// @throws Error if the tape was freed before, or an operand was changed in place after its use
template <class X>
constexpr void backward(const Tracked<X>& loss) {
  tape::run_backward(loss, tape::one_like(loss.value()), false);
}
template <class X>
constexpr void backward(const Tracked<X>& loss, retain_t) {
  tape::run_backward(loss, tape::one_like(loss.value()), true);
}

/// The same for any value with a given gradient: differentiates the sum of gradient · y.
/// @param gradient  with the extents and the mesh of y, under any placements
template <class X, AnyTensor G>
constexpr void backward(const Tracked<X>& y, const G& gradient) {
  tape::run_backward(y, gradient, false);
}
template <class X, AnyTensor G>
constexpr void backward(const Tracked<X>& y, const G& gradient, retain_t) {
  tape::run_backward(y, gradient, true);
}

namespace tape {

template <class X>
constexpr void refuse_untracked() {
  static_assert(is_tracked<X>,
                "cleave: the value does not track gradients: compute it from values that "
                "requires_grad(x) returns");
}

}  // namespace tape

/// Only a message: values that do not track gradients have none.
template <AnyTensor X, class... More>
  requires(!tape::is_tracked<X>)
constexpr void backward(const X&, const More&...) {
  tape::refuse_untracked<X>();
}
template <AnyTensor X>
  requires(!tape::is_tracked<X>)
constexpr const X& grad(const X& x) {
  tape::refuse_untracked<X>();
  return x;
}
template <AnyTensor X>
  requires(!tape::is_tracked<X>)
constexpr bool has_grad(const X&) {
  tape::refuse_untracked<X>();
  return false;
}

/// Whether a leaf has a gradient: one has arrived since `zero_grad`.
template <class X>
constexpr bool has_grad(const Tracked<X>& x) {
  return tape::leaf_of(x, "has_grad").gradient.has_value();
}

/// The accumulated gradient of a leaf: placed as the leaf, partials resolved.
/// @throws Error if none has arrived
template <class X>
constexpr const gradient_t<X>& grad(const Tracked<X>& x) {
  const tape::Leaf<X>& leaf = tape::leaf_of(x, "grad");
  if (!leaf.gradient)
    throw Error("grad", "no gradient has arrived; call backward on a value that depends on it");
  return *leaf.gradient;
}

/// Drops the gradient of a leaf.
template <class X>
constexpr void zero_grad(const Tracked<X>& x) {
  tape::Leaf<X>& leaf = tape::leaf_of(x, "zero_grad");
  leaf.gradient.reset();
  ++leaf.drops;
  if (leaf.receiver != nullptr) leaf.receiver->dropped(leaf.key);
}

/// Registers a hook on a leaf: every backward calls f(gradient) as soon as the accumulated gradient
/// of the leaf is complete, while gradients of other leaves are still being computed.
template <class X, class F>
void on_gradient(const Tracked<X>& x, F&& f) {
  constexpr bool is_hook = std::is_constructible_v<std::function<void(const gradient_t<X>&)>, F&&>;
  static_assert(
      is_hook,
      "cleave: on_gradient: a hook is a copyable function of the gradient: [](const auto& "
      "gradient) { .. }");
  if constexpr (is_hook) tape::leaf_of(x, "on_gradient").hooks.emplace_back(std::forward<F>(f));
}

/// Calls f(complete) at the end of the backward in progress on this rank; `complete` is false if
/// the backward fails. @throws Error outside a backward
inline void at_backward_end(std::function<void(bool complete)> f) {
  if (tape::Sweep::current() == nullptr)
    throw Error("at_backward_end", "no backward is in progress on this rank");
  tape::Sweep::current()->at_end.push_back(std::move(f));
}

/// Declares that the elements of a leaf were changed in place: a later backward through operations
/// that used the old elements is an error.
template <class X>
void mark_changed(const Tracked<X>& x) {
  ++tape::leaf_of(x, "mark_changed").version;
  tape::note_change_of(x.value());
}

/// Activation checkpointing: computes f(x..) without keeping the values saved for backward, which
/// calls f again to recompute them. Saves memory at the cost of time.
///
/// @param f  takes the operands, returns a tracked value; must call the same operations in the same
///           order both times
template <class F, class... X>
auto checkpoint(const F& f, const X&... x) {
  const auto segment = std::make_shared<tape::Segment>();
  segment->call = [f, x..., weak = std::weak_ptr<tape::Segment>(segment)] {
    const std::shared_ptr<tape::Segment> self = weak.lock();
    self->made = 0;
    self->again = true;
    const tape::SegmentScope scope(self);
    static_cast<void>(f(x...));
    self->again = false;
  };
  const tape::SegmentScope scope(segment);
  return f(x...);
}

}  // namespace cleave::inline v0
