// A module as text: its tree with the types of its parameters.
#pragma once

#include <string>
#include <type_traits>

#include <cleave/core/shape.hpp>
#include <cleave/nn/visit.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0::nn {

namespace detail {

template <class X>
std::string type_of_parameter(const X& x) {
  if constexpr (tape::is_tracked<X>) {
    return type_of_parameter(x.value()) + " with gradient";
  } else {
    std::string text = short_name_of(dtype_of<typename X::value_type>());
    text += to_string(Shape(x.shape()));
    if constexpr (is_lazy<X>) text += " not initialised yet";
    else if constexpr (is_dtensor<X>)
      text += " " + to_string(x.actual_layout()) + " on " + x.mesh().describe();
    return text;
  }
}

template <class M>
void describe_parts(const M& m, int depth, std::string& text);

template <class M>
void describe_part(const M& m, const std::string& name, int depth, std::string& text) {
  if constexpr (std::is_same_v<M, None>) {
    return;
  } else if constexpr (Param<M>) {
    text += std::string(std::size_t(2 * depth), ' ') + name + "  " + type_of_parameter(m) + "\n";
  } else if constexpr (is_buffer<M>) {
    describe_part(m.value, name + " (buffer)", depth, text);
  } else if constexpr (Struct<M> || Group<M>) {
    const bool is_named = !name.empty();
    if (is_named) text += std::string(std::size_t(2 * depth), ' ') + name + "\n";
    describe_parts(m, is_named ? depth + 1 : depth, text);
  }
}

template <class M>
void describe_parts(const M& m, int depth, std::string& text) {
  each_part(m, [&](const auto& part, const auto& name) { describe_part(part, name, depth, text); });
}

}  // namespace detail

/// The tree of a module, one line per part: "  weight  f32[6, 4] (Shard(0)) on tp=2".
template <class M>
  requires Struct<M> || Group<M>
std::string describe(const M& m) {
  std::string text;
  detail::describe_parts(m, 0, text);
  return text;
}

}  // namespace cleave::inline v0::nn
