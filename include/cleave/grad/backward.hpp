// Gradients: which values they are wanted of, how they are computed, where they are found.
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

namespace cleave {

/// Asks a backward to keep the tape, for another one.
struct retain_t {};
inline constexpr retain_t retain{};

/// The value as a leaf of the tape: backward adds up its gradient.
template <AnyTensor X>
constexpr Tracked<X> requires_grad(const X& x) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: requires_grad requires real or complex elements");
  return Tracked<X>(x, new tape::Leaf<X>(x));
}

/// The value alone; what is computed from it is not recorded.
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
    throw Error(operation, "the value is not a leaf: requires_grad makes one");
  return *static_cast<Leaf<X>*>(record);
}

/// The gradient of a number with respect to itself.
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
    throw Error("backward", "the value depends on nothing that requires a gradient");
  if (!(shape_of(gradient) == shape_of(y)))
    throw Error("backward", "the gradient and the value have different extents",
                {.shapes = to_string(shape_of(gradient)) + " and " + to_string(shape_of(y))});
  slot->sum.add(gradient, slot->like);
  if (std::is_constant_evaluated()) detail::visit(slot, retains);
  else sweep(slot, retains);
}

}  // namespace tape

/// Computes the gradient of a number in everything that requires one, adding to what is there.
///
/// The tape is freed as it is passed, unless `retain` is given.
/// @collective every rank of the mesh
/// @throws Error if the tape was freed before, or an operand has been changed in place since
template <class X>
constexpr void backward(const Tracked<X>& loss) {
  tape::run_backward(loss, tape::one_like(loss.value()), false);
}
template <class X>
constexpr void backward(const Tracked<X>& loss, retain_t) {
  tape::run_backward(loss, tape::one_like(loss.value()), true);
}

/// The same of any value, whose own gradient is given: the sum of gradient · y is differentiated.
/// @param gradient  of y's extents, on its mesh, under any placements
template <class X, AnyTensor G>
constexpr void backward(const Tracked<X>& y, const G& gradient) {
  tape::run_backward(y, gradient, false);
}
template <class X, AnyTensor G>
constexpr void backward(const Tracked<X>& y, const G& gradient, retain_t) {
  tape::run_backward(y, gradient, true);
}

/// Whether a gradient of a leaf has arrived since `zero_grad`.
template <class X>
constexpr bool has_grad(const Tracked<X>& x) {
  return tape::leaf_of(x, "has_grad").gradient.has_value();
}

/// The gradient of a leaf: placed as the leaf, partials resolved.
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

/// Calls f(gradient) in every backward, the moment that the gradient of a leaf is complete, while
/// those of others are still being computed.
template <class X, class F>
void on_gradient(const Tracked<X>& x, F&& f) {
  tape::leaf_of(x, "on_gradient").hooks.emplace_back(std::forward<F>(f));
}

/// Calls f(complete) at the end of the backward that is under way on this rank; `complete` is
/// false if it fails. @throws Error outside of a backward
inline void at_backward_end(std::function<void(bool complete)> f) {
  if (tape::Sweep::current() == nullptr)
    throw Error("at_backward_end", "no backward is under way on this rank");
  tape::Sweep::current()->at_end.push_back(std::move(f));
}

/// Says that the elements of a leaf have been changed in place: a backward through operations that
/// used the old ones is an error from now on.
template <class X>
void mark_changed(const Tracked<X>& x) {
  ++tape::leaf_of(x, "mark_changed").version;
  tape::note_change_of(x.value());
}

/// f(x..), whose saved values are not kept but made by calling f again in backward: memory for
/// time. f does the same operations in the same order both times.
///
/// @param f  takes the operands, returns a tracked value
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

}  // namespace cleave
