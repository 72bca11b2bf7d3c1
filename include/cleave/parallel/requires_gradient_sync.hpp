// Accumulation of gradients over several backwards: whether the next one sums them over ranks.
#pragma once

#include <cleave/nn/visit.hpp>

namespace cleave {

/// Whether backward sums the gradients of a module over ranks: true at first. While it does not,
/// nothing of them is sent. Each rank keeps what it has, and `grad` does not see it; the next
/// backward that does sums it, too. `zero_grad` drops it.
///
/// Of replicated and of fully sharded modules, and of those that are both. What fully_shard keeps
/// back are gradients of whole parameters: as much memory as all parameters have.
/// @pre all ranks do the same
template <class M>
void set_requires_gradient_sync(const M& m, bool on) {
  nn::visit_wrappers(m, [on](const auto& part) {
    if constexpr (requires { part.set_requires_gradient_sync(on); })
      part.set_requires_gradient_sync(on);
  });
}

}  // namespace cleave
