// Visits the parts of a module with their dotted names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <cleave/core/shape.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/nn/fields.hpp>
#include <cleave/nn/part.hpp>

namespace cleave::inline v0::nn {

/// "layers" and "0" as "layers.0"; an empty name adds nothing.
inline std::string join_path(const std::string& path, std::string_view name) {
  if (name.empty()) return path;
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

/// Calls f(part, name) for each part of a module; the names of elements are their indices.
template <class M, class F>
void each_part(M& m, const F& f) {
  using X = std::remove_const_t<M>;
  if constexpr (Wrapper<X>) {
    using Inside = std::conditional_t<std::is_const_v<M>, const plain_t<X>, plain_t<X>>;
    each_part(static_cast<Inside&>(m), f);
  } else if constexpr (is_vector<X>) {
    for (std::size_t i = 0; i < m.size(); ++i) f(m[i], std::to_string(i));
  } else if constexpr (is_tuple<X>) {
    std::apply(
        [&](auto&... part) {
          int i = 0;
          (f(part, std::to_string(i++)), ...);
        },
        m);
  } else if constexpr (Struct<X>) {
    with_fields(m, [&](auto&... part) {
      std::size_t i = 0;
      (f(part, MembersOf<X>::value.text[i++]), ...);
    });
  }
}

/// Calls f(path, part) for the module and all below it, parents first.
template <class M, class F>
void visit(M& m, const F& f, const std::string& path = {}) {
  f(path, m);
  each_part(m, [&](auto& part, const auto& name) { visit(part, f, join_path(path, name)); });
}

/// Calls f(part) for the module and all below it, parents first; for a wrapped module also for each
/// wrapper, outermost first.
template <class M, class F>
void visit_wrappers(const M& m, const F& f) {
  const auto each = [&f]<class X>(const auto& self, const X& x) -> void {
    f(x);
    if constexpr (Wrapper<X>) self(self, static_cast<const typename X::wrapped&>(x));
  };
  visit(m, [&](const std::string&, const auto& part) { each(each, part); });
}

/// Calls f(parameter) for every parameter, in order.
template <class M, class F>
void parameters(M& m, const F& f) {
  if constexpr (Param<std::remove_const_t<M>>) f(m);
  else each_part(m, [&](auto& part, const auto&) { parameters(part, f); });
}

/// Calls f(path, parameter) for every parameter: "layers.0.up.weight".
template <class M, class F>
void named_parameters(M& m, const F& f) {
  visit(m, [&](const std::string& path, auto& part) {
    if constexpr (Param<std::remove_cvref_t<decltype(part)>>) f(path, part);
  });
}

/// Calls f(path, tensor) for every parameter and every buffer: the tensors of the state.
template <class M, class F>
void named_tensors(M& m, const F& f) {
  visit(m, [&](const std::string& path, auto& part) {
    using X = std::remove_cvref_t<decltype(part)>;
    if constexpr (Param<X>) f(path, part);
    else if constexpr (is_buffer<X>) f(path, part.value);
  });
}

/// The number of elements of all parameters; a shared parameter counts each time it appears.
template <class M>
index_t count(const M& m) {
  index_t total = 0;
  parameters(m, [&](const auto& x) { total += Shape(x.shape()).product(); });
  return total;
}

}  // namespace cleave::inline v0::nn
