// Mesh axes: empty types whose names are the names of the axes.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace cleave::inline v0 {

/// The base of all axes: `struct dp : cleave::axis {};`
struct axis {};

/// A type that names an axis.
template <class A>
concept Axis = std::derived_from<A, axis> && !std::same_as<A, axis>;

/// Several axes of a mesh, in its order, as one; the last varies fastest.
template <Axis... A>
struct flat : axis {};

/// Predefined axes with the usual names.
namespace axes {
struct dp : axis {};   ///< data parallel
struct tp : axis {};   ///< tensor parallel
struct pp : axis {};   ///< pipeline parallel
struct cp : axis {};   ///< context parallel
struct ep : axis {};   ///< expert parallel
struct row : axis {};  ///< rows of a process grid
struct col : axis {};  ///< columns of a process grid
}  // namespace axes

namespace detail {

template <class A>
constexpr std::string_view spelled_type() {
  // gcc and nvcc: ".. [with A = x::dp; ..]", clang: ".. [A = x::dp]"
  std::string_view text = __PRETTY_FUNCTION__;
  const auto begin = text.find("A = ");
  text.remove_prefix(begin == text.npos ? text.find("A=") + 2 : begin + 4);
  text = text.substr(0, text.find_first_of(";]"));
  const auto scope = text.rfind(':');
  return scope == text.npos ? text : text.substr(scope + 1);
}

template <class A>
struct AxisName {
  static std::string get() { return std::string(spelled_type<A>()); }
};
template <class First, class... Rest>
struct AxisName<flat<First, Rest...>> {
  static std::string get() {
    return (AxisName<First>::get() + ... + ("." + AxisName<Rest>::get()));
  }
};

}  // namespace detail

/// "dp" for `struct dp : axis {}`, "dp.tp" for `flat<dp, tp>`.
template <Axis A>
std::string axis_name() {
  return detail::AxisName<A>::get();
}

}  // namespace cleave::inline v0
