// The place of a value in the tape: the sum of its gradient, and hooks on its completion.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <cleave/grad/gradient_sum.hpp>
#include <cleave/grad/record.hpp>
#include <cleave/tensor/overlap.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::tape {

/// A value with the type, mesh and extents of x but without its elements: replaces a value whose
/// elements no gradient reads.
template <class X>
constexpr X hollow(const X& x) {
  return x;
}
template <class T, int Rank, class Device>
Tensor<T, Rank, Device> hollow(const Tensor<T, Rank, Device>& x) {
  static T nothing{};
  return Tensor<T, Rank, Device>::adopt(&nothing, x.shape(),
                                        typename Tensor<T, Rank, Device>::Extents{});
}
template <class T, int Rank, class Mesh, class P>
DTensor<T, Rank, Mesh, P> hollow(const DTensor<T, Rank, Mesh, P>& x) {
  return DTensor<T, Rank, Mesh, P>::unchecked(hollow(x.to_local()), x.mesh(), x.shape(),
                                              x.actual_layout());
}

/// The number of in-place changes to the elements of a value.
template <class X>
constexpr unsigned changes_of(const X&) {
  return 0;
}
template <class T, int Rank, class Device>
unsigned changes_of(const Tensor<T, Rank, Device>& x) {
  return changes_in(Device{}, x.storage());
}
template <class T, int Rank, class Mesh, class P>
unsigned changes_of(const DTensor<T, Rank, Mesh, P>& x) {
  return changes_of(x.to_local());
}
template <class T, int Rank, class Device>
constexpr unsigned changes_of(const Traced<T, Rank, Device>& x) {
  return x.changes();
}
template <class X>
constexpr unsigned changes_of(const Tracked<X>& x) {
  return changes_of(x.value());
}

/// Counts an in-place change that the library did not see.
template <class X>
void note_change_of(const X& x) {
  if constexpr (is_dtensor<X>) note_change_of(x.to_local());
  else if constexpr (is_tensor<X>) note_change(typename X::device_type{}, x.storage());
  else if constexpr (is_tracked<X>) note_change_of(x.value());
}

/// A record with a result of type X.
template <class X>
struct Slot : RecordBase {
  GradientSum<X> sum{};
  X like;  ///< the result, hollow unless it is a leaf
  /// Remakes the result. If set, users of the result save none of its elements but call this in
  /// backward, which saves the memory of a value that can be gathered or computed again.
  X (*again)(Slot*) = nullptr;
  int* uses = nullptr;  ///< counts the calls of `again` that a backward will make

  constexpr Slot(const Table* functions, const X& x) : RecordBase(functions), like(x) {}
  static constexpr void forget(RecordBase* record) { static_cast<Slot*>(record)->sum.clear(); }
};

/// The sum of two gradients of one value.
template <class G>
constexpr G added(const G& a, const G& b) {
  if constexpr (is_dtensor<G>)
    return G::unchecked(cleave::add(a.to_local(), b.to_local()), a.mesh(), a.shape(),
                        a.actual_layout());
  else return cleave::add(a, b);
}

/// A gradient that its user may change: g itself, or a copy if g repeats elements or shares its
/// storage, with the gradient of another leaf for example.
template <class G>
constexpr G writable(const G& g) {
  if constexpr (is_dtensor<G>) {
    const auto& local = g.to_local();
    if (local.storage().use_count() != 1 || !cleave::detail::has_distinct_elements(local.view()))
      return G::unchecked(local.clone(), g.mesh(), g.shape(), g.actual_layout());
  } else if constexpr (is_tensor<G>) {
    if (g.storage().use_count() != 1 || !cleave::detail::has_distinct_elements(g.view()))
      return g.clone();
  }
  return g;
}

/// Receives the gradient of a leaf before it is reduced over ranks: data parallelism.
class GradientReceiver {
 public:
  virtual ~GradientReceiver() = default;
  /// The mesh axes over which this object reduces gradients.
  virtual AxisMask axes() const noexcept = 0;
  /// Called once per backward, when the last use of the leaf has passed its gradient.
  ///
  /// @param key       the number under which the leaf was registered
  /// @param layout    of the gradient; Partial(sum) on some of `axes()`
  /// @param gradient  local elements, valid during the call
  virtual void ready(int key, const Layout& layout, const View& gradient) = 0;
  /// Called when the gradient of the leaf is dropped: drops what the receiver has kept of it.
  virtual void dropped(int) {}
};

/// A value that requires a gradient. Gradients accumulate until `zero_grad`.
template <class X>
struct Leaf : Slot<X> {
  std::optional<gradient_t<X>> gradient{};
  std::vector<std::function<void(const gradient_t<X>&)>> hooks{};
  GradientReceiver* receiver = nullptr;
  unsigned drops = 0;  ///< how often the gradient has been dropped
  int key = 0;         ///< identifies this leaf to the receiver

  static constexpr void destroy(RecordBase* record) { delete static_cast<Leaf*>(record); }
  static constexpr void release(RecordBase*) {}
  static constexpr void run(RecordBase* record) { static_cast<Leaf*>(record)->complete(); }
  static constexpr Table functions{&destroy, &run, &release, &Slot<X>::forget};

  constexpr explicit Leaf(const X& x) : Slot<X>(&functions, x) { this->runs_first = true; }

  /// Called when all contributions of a sweep have arrived.
  constexpr void complete() {
    if (this->sum.empty()) return;
    if constexpr (is_dtensor<X>) {
      if (receiver != nullptr) {
        const auto part = this->sum.collect(this->like, receiver->axes());
        this->sum.clear();
        const View view = part.local.view();
        receiver->ready(key, part.layout, view);
        return;
      }
    }
    const gradient_t<X> g = this->sum.settle(this->like);
    this->sum.clear();
    arrive(writable(g));
  }

  /// Adds the gradient of a sweep to the accumulated gradient.
  constexpr void arrive(const gradient_t<X>& g) {
    if (!gradient) gradient.emplace(g);
    else gradient.emplace(added(*gradient, g));
    for (const auto& hook : hooks) hook(*gradient);
  }
};

}  // namespace cleave::inline v0::tape
