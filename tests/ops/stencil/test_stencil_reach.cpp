// The reach of stencils, found by the compiler.
#include <cleave/ops/stencil/reach.hpp>

#include "../naive_stencils.hpp"

namespace stencil_tests {

namespace {

struct Declared : Stencil {
  static constexpr auto reach = star(2, 1);
  auto operator()(const auto& u) const { return u(int(u(0, 0)) % 3, 0); }
};
struct DeclaredEach : Stencil {
  static constexpr Reach reach[] = {star(0, 1), box(Sides{-1, 0}, 2)};
  constexpr auto operator()(const auto& u, const auto& c) const { return u(0, 1) * c(-1, 2); }
};
struct Unused : Stencil {
  constexpr auto operator()(const auto& u, const auto&) const { return u(0); }
};

static_assert(reach_of<Heat> == star(1, 1));
static_assert(reach_of<Nine> == box(1, 1));
static_assert(reach_of<Velocity, 0> == star(0, 0));
static_assert(reach_of<Velocity, 2> == star(Sides{0, 1}, Sides{0, 1}));
static_assert(reach_of<Unequal> == star(Sides{-3, 2}, Sides{-2, 1}));
static_assert(reach_of<Line<0, 5>> == star(Sides{0, 5}));
static_assert(reach_of<Line<2, 5>> == star(Sides{0, 5}), "the element itself is included");
static_assert(reach_of<Seven> == star(1, 1, 1));
static_assert(reach_of<Weighted, 0> == star(Sides{0, 1}, Sides{-1, 0}));
static_assert(reach_of<Weighted, 1> == box(Sides{0, 1}, Sides{0, 1}));
static_assert(reach_of<Upwind> == star(1, 0), "both sides of a branch on a sign");
static_assert(reach_of<Declared> == star(2, 1));
static_assert(reach_of<DeclaredEach, 1> == box(Sides{-1, 0}, 2));
static_assert(reach_of<Unused, 1> == Reach{});
static_assert(!(star(1, 1) == box(1, 1)) && box(1, 1).contains(star(1, 1)));
static_assert(!star(1, 1).contains(box(1, 1)) && !star(1, 1).contains(star(1, 2)));

}  // namespace

}  // namespace stencil_tests
