// Checkpoints: a directory of safetensors files, one per rank, each of what its rank owns. Read
// back on any mesh, under any placements.
#pragma once

#include <string>

#include <cleave/comm/world.hpp>
#include <cleave/core/config.hpp>
#include <cleave/nn/state_dict.hpp>

namespace cleave::nn {

/// Writes the state into the new directory `path`. The name appears only when all is on disk: a
/// program that is killed leaves no directory of that name, or a complete one.
///
/// Every rank writes its own elements without communication; replicas share the work. Tensors that
/// are on no mesh are the same on all ranks, and written by the first.
/// @collective every rank of the world, which tell each other only that they are done
/// @throws Error, on every rank, if `path` exists or a rank cannot write; what was written stays in
///         `path`.partial until the next attempt
CLEAVE_INLINE void save_checkpoint(const World& world, const std::string& path,
                                   const StateDict& state);

struct LoadOptions {
  bool ignore_rest = false;  ///< take no offence at tensors in the files that the state lacks
};

/// Reads the state back, in place, whatever mesh and placements it was saved under: each rank reads
/// what it holds. `path` may also be one file, of PyTorch's `safetensors` say.
///
/// @return     the notes
/// @collective none
/// @throws Error, with the path, for a file that is missing, truncated or changed, and for a tensor
///         that is missing, or of another type or shape. The state may then be half read.
CLEAVE_INLINE Notes load_checkpoint(const std::string& path, const StateDict& state,
                                    const LoadOptions& options = {});

/// The complete checkpoint with the highest number in a directory of "NAME-NUMBER"s; empty if there
/// is none.
CLEAVE_INLINE std::string latest_checkpoint(const std::string& directory);

}  // namespace cleave::nn

#if !CLEAVE_COMPILED
#include <cleave/nn/checkpoint_body.hpp>
#endif
