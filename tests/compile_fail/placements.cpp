// Placements that no tensor can have.
#include <cleave/placement/placement.hpp>

using namespace cleave;

static_assert(layout_of<Placements<Shard<1>, Replicate, Partial<Max>>, 2>.axes == 3);
static_assert(layout_of<Placements<BlockCyclic<1>, Cuts<0>>, 2>.is_open());

#ifdef shard_of_a_dimension_beyond_the_rank  // says: cleave: a placement names a dimension that the tensor does not have
constexpr Layout beyond = layout_of<Placements<Replicate, Shard<2>>, 2>;
#endif

#ifdef shard_of_a_dimension_before_the_first  // says: cleave: a placement names a dimension that the tensor does not have
constexpr Layout before = layout_of<Placements<Shard<-3>>, 2>;
#endif

#ifdef type_that_is_no_placement  // says: cleave: a placement is Shard<dim>, Balanced<dim>, BlockCyclic<dim, block>, Cuts<dim>, Owned<owner>, Replicate or Partial<Op>
constexpr Layout nonsense = layout_of<Placements<Replicate, int>, 2>;
#endif

#ifdef more_axes_than_a_mesh_can_have  // says: cleave: a mesh has at most 8 axes
using R = Replicate;
constexpr Layout nine = layout_of<Placements<R, R, R, R, R, R, R, R, R>, 2>;
#endif

#ifdef partial_of_bits  // says: cleave: a Partial is a sum, average, maximum, minimum or product; reductions of bits are functional::all_reduce(x, BitAnd{}, group) and the like
constexpr Layout bits = layout_of<Placements<Partial<BitOr>>, 1>;
#endif

#ifdef block_of_no_indices  // says: cleave: the block of BlockCyclic<dim, block> is at least 1
constexpr Layout no_block = layout_of<Placements<BlockCyclic<0, -1>>, 2>;
#endif

#ifdef owner_before_the_first_rank  // says: cleave: Owned<owner> names a rank of the axis, from 0 on
constexpr Layout no_owner = layout_of<Placements<Owned<-1>>, 2>;
#endif

#ifdef owned_without_a_dimension  // says: cleave: a placement names a dimension that the tensor does not have
constexpr Layout owned_scalar = layout_of<Placements<Owned<>>, 0>;
#endif
