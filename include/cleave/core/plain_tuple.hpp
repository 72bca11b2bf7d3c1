// A tuple of trivially copyable values that is itself trivially copyable, which std::tuple is not:
// arguments of kernels and recorded operations are copied byte by byte.
#pragma once

#include <cstddef>
#include <utility>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::detail {

template <std::size_t I, class T>
struct PlainItem {
  T value;
};

template <class Indices, class... T>
struct PlainItems;
template <std::size_t... I, class... T>
struct PlainItems<std::index_sequence<I...>, T...> : PlainItem<I, T>... {
  constexpr PlainItems(const T&... values) : PlainItem<I, T>{values}... {}

  /// Calls f with all values.
  template <class F>
  constexpr auto apply(const F& f) const {
    return f(static_cast<const PlainItem<I, T>&>(*this).value...);
  }
};

template <class... T>
struct PlainTuple : PlainItems<std::index_sequence_for<T...>, T...> {
  using PlainItems<std::index_sequence_for<T...>, T...>::PlainItems;
};

/// Value I of a PlainTuple.
template <std::size_t I, class T>
CLEAVE_HOST_DEVICE constexpr const T& item(const PlainItem<I, T>& of) {
  return of.value;
}

}  // namespace cleave::inline v0::detail
