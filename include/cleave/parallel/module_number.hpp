// Numbers of modules that communicate beside the rank: ranks that make the calls of two modules, or
// of two parts of one, in different orders get an error, not each other's elements.
#pragma once

#include <cleave/mesh/mesh_state.hpp>

namespace cleave::parallel {

/// A number for a module, for `numbered_detail`.
/// @pre all ranks of the mesh number the same modules in the same order
inline int next_module_number(const MeshState& mesh) {
  struct Count {
    int modules = 0;
  };
  return ++mesh.cache<Count>().modules;
}

}  // namespace cleave::parallel
