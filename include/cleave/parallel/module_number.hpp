// Numbers for modules that communicate asynchronously: if ranks call two modules, or two parts of
// one, in different orders, they get an error instead of wrong elements.
#pragma once

#include <cleave/mesh/mesh_state.hpp>

namespace cleave::inline v0::parallel {

/// A number for a module, for `numbered_detail`: errors show it and that of the part of the module.
/// @pre all ranks of the mesh number the same modules in the same order
inline int next_module_number(const MeshState& mesh) {
  struct Count {
    int modules = 0;
  };
  return ++mesh.cache<Count>().modules;
}

}  // namespace cleave::inline v0::parallel
