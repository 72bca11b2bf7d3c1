// A layer's declaration of how its parameters are sharded over a mesh axis.
#pragma once

namespace cleave::inline v0::nn {

/// Placements on one mesh axis: of a layer's first input, then of each of its members, in order.
/// Entries of members that are not parameters are ignored.
///
///     using colwise = nn::Cut<Replicate, Shard<0>, Shard<0>>;   // y[S-1] = f(x[R])
///     using rowwise = nn::Cut<Shard<-1>, Shard<1>, Replicate>;  // y[P]   = f(x[S-1])
///
/// @see ColwiseParallel, RowwiseParallel
template <class Input, class... Member>
struct Cut {
  using input = Input;
};

}  // namespace cleave::inline v0::nn
