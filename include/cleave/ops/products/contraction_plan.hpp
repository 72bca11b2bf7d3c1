// The order in which several arrays are multiplied, and how the mesh shards each product, chosen by
// the bytes that a rank receives.
//
// The types of a call fix the placements of its operands and of its result. Everything between is
// a value: this plan. It depends on layouts, extents, mesh and cost model alone, which all ranks
// share, so all ranks make the same one without communication.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/redistribute/cost.hpp>
#include <cleave/rules/extents.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/rules/solver.hpp>

namespace cleave {

/// Requests that a product of arrays is split among ranks so that they receive the fewest bytes,
/// given the extents, instead of by the placements of the operands alone.
///
///     einsum("ik,kj->ij"_ein, fewest_bytes{.memory_limit = 1 << 30}, x, w)
struct fewest_bytes {
  /// The most bytes that a rank may hold for one product of two arrays: both as they are
  /// multiplied, and their product. Where they exceed it whole, they are multiplied in panels.
  index_t memory_limit = std::numeric_limits<index_t>::max();
};

/// One product of two arrays.
struct ContractionStep {
  /// Which arrays: below the number of operands, an operand; the results of steps are numbered
  /// after them.
  std::array<int, 2> array{};
  std::string factors{};         ///< "ab,bc->ac"
  std::array<Layout, 2> from{};  ///< as the arrays are
  std::array<Layout, 2> to{};    ///< as they are multiplied
  Layout result{};               ///< as the product is computed
  Shape shape{};                 ///< of the product, global
  index_t bytes = 0;             ///< the most that a rank receives for both arrays
  index_t multiplications = 0;   ///< the most of a rank
  index_t memory = 0;            ///< the most bytes that a rank holds. @see fewest_bytes
  /// How many of a rank's indices of `letter` are exchanged and multiplied at a time; 0: all.
  index_t panel = 0;
  char letter = ' ';
};

/// All products of a call, in order. The last result is that of the call.
struct ContractionPlan {
  std::vector<ContractionStep> steps{};
  Layout result{};              ///< requested
  index_t result_bytes = 0;     ///< the most that a rank receives to place the result
  index_t bytes = 0;            ///< the sum over all steps, and the result
  index_t multiplications = 0;  ///< the sum over all steps
  index_t memory = 0;           ///< the largest of all steps

  /// A line per product, and one for the result:
  ///
  ///     bc (Shard(1)) -> (Replicate) * cd (Replicate) = bd (Replicate): 48 bytes received, ..
  std::string text() const;
};

/// What a plan depends on.
struct ContractionCall {
  const Rule* rule = nullptr;  ///< each factor is in at least two of the operands and the result
  OperandLayouts operands{};
  Layout result{};                  ///< the placements that the result gets
  detail::FactorExtents extents{};  ///< of every factor
  Shape mesh{};                     ///< extents of its axes
  CostModel model{};                ///< by which redistributions are planned when the call runs
  std::size_t element_size = 0;
  index_t memory_limit = std::numeric_limits<index_t>::max();
};

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
/// de Geijn and J. Watts, Concurrency 9(4), 1997). It receives as many bytes as in one piece. Sums
/// over panels need memory for a second product, and are not made of 16-bit elements, which would
/// be rounded once per panel. Partial arrays, and blocks that are dealt cyclically, are not
/// exchanged in panels.
///
/// @cost   grows with 3 ^ operands and (3 + factors) ^ axes: some milliseconds for three matrices
///         on two axes; keep the plan
/// @throws Error if all plans exceed the memory limit, or have arrays of more than 8 dimensions
ContractionPlan plan_contractions(const ContractionCall& call, const ErrorContext& context);

}  // namespace cleave

#if !CLEAVE_COMPILED
#include <cleave/ops/products/contraction_plan_body.hpp>
#endif
