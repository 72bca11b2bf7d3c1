// Gradients of whole modules: the type of a module says which parameters require them.
#pragma once

#include <type_traits>

#include <cleave/grad/backward.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/nn/visit.hpp>

namespace cleave::inline v0 {

/// The module with its parameters as leaves of the tape; buffers are unchanged.
///
/// The storage is shared: an optimizer's step also changes the original module.
template <nn::Struct M>
auto requires_grad(const M& m) {
  return nn::map_parameters(m, [](const auto& x) {
    using X = std::remove_cvref_t<decltype(x)>;
    static_assert(!nn::is_lazy<X>,
                  "cleave: requires_grad: the module has uninitialised parameters; initialise them "
                  "with place(module, mesh), or with make(module, state) on one device");
    if constexpr (tape::is_tracked<X>) return x;
    else return requires_grad(x);
  });
}

/// The module with untracked parameters: its calls are not recorded. The storage is shared.
template <nn::Struct M>
auto detach(const M& m) {
  return nn::map_parameters(m, [](const auto& x) { return detach(x); });
}

/// Drops the gradients of all parameters.
template <nn::Struct M>
void zero_grad(const M& m) {
  nn::parameters(m, [](const auto& x) {
    if constexpr (tape::is_tracked<std::remove_cvref_t<decltype(x)>>) zero_grad(x);
  });
}

}  // namespace cleave::inline v0
