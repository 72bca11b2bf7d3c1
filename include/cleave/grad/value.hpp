// A value with its place in the tape.
#pragma once

#include <iosfwd>
#include <type_traits>
#include <utility>

#include <cleave/grad/gradient_slot.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>

namespace cleave::inline v0 {

namespace tape {

/// Redistributes a value to another mesh. @see tracked_cross_mesh.hpp
template <class X, class Mesh, class... P>
auto redistribute_across(const Tracked<X>& x, const Mesh& mesh, Placements<P...> placements);

template <class... P>
Placements<P...> as_placements(Placements<P...>);
template <PlacementType... P>
Placements<P...> as_placements(P...);

}  // namespace tape

// Of DTensors; in local.hpp.
template <class X, class... P>
  requires is_dtensor<X>
auto to_local(const Tracked<X>& x, Placements<P...> gradient);
template <class X>
  requires is_dtensor<X>
auto to_local(const Tracked<X>& x);
template <class X>
  requires is_dtensor<X>
auto full_tensor(const Tracked<X>& x);

/// A value of type X with its place in the tape. A handle: copies share both.
template <class X>
class Tracked : public RefusedElements<Tracked<X>> {
 public:
  using value_type = typename X::value_type;
  using device_type = typename X::device_type;
  static constexpr int dims = X::dims;

  constexpr explicit Tracked(const X& value, tape::Slot<X>* slot = nullptr)
      : value_(value), slot_(slot) {}

  /// The value without its place in the tape: operations on it are not recorded.
  constexpr const X& value() const { return value_; }
  /// Global extents.
  constexpr decltype(auto) shape() const { return value_.shape(); }
  constexpr index_t extent(int d) const { return value_.extent(d); }
  /// The number of global elements.
  constexpr index_t size() const { return value_.size(); }
  constexpr decltype(auto) mesh() const
    requires(!is_tensor<X>)
  {
    return value_.mesh();
  }
  constexpr auto placements() const
    requires(!is_tensor<X>)
  {
    return value_.placements();
  }
  /// The element of a value of size 1, as a number without gradient. @see DTensor::item
  constexpr value_type item() const { return value_.item(); }
  /// The elements that this rank holds, with their gradient. @see cleave::to_local
  ///
  /// @param gradient  the placements of the gradient, unless every axis shards the value
  template <class... P>
  constexpr auto to_local(P... gradient) const {
    if constexpr (is_tensor<X>) return *this;
    else if constexpr (!is_dtensor<X>) return value_.to_local(gradient...);
    else if constexpr (sizeof...(P) == 0) return cleave::to_local(*this);
    else return cleave::to_local(*this, decltype(tape::as_placements(gradient...)){});
  }
  /// The whole value on every rank. @see cleave::full_tensor
  constexpr auto full_tensor() const {
    if constexpr (is_tensor<X>) return *this;
    else if constexpr (!is_dtensor<X>) return value_.full_tensor();
    else return cleave::full_tensor(*this);
  }
  /// The same value under other placements; its gradient is redistributed back to those of this
  /// value.
  template <PlacementType... P>
  constexpr auto redistribute(P... p) const {
    return cleave::redistribute(*this, p...);
  }
  template <class... P>
  constexpr auto redistribute(Placements<P...> placements) const {
    return cleave::redistribute(*this, placements);
  }
  /// The same value on another mesh; its gradient is redistributed back to the mesh of this value.
  template <class Mesh, PlacementType... P>
    requires is_device_mesh<Mesh>
  auto redistribute(const Mesh& mesh, P... p) const {
    return tape::redistribute_across(*this, mesh, Placements<P...>(p...));
  }
  template <class Mesh, class... P>
    requires is_device_mesh<Mesh>
  auto redistribute(const Mesh& mesh, Placements<P...> placements) const {
    return tape::redistribute_across(*this, mesh, placements);
  }

  /// The record of the value; null for a constant.
  constexpr tape::Slot<X>* slot() const { return slot_.get(); }

 private:
  X value_;
  tape::Ref<tape::Slot<X>> slot_;
};

namespace detail {
template <class X>
inline constexpr int call_level<Tracked<X>> = 3;
}

/// Writes the value.
template <class Traits, class X>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Tracked<X>& x) {
  return out << x.value();
}

namespace tape {

template <class X>
constexpr const X& value_of(const X& x) {
  return x;
}
template <class X>
constexpr const X& value_of(const Tracked<X>& x) {
  return x.value();
}
template <class X>
using untracked_t = std::remove_cvref_t<decltype(value_of(std::declval<const X&>()))>;

}  // namespace tape

}  // namespace cleave::inline v0
