// The solver: from a rule and the placements of the operands it finds which placement each operand
// requires and which one the result gets. Written once, for all operations.
//
// Every axis of the mesh is solved separately. The candidates of an axis are:
//
//   all operands replicated                      -> the result is replicated
//   a factor sharded wherever it appears,
//   the other operands replicated                -> the result is sharded, or partial if it lacks
//                                                   the factor; as the first operand that the axis
//                                                   shards along the factor is cut, or as requested
//   a factor sharded, of which the result reads
//   more than the rank's own part                -> the result is sharded along its reader
//   a row of the rule's partials                 -> the result is partial
//
// One candidate places all results; a requested placement is that of the first result.
//
// Possible candidates are compared by these criteria, in order:
//
//   1. no operand communicates (a slice of a replicated operand does not);
//   2. the least communication: fewest all-reduces, then all-gathers and reduce-scatters, which
//      send as much of an array, then all-to-alls, then all-gathers, then operands of which
//      neighbours' elements are read, then slices. This includes the move to the requested
//      placement of the result, and an all-reduce for each partial result of a candidate whose
//      operands communicate;
//   3. the cheapest move to the requested placement; then the cheapest move of the first operand,
//      of the second, ..; then the order above, with factors in the order of their letters.
//
// No operand is made partial: a partial operand is used as it is, or reduced. The first factor of a
// group is sharded only if an operand is already sharded along it and the result may stay so: only
// extents tell whether its shards end where those of the group do. The choice depends on types
// alone, and is the same on all ranks and in every run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <cleave/core/config.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/rules/sharding_rule.hpp>

namespace cleave::inline v0 {

/// The moves between two placements on an axis, the cheapest first: their order is their cost.
enum class Move : std::uint8_t {
  none,
  slice,
  read,  ///< ranks receive elements beyond their own part, which stays
  all_to_all,
  reduce_scatter,
  all_gather,
  all_reduce,
  impossible,  ///< to a partial
};

constexpr Move move_between(const Placement& from, const Placement& to) {
  if (from == to) return Move::none;
  if (to.is_partial()) return Move::impossible;
  if (from.is_replicate()) return Move::slice;
  if (from.is_partial()) return to.shards() ? Move::reduce_scatter : Move::all_reduce;
  return to.shards() ? Move::all_to_all : Move::all_gather;
}

constexpr bool communicates(Move move) { return move > Move::slice; }

/// The number of moves of each kind, compared from the most expensive kind down. An all-gather and
/// a reduce-scatter send as much of an array as each other, and more than an all-to-all.
class MoveCount {
 public:
  constexpr void add(Move move) {
    if (move != Move::none && move != Move::impossible) packed_ += unit(move);
  }
  constexpr void add(const MoveCount& other) { packed_ += other.packed_; }
  constexpr int count(Move move) const {
    return move == Move::none ? 0 : int(packed_ / unit(move) % 256);
  }

  friend constexpr bool operator==(const MoveCount&, const MoveCount&) = default;
  friend constexpr bool operator<(const MoveCount& a, const MoveCount& b) {
    const auto order = [](const MoveCount& moves) {
      return std::array<int, 6>{moves.count(Move::all_reduce),
                                moves.count(Move::all_gather) + moves.count(Move::reduce_scatter),
                                moves.count(Move::all_to_all),
                                moves.count(Move::all_gather),
                                moves.count(Move::read),
                                moves.count(Move::slice)};
    };
    return order(a) < order(b);
  }

