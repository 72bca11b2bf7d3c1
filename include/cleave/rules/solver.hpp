// From a rule and the placements of the operands to what has to be done: which placement each
// operand needs, and which one the result gets. Written once, for all operations.
//
// Every axis of the mesh is solved on its own. The candidates of an axis are:
//
//   all operands replicated                      -> the result is replicated
//   a factor sharded wherever it appears,
//   the other operands replicated                -> the result is sharded, or partial if it lacks
//                                                   the factor
//   a row of the rule's partials                 -> the result is partial
//
// Several results are placed by one candidate; what is asked for is the first one's placement.
//
// The first of these that is possible wins:
//
//   1. no operand has to communicate (a slice of what is replicated does not);
//   2. the least communication: counted as all-reduces, then all-gathers, then reduce-scatters,
//      then all-to-alls, then slices. What is asked for as the result's placement counts too, and
//      a candidate that communicates and yet leaves a partial owes the all-reduce of it;
//   3. the result comes as it is asked for; then the first operand stays as it is, then the
//      second, ..; then the order above, factors in the order of their letters.
//
// A partial is never made of an operand: it is taken as it is, or reduced. The first factor of a
// group is split only where an operand is split so already and the result may stay so: whether its
// shards end where those of the group do is a question of extents. The choice depends on types
// alone, and is the same on all ranks and in every run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <cleave/core/config.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/rules/sharding_rule.hpp>

namespace cleave {

/// What an axis has to do for a new placement, the cheapest first.
enum class Move : std::uint8_t {
  none,
  slice,
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
  if (from.is_partial()) return to.is_shard() ? Move::reduce_scatter : Move::all_reduce;
  return to.is_shard() ? Move::all_to_all : Move::all_gather;
}

constexpr bool communicates(Move move) { return move > Move::slice; }

/// How many moves of each kind, compared from the most expensive kind down.
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
    return a.packed_ < b.packed_;
  }

 private:
  static constexpr std::uint64_t unit(Move move) { return 1ull << 8 * (int(move) - 1); }
  std::uint64_t packed_ = 0;  ///< eight bits per kind
};

using OperandLayouts = std::array<Layout, max_operands>;
using ResultLayouts = std::array<Layout, max_results>;

/// What the solver says about one call of an operation.
struct Solution {
  OperandLayouts required{};  ///< of each operand, before the op runs
  ResultLayouts computed{};   ///< of the results that the op then computes
  ResultLayouts result{};     ///< after what was asked for
  MoveCount cost{};           ///< of operands and result, all axes
};

namespace detail {

/// One way to run an op on one axis.
struct Candidate {
  bool possible = false;
  std::array<Placement, max_operands> required{};
  std::array<Placement, max_results> computed{};
};

/// How many candidates an axis has.
constexpr int candidate_count(const Rule& rule) { return 1 + rule.factors + rule.rows; }

/// Candidate `index` of the rule: all replicated, then factors, then rows of partials.
///
/// @param asked  the first result's placement that the caller wants, or null: a factor that only
///               results have is sharded on request only
constexpr Candidate candidate_at(const Rule& rule, int index, const Placement* asked) {
  Candidate c;
  if (index == 0) {
    c.possible = true;
    return c;
  }
  if (index <= rule.factors) {
    const int f = index - 1;
    if (rule.replicated >> f & 1u) return c;
    bool appears = false;
    for (int i = 0; i < rule.operands; ++i) {
      const int d = rule.operand[std::size_t(i)].dim_of(f);
      if (d < 0) continue;
      appears = true;
      c.required[std::size_t(i)] = Placement::shard(d);
    }
    for (int k = 0; k < rule.results; ++k) {
      const int d = rule.result[std::size_t(k)].dim_of(f);
      c.computed[std::size_t(k)] =
          d >= 0 ? Placement::shard(d) : Placement::partial(rule.reduction);
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

/// Whether a candidate leaves alone what is sharded for the sake of a group's first factor.
constexpr bool keeps_groups(const Rule& rule, int index, const Candidate& candidate,
                            const OperandLayouts& operands, int axis, const Placement* asked) {
  if (index == 0 || index > rule.factors || !(rule.kept >> (index - 1) & 1u)) return true;
  if (asked != nullptr && !(*asked == candidate.computed[0])) return false;
  for (int i = 0; i < rule.operands; ++i) {
    const Placement& required = candidate.required[std::size_t(i)];
    if (required.is_shard() && operands[std::size_t(i)][axis] == required) return true;
  }
  return false;
}

/// What a candidate costs, in the order in which costs are compared.
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
    cost.operand_move[std::size_t(i)] = move;
    cost.operands_communicate = cost.operands_communicate || communicates(move);
    cost.moves.add(move);
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
    const Candidate candidate = candidate_at(rule, index, wanted);
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

/// Whether reductions over two axes may be done in either order.
constexpr bool commute(ReduceOp a, ReduceOp b) {
  const auto linear = [](ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::avg; };
  return a == b || (linear(a) && linear(b));
}

/// The axes whose partials have to be reduced because an axis before them is: the reductions of
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
/// @param asked     the placements that the first result shall have, without partials, or null
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

}  // namespace cleave
