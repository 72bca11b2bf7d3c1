// A tensor with the ghosts in its margin, as exchange_halo has received them: until something
// writes to the tensor or to its margin. Reading them later is an error, never a stale value.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <cleave/async/async.hpp>
#include <cleave/ops/stencil/stencil_fields.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

/// A tensor whose neighbours' elements lie in its margin. Takes the place of the tensor in `apply`,
/// which then receives nothing for it. A handle, made by `exchange_halo`.
template <class X>
class Halo {
 public:
  using tensor_type = X;
  using device_type = typename X::device_type;
  using local_type = Tensor<typename X::value_type, X::dims, device_type>;

  Halo(X x, const detail::FilledMargin& filled) : x_(std::move(x)), filled_(filled) {}

  /// The tensor, which shares its storage.
  const X& tensor() const noexcept { return x_; }
  /// The offsets of the ghosts.
  const Reach& reach() const noexcept { return filled_.reach; }
  /// The indices of `elements` in the global array; those outside of it are beyond edges.
  Box box() const { return filled_.around(detail::own_box_of(x_)); }

  /// This rank's elements with the ghosts around them, for loops of your own. Where the reach is a
  /// star, corners are not specified, and neither are elements beyond edges `none`.
  ///
  /// @throws Error if something has written to the tensor or to its margin since the exchange
  local_type elements() const {
    const auto& local = detail::local_part(x_);
    if (!detail::knows_extents(x_)) return local;
    filled_.require_unchanged("Halo", local.storage(), changes_in(device_type{}, local.storage()),
                              detail::context_of(x_));
    const Box own = detail::own_box_of(x_), all = box();
    if (own.empty()) return local;
    const index_t before =
        detail::offset_of(own.relative_to(all.begin).begin, Shape(local.strides()));
    return local_type::adopt(local.data() - before, to_array<X::dims>(all.extents()),
                             local.strides(), local.storage());
  }

  const detail::FilledMargin& filled() const noexcept { return filled_; }

 private:
  X x_;
  detail::FilledMargin filled_;
};

namespace detail {

template <class A>
inline constexpr bool is_halo = false;
template <class X>
inline constexpr bool is_halo<Halo<X>> = true;
template <class X>
inline constexpr bool is_halo<Async<Halo<X>>> = true;

/// The tensor of an argument of `apply`; waits for an exchange.
template <class A>
const A& field_of(const A& a) {
  return a;
}
template <class X>
const X& field_of(const Halo<X>& halo) {
  return halo.tensor();
}
template <class X>
const X& field_of(const Async<Halo<X>>& halo) {
  return halo.wait().tensor();
}
template <class A>
using field_t = std::remove_cvref_t<decltype(field_of(std::declval<const A&>()))>;

/// The ghosts of an argument of `apply`; null: none.
template <class A>
const FilledMargin* ghosts_in(const A&) {
  return nullptr;
}
template <class X>
const FilledMargin* ghosts_in(const Halo<X>& halo) {
  return &halo.filled();
}
template <class X>
const FilledMargin* ghosts_in(const Async<Halo<X>>& halo) {
  return &halo.wait().filled();
}

}  // namespace detail

}  // namespace cleave::inline v0