 private:
  static constexpr std::uint64_t unit(Move move) { return 1ull << 8 * (int(move) - 1); }
  std::uint64_t packed_ = 0;  ///< eight bits per kind
};

using OperandLayouts = std::array<Layout, max_operands>;
using ResultLayouts = std::array<Layout, max_results>;

/// The placements of one call of an operation, as the solver finds them.
struct Solution {
  OperandLayouts required{};  ///< of each operand, before the op runs
  ResultLayouts computed{};   ///< of the results as the op computes them
  ResultLayouts result{};     ///< of the results as requested
  MoveCount cost{};           ///< of operands and result, all axes
};

namespace detail {

/// One way to run an op on one axis.
struct Candidate {
  bool possible = false;
  bool reads = false;  ///< more of the sharded operands than their own parts
  std::array<Placement, max_operands> required{};
  std::array<Placement, max_results> computed{};
};

/// The number of candidates of an axis.
constexpr int candidate_count(const Rule& rule) { return 1 + rule.factors + rule.rows; }

/// How an axis shards factor f: as the first operand that it shards along f, else as the requested
/// result; by chunks if none does, or if the operation needs ranges and they do not give any.
constexpr Placement cut_of(const Rule& rule, int f, const OperandLayouts& operands, int axis,
                           const Placement* asked) {
  const bool chunks = (rule.kept >> f & 1u) || rule.reader[std::size_t(f)] >= 0;
  const auto allowed = [&](const Placement& p) {
    return !p.is_other_cut() || (!chunks && (p.is_box() || !rule.needs_box));
  };
  const auto is_along = [&](const Placement& p, const Rule::Operand& of) {
    return of.factor[std::size_t(p.dim)] == f;
  };
  for (int i = 0; i < rule.operands; ++i) {
    const Placement& p = operands[std::size_t(i)][axis];
    if (p.shards() && is_along(p, rule.operand[std::size_t(i)]))
      return allowed(p) ? p : Placement::shard(0);
  }
  if (asked != nullptr && asked->shards() && is_along(*asked, rule.result[0]) && allowed(*asked))
    return *asked;
  return Placement::shard(0);
}

/// Candidate `index` of the rule: all replicated, then factors, then rows of partials.
///
/// @param asked  the requested placement of the first result, or null: a factor that only results
///               have is sharded only on request
constexpr Candidate candidate_at(const Rule& rule, int index, const OperandLayouts& operands,
                                 int axis, const Placement* asked) {
  Candidate c;
  if (index == 0) {
    c.possible = true;
    return c;
  }
  if (index <= rule.factors) {
    const int f = index - 1;
    if (rule.replicated >> f & 1u) return c;
    c.reads = rule.reader[std::size_t(f)] >= 0;
    const int g = c.reads ? rule.reader[std::size_t(f)] : f;
    const Placement cut = cut_of(rule, f, operands, axis, asked);
    bool appears = false;
    for (int i = 0; i < rule.operands; ++i) {
      int d = rule.operand[std::size_t(i)].dim_of(f);
      for (int e = 0; e < rule.factors && d < 0; ++e)  // another one that the same indices read
        if (c.reads && rule.reader[std::size_t(e)] == g) d = rule.operand[std::size_t(i)].dim_of(e);
      if (d < 0) continue;
      appears = true;
      c.required[std::size_t(i)] = cut.along(d);
    }
    for (int k = 0; k < rule.results; ++k) {
      const int d = rule.result[std::size_t(k)].dim_of(g);
      c.computed[std::size_t(k)] = d >= 0 ? cut.along(d) : Placement::partial(rule.reduction);
    }
    c.possible = appears || (asked != nullptr && *asked == c.computed[0]);
    return c;
  }
  const Rule::Row& row = rule.row[std::size_t(index - 1 - rule.factors)];
  for (int i = 0; i < rule.operands; ++i)
    if (const std::int8_t entry = row.operand[std::size_t(i)]; entry != Rule::replicate)
      c.required[std::size_t(i)] = Placement::partial(ReduceOp(entry));
  for (int k = 0; k < rule.results; ++k)
    c.computed[std::size_t(k)] = Placement::partial(ReduceOp(row.result[std::size_t(k)]));
  c.possible = true;
  return c;
}

/// Whether a candidate shards the first factor of a group only where an operand already does.
constexpr bool keeps_groups(const Rule& rule, int index, const Candidate& candidate,
                            const OperandLayouts& operands, int axis, const Placement* asked) {
  if (index == 0 || index > rule.factors || !(rule.kept >> (index - 1) & 1u)) return true;
  if (asked != nullptr && !(*asked == candidate.computed[0])) return false;
  for (int i = 0; i < rule.operands; ++i) {
    const Placement& required = candidate.required[std::size_t(i)];
    if (required.shards() && operands[std::size_t(i)][axis] == required) return true;
  }
  return false;
}

/// The cost of a candidate; members in the order of comparison.
struct CandidateCost {
  bool possible = false;
  bool operands_communicate = false;
  MoveCount moves{};
  Move result_move = Move::none;
  std::array<Move, max_operands> operand_move{};

