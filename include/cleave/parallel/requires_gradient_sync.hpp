// Gradient accumulation over several backwards: whether the next one reduces gradients over ranks.
#pragma once

#include <cleave/nn/visit.hpp>

namespace cleave::inline v0 {

/// Sets whether backward reduces the gradients of a module over ranks; initially true. If false,
/// each rank accumulates its gradients without communication, and `grad` does not include them; the
/// next backward that reduces gradients includes them. `zero_grad` drops them.
///
/// For replicated and fully sharded modules, and for those that are both. With fully_shard the
/// accumulated gradients are unsharded: they take as much memory as all parameters.
/// @pre all ranks pass the same value
template <class M>
void set_requires_gradient_sync(const M& m, bool on) {
  nn::visit_wrappers(m, [on](const auto& part) {
    if constexpr (requires { part.set_requires_gradient_sync(on); })
      part.set_requires_gradient_sync(on);
  });
}

}  // namespace cleave::inline v0
