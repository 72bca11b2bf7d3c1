// What tensors refuse to be: numbers, truth values, tensors of another type, and arrays of elements
// that ranks do not hold. Only compile errors: without these members compilers would say that
// something does not match, but not what to call instead.
#pragma once

#include <concepts>
#include <type_traits>

#include <cleave/core/dtype.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The level of an operand. The highest level among the operands selects the path of a call.
/// -1: no tensor; 0: Tensor; 1: DTensor; 2: Traced; 3: Tracked.
template <class X>
inline constexpr int call_level = -1;

/// What the variable is that a tensor cannot be converted to.
template <class From, class To>
concept RefusedTarget =
    !std::is_same_v<From, To> && (std::is_arithmetic_v<To> || Element<To> || call_level<To> >= 0);

/// Says why a tensor does not become a To.
template <class From, class To>
void refuse_conversion() {
  constexpr int from = call_level<From>, to = call_level<To>;
  static_assert(to >= 0,
                "cleave: a tensor is not a number or a truth value: call item() of one that has a "
                "single element; reduce others first, with any(..), all(..), sum(..)");
  static_assert(to != 0 || from != 1,
                "cleave: a DTensor is not a Tensor: call to_local() for this rank's part, "
                "full_tensor() for the whole array");
  static_assert(to != 1 || from != 0,
                "cleave: a Tensor is not a DTensor: place it with distribute_tensor or from_local");
  static_assert(to == 3 || from != 3,
                "cleave: a value that tracks gradients is not a plain one: call value()");
  static_assert(to != 3 || from == 3,
                "cleave: this value does not track gradients: call requires_grad(x)");
  static_assert((to == 2) == (from == 2) || to == 3 || from == 3,
                "cleave: a traced value has no elements; make the tensor an argument of the traced "
                "function");
  if constexpr (to == from) {
    constexpr bool same_type = std::is_same_v<typename From::value_type, typename To::value_type>;
    constexpr bool same_dims = From::dims == To::dims;
    constexpr bool same_device =
        std::is_same_v<typename From::device_type, typename To::device_type>;
    static_assert(same_type,
                  "cleave: the variable has another element type: convert with cast<T>(x)");
    static_assert(same_dims, "cleave: the variable has another number of dimensions");
    static_assert(
        same_device,
        "cleave: the variable is of another device: copy with x.to(device) or redistribute "
        "to a mesh of that device");
    static_assert(!same_type || !same_dims || !same_device,
                  "cleave: the variable has other placements or another mesh, which are parts of "
                  "its type: call x.redistribute(y.placements()), or declare a new variable with "
                  "auto");
  }
}

}  // namespace detail

// Not in detail: the namespaces of a base are searched for the functions that a call names.

/// Base of tensors. @tparam Self  the tensor, so that no two bases have the same type
template <class Self>
struct RefusedConversions {
  template <class To>
    requires detail::RefusedTarget<Self, To>
  operator To() const {
    detail::refuse_conversion<Self, To>();
    __builtin_unreachable();
  }
};

/// Base of tensors whose elements are not in the memory of one rank, or not there yet.
template <class Self>
struct RefusedElements : RefusedConversions<Self> {
  template <std::integral... Index, class X = Self>
  typename X::value_type& operator()(Index...) const {
    refuse<Index...>();
    __builtin_unreachable();
  }
  template <std::integral Index, class X = Self>
  typename X::value_type& operator[](Index) const {
    refuse<Index>();
    __builtin_unreachable();
  }

 private:
  template <class... Index>
  static void refuse() {
    static_assert(sizeof...(Index) > 99,
                  "cleave: elements of distributed, tracked and traced tensors have no indices: "
                  "index to_local() or full_tensor(), take a part with slice or select, or call "
                  "item()");
  }
};

}  // namespace cleave::inline v0