  friend constexpr bool operator<(const CandidateCost& a, const CandidateCost& b) {
    if (!a.possible || !b.possible) return a.possible && !b.possible;
    if (a.operands_communicate != b.operands_communicate) return b.operands_communicate;
    if (!(a.moves == b.moves)) return a.moves < b.moves;
    if (a.result_move != b.result_move) return a.result_move < b.result_move;
    for (std::size_t i = 0; i < a.operand_move.size(); ++i)
      if (a.operand_move[i] != b.operand_move[i]) return a.operand_move[i] < b.operand_move[i];
    return false;
  }
};

constexpr CandidateCost cost_of(const Rule& rule, const Candidate& candidate,
                                const OperandLayouts& operands, int axis, const Placement* asked) {
  CandidateCost cost;
  if (!candidate.possible) return cost;
  for (int i = 0; i < rule.operands; ++i) {
    const Move move =
        move_between(operands[std::size_t(i)][axis], candidate.required[std::size_t(i)]);
    if (move == Move::impossible) return cost;
    const bool reads = candidate.reads && candidate.required[std::size_t(i)].shards();
    cost.operand_move[std::size_t(i)] = move;
    cost.operands_communicate = cost.operands_communicate || communicates(move) || reads;
    cost.moves.add(move);
    if (reads) cost.moves.add(Move::read);
  }
  if (asked != nullptr) {
    cost.result_move = move_between(candidate.computed[0], *asked);
    if (cost.result_move == Move::impossible) return cost;
    cost.moves.add(cost.result_move);
  }
  for (int k = asked != nullptr ? 1 : 0; k < rule.results; ++k)
    if (candidate.computed[std::size_t(k)].is_partial() && cost.operands_communicate)
      cost.moves.add(Move::all_reduce);
  cost.possible = true;
  return cost;
}

/// Solves one axis. @param reduce_all  no operand may stay partial
constexpr void solve_axis(const Rule& rule, const OperandLayouts& operands, int axis,
                          const Layout* asked, bool reduce_all, Solution& solution) {
  const Placement* wanted = asked == nullptr ? nullptr : &(*asked)[axis];
  Candidate best;
  CandidateCost best_cost;
  const int count = reduce_all ? candidate_count(rule) - rule.rows : candidate_count(rule);
  for (int index = 0; index < count; ++index) {
    const Candidate candidate = candidate_at(rule, index, operands, axis, wanted);
    if (!keeps_groups(rule, index, candidate, operands, axis, wanted)) continue;
    const CandidateCost cost = cost_of(rule, candidate, operands, axis, wanted);
    if (!(cost < best_cost)) continue;
    best = candidate;
    best_cost = cost;
  }
  for (int i = 0; i < rule.operands; ++i)
    solution.required[std::size_t(i)][axis] = best.required[std::size_t(i)];
  for (int k = 0; k < rule.results; ++k)
    solution.computed[std::size_t(k)][axis] = solution.result[std::size_t(k)][axis] =
        best.computed[std::size_t(k)];
  if (wanted != nullptr) solution.result[0][axis] = *wanted;
  solution.cost.add(best_cost.moves);
}

/// Whether reductions over two axes may be performed in either order.
constexpr bool commute(ReduceOp a, ReduceOp b) {
  const auto linear = [](ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::avg; };
  return a == b || (linear(a) && linear(b));
}

/// The axes whose partials must be reduced because those of an outer axis are: the reductions of
/// inner axes come first, unless they commute.
constexpr unsigned overtaken_axes(const Rule& rule, const OperandLayouts& operands,
                                  const Solution& solution) {
  unsigned axes = 0;
  for (int i = 0; i < rule.operands; ++i) {
    const Layout& from = operands[std::size_t(i)];
    const Layout& to = solution.required[std::size_t(i)];
    for (int a = 0; a < from.axes; ++a)
      for (int b = a + 1; b < from.axes; ++b)
        if (from[a].is_partial() && !to[a].is_partial() && to[b].is_partial() &&
            !commute(from[a].op, to[b].op))
          axes |= 1u << b;
  }
  return axes;
}

}  // namespace detail

/// Solves a call of an operation.
///
/// @param operands  placements of the operands on one mesh; a scalar is replicated
/// @param asked     the requested placements of the first result, without partials, or null
constexpr Solution solve(const Rule& rule, const OperandLayouts& operands,
                         const Layout* asked = nullptr) {
  unsigned reduced = 0;
  for (;;) {
    Solution solution;
    for (int k = 0; k < rule.results; ++k)
      solution.computed[std::size_t(k)].axes = solution.result[std::size_t(k)].axes =
          operands[0].axes;
    for (int i = 0; i < rule.operands; ++i)
      solution.required[std::size_t(i)].axes = operands[0].axes;
    for (int a = 0; a < operands[0].axes; ++a)
      detail::solve_axis(rule, operands, a, asked, reduced >> a & 1u, solution);
    const unsigned overtaken = detail::overtaken_axes(rule, operands, solution);
    if (overtaken == 0) return solution;
    reduced |= overtaken;
  }
}

/// The placements of a call whose tensors all have those of the first one, with Replicate in place
/// of Partial, and Shard in place of cuts that do not give boxes.
///
/// @param operands  tensors with dimensions, and numbers
constexpr Solution solve_like_first(const Rule& rule, const OperandLayouts& operands) {
  std::size_t first = 0;
  while (rule.operand[first].dims == 0) ++first;
  const Layout layout = operands[first].with_partials_as(Placement::replicate()).with_boxes();
  Solution solution;
  for (std::size_t i = 0; i < std::size_t(rule.operands); ++i)
    solution.required[i] = rule.operand[i].dims > 0 ? layout : operands[i];
  for (std::size_t k = 0; k < std::size_t(rule.results); ++k)
    solution.computed[k] = solution.result[k] = layout;
  return solution;
}

}  // namespace cleave::inline v0
