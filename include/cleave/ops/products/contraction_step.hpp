// The products of two arrays that compute one of several: which arrays, how they are placed, what
// that costs.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <cleave/core/shape.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/redistribute/cost.hpp>
#include <cleave/rules/extents.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/rules/solver.hpp>

namespace cleave::inline v0 {

/// Requests that a product of arrays is split among ranks so that they receive the fewest bytes,
/// given the extents, instead of by the placements of the operands alone.
///
///     einsum("ik,kj->ij"_ein, fewest_bytes{.memory_limit = 1 << 30}, x, w)
struct fewest_bytes {
  /// The most bytes that a rank may hold for one product of two arrays: both as they are
  /// multiplied, and their product. Where they exceed it whole, they are multiplied in panels, the
  /// next of which arrive meanwhile.
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

}  // namespace cleave::inline v0
