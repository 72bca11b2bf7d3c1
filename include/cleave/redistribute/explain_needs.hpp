// explain: what ranks receive to read boxes of an operand, without running it.
#pragma once

#include <string>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/redistribute/needs.hpp>
#include <cleave/redistribute/plan_cache.hpp>

namespace cleave::inline v0 {

/// An exchange of boxes with its sizes: a value to print, count or compare.
struct ExplainedNeeds {
  redistribution::Needs needs{};
  std::string mesh{};
  std::string axes{};       ///< "dp.tp"; empty: nothing is communicated
  index_t group_size = 1;   ///< ranks of each group that communicates
  index_t bytes = 0;        ///< the most that a rank receives
  index_t own_bytes = 0;    ///< the most that a rank copies from its own part
  int messages = 0;         ///< the most that a rank receives
  double microseconds = 0;  ///< estimated

  /// Several lines of readable text.
  std::string text() const;
};

/// What the ranks of a mesh receive to read the boxes that they need.
///
/// @collective none
/// @cost       proportional to the number of ranks
CLEAVE_INLINE ExplainedNeeds explain(const redistribution::Needs& needs, const MeshState& mesh,
                                     DType dtype, const CostModel& machine);

/// The same for the machine that the program runs on. @see cost_model
inline ExplainedNeeds explain(const redistribution::Needs& needs, const MeshState& mesh,
                              DType dtype) {
  return explain(needs, mesh, dtype, cost_model(*mesh.world()));
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/redistribute/explain_needs_body.hpp>
#endif
