// All combinations of some placements.
#pragma once

#include <cleave/placement/placement.hpp>

namespace cleave::testing {

/// Calls f(P{}) for every Placements P of `Axes` axes, each one of the choices.
template <int Axes, class... Choice, class F>
void each_placements(const F& f) {
  const auto grow = [&f]<class... P>(auto& self, Placements<P...>) -> void {
    if constexpr (int(sizeof...(P)) == Axes) f(Placements<P...>{});
    else (self(self, Placements<P..., Choice>{}), ...);
  };
  grow(grow, Placements<>{});
}

}  // namespace cleave::testing
