// Options of an expansion.
#pragma once

#include <cleave/core/shape.hpp>

namespace cleave::inline v0::spmd {

/// Options of `expand`.
struct ExpandOptions {
  bool partial_outputs = false;  ///< outputs may stay Partial; by default they become Replicate
  bool by_extents = true;        ///< extents decide which shards of reshaped values stay; in eager
                                 ///< calls, which know placements only, they do not
  /// The extents of the mesh, if known. Then the program runs on no other: an axis of one rank does
  /// not divide anything, so that a dimension of extent 1 may repeat even if it is "sharded" over
  /// that axis.
  Shape mesh{};
};

}  // namespace cleave::inline v0::spmd
