// Redistribution of a tracked value to another mesh: its gradient returns to the mesh and the
// placements of the source.
#pragma once

#include <type_traits>

#include <cleave/grad/tracked.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Redistribution to another mesh.
struct RedistributeAcross {
  static constexpr const char* name = "redistribute";
  static constexpr unsigned gradient_reads = 0;

  template <class G, class Y, class X>
  static auto gradient(wrt<0>, const G& g, const Y&, const X& x) {
    const auto& source = detail::innermost(x);
    using Gradient = gradient_t<std::remove_cvref_t<decltype(source)>>;
    return g.redistribute(source.mesh(), detail::placements_as<typename Gradient::placements_type>(
                                             source.actual_layout()));
  }
};

}  // namespace ops

namespace tape {

template <class X, class Mesh, class... P>
auto redistribute_across(const Tracked<X>& x, const Mesh& mesh, Placements<P...> placements) {
  return record(ops::RedistributeAcross{}, x.value().redistribute(mesh, placements), x);
}

}  // namespace tape

}  // namespace cleave::inline v0
