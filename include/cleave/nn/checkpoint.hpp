// Checkpoints: a directory of safetensors files, one per rank with the elements that the rank owns.
// They can be loaded on any mesh, under any placements.
#pragma once

#include <string>

#include <cleave/comm/world.hpp>
#include <cleave/core/config.hpp>
#include <cleave/nn/state_dict.hpp>

namespace cleave::inline v0::nn {

/// Writes the state into the new directory `path`. The name appears only when all data is on disk:
/// a program that is killed leaves no directory of that name, or a complete one.
///
/// Every rank writes its own elements; replicas share the work. Tensors that are not on a mesh must
/// be the same on all ranks; the first rank writes them. Block-cyclic tensors are redistributed to
/// Shard first: files have boxes.
/// @collective every rank of the world, to synchronise and to redistribute block-cyclic tensors,
///             which all ranks must list in the same order
/// @throws Error, on every rank, if `path` exists or a rank cannot write; the files written so far
///         stay in `path`.partial until the next attempt
CLEAVE_INLINE void save_checkpoint(const World& world, const std::string& path,
                                   const StateDict& state);

struct LoadOptions {
  bool ignore_rest = false;  ///< ignore tensors in the files that the state does not have
};

/// Loads the state in place, whatever mesh and placements it was saved with: each rank reads the
/// elements that it holds. `path` may also be a single safetensors file, for example of PyTorch.
///
/// @return     the notes
/// @collective none
/// @throws Error, with the path, if a file is missing, truncated or changed, or a tensor is missing
///         or has another type or shape. The state may then be partly loaded.
CLEAVE_INLINE Notes load_checkpoint(const std::string& path, const StateDict& state,
                                    const LoadOptions& options = {});

/// The path of the complete checkpoint with the highest number in a directory of "NAME-NUMBER"
/// entries; empty if there is none.
CLEAVE_INLINE std::string latest_checkpoint(const std::string& directory);

}  // namespace cleave::inline v0::nn

#if !CLEAVE_COMPILED
#include <cleave/nn/checkpoint_body.hpp>
#endif
