// The order in which several arrays are multiplied, and how the mesh shards each product, chosen by
// the bytes that a rank receives.
//
// The types of a call fix the placements of its operands and of its result. Everything between is
// a value: this plan. It depends on layouts, extents, mesh and cost model alone, which all ranks
// share, so all ranks make the same one without communication.
#pragma once

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/ops/products/contraction_step.hpp>

namespace cleave::inline v0 {

/// The plan by which a rank receives the fewest bytes; of those the one with the fewest
/// multiplications, then the fewest communications.
///
/// On every axis of the mesh, a product may shard any of its factors, keep a sum or average of one
/// of its arrays, or be computed on all ranks. All orders of products and all these choices are
/// compared: the search keeps, for every set of operands, the best way to each layout of their
/// product (over sets, as in R. N. C. Pfeifer, J. Haegeman and F. Verstraete, Phys. Rev. E 90,
/// 033315, 2014). Where there are more than 1000 choices per product, an axis shards only factors
/// that an operand or the result shards on it.
///
/// A product that exceeds the memory limit is computed in panels, as few as the limit permits: of
/// the indices of a factor that a rank multiplies, some at a time are exchanged (SUMMA: R. A. van
/// de Geijn and J. Watts, Concurrency 9(4), 1997), the next ones while a rank multiplies. It
/// receives as many bytes as in one piece. Sums over panels are not made of 16-bit elements, which
/// would be rounded once per panel. Partial arrays, and blocks that are dealt cyclically, are not
/// exchanged in panels.
///
/// @cost   grows with 3 ^ operands and (3 + factors) ^ axes: some milliseconds for three matrices
///         on two axes; keep the plan
/// @throws Error if all plans exceed the memory limit, or have arrays of more than 8 dimensions
ContractionPlan plan_contractions(const ContractionCall& call, const ErrorContext& context);

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/ops/products/contraction_plan_body.hpp>
#endif
