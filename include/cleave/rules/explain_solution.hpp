// Solutions as readable text: what an operation does with its operands.
#pragma once

#include <string>

#include <cleave/core/config.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/rules/extents.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/rules/solver.hpp>

namespace cleave::inline v0 {

/// "ik,kj->ij"
std::string to_string(const Rule& rule);

namespace detail {

/// "the extents of 'k' in ik,kj->ij differ: operand 1 has 2, preceding operands have 3"
std::string extents_error(const ExtentsConflict& conflict, const Rule& rule, index_t extent);

}  // namespace detail

/// One line per operand and one per result:
///
///     ik (Shard(0), Replicate)
///     kj (Replicate, Shard(0)) -> (Replicate, Shard(1))
///     ij = (Shard(0), Shard(1))
std::string explain(const Rule& rule, const OperandLayouts& operands, const Solution& solution);

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/rules/explain_solution_body.hpp>
#endif
