// Redistributes every value as cheaply as its users allow: a value that is needed under several
// placements is moved from the cheapest of those that exist, and not through placements that nobody
// needs.
//
//   P -> R -> S(d)           becomes  P -> S(d), a reduce-scatter in place of an all-reduce
//   S(0) -> R, S(0) -> S(1)  becomes  S(0) -> R, R -> S(1): a slice
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <cleave/redistribute/cost.hpp>
#include <cleave/spmd/expand_updates.hpp>
#include <cleave/spmd/passes/relocate.hpp>
#include <cleave/spmd/passes/remove_unused.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// The pass over a program.
class MoveSharing {
 public:
  constexpr MoveSharing(Program& of, const Shape& mesh, const CostModel& model)
      : program_(of), mesh_(mesh), model_(model) {
    find_versions();
    for (const std::vector<int>& moves : moves_)
      if (moves.size() > 1) improve(moves);
  }

 private:
  /// Lists, for each value that is no version of another one, the moves that lead away from it.
  constexpr void find_versions() {
    const std::vector<int> writes = writes_of(program_);
    std::vector<int> list(program_.values.size(), -1);
    root_.assign(program_.values.size(), -1);
    is_needed_.assign(program_.values.size(), 0);
    for (std::size_t v = 0; v < root_.size(); ++v) root_[v] = int(v);
    for (std::size_t n = 0; n < program_.code.size(); ++n) {
      const Instruction& i = program_.code[n];
      const bool moves = i.kind == InstructionKind::move && is_free(i, writes);
      for (int k = 0; k < i.operands && !moves; ++k)
        is_needed_[std::size_t(i.operand[std::size_t(k)])] = 1;
      if (!moves) continue;
      const int root = root_[std::size_t(i.first)] = root_[std::size_t(i.operand[0])];
      int& known = list[std::size_t(root)];
      if (known < 0) known = int(moves_.size()), moves_.emplace_back();
      moves_[std::size_t(known)].push_back(int(n));
    }
    for (const Output& output : program_.outputs) is_needed_[std::size_t(output.value)] = 1;
  }

  /// Whether the source of a move may change. A copy is for its source; a Partial is not made of
  /// another one; and what may share elements with an input that is written stays.
  constexpr bool is_free(const Instruction& move, const std::vector<int>& writes) const {
    const PlacedValue& from = program_.values[std::size_t(move.operand[0])];
    const PlacedValue& to = program_.values[std::size_t(move.first)];
    return !to.layout.has_partial() && !(from.layout == to.layout) &&
           !shares_written(program_, move.operand[0], writes);
  }

  constexpr const PlacedValue& result(int move) const {
    return program_.values[std::size_t(program_.code[std::size_t(move)].first)];
  }
  constexpr Traffic between(int from, int move) const {
    const PlacedValue& value = program_.values[std::size_t(from)];
    return traffic_of(value, value.layout, result(move).layout, mesh_, model_);
  }

  /// The cheapest sources of some of the moves: the root, or a result before.
  struct Choice {
    std::vector<int> source{};  ///< per move: a value; -1: the move is not made
    Traffic traffic{};
  };
  constexpr Choice cheapest(const std::vector<int>& moves, bool needed_only) const {
    Choice choice;
    std::vector<int> known{root_[std::size_t(program_.code[std::size_t(moves[0])].first)]};
    for (const int move : moves) {
      const int made = program_.code[std::size_t(move)].first;
      choice.source.push_back(-1);
      if (needed_only && is_needed_[std::size_t(made)] == 0) continue;
      int& source = choice.source.back();
      Traffic least;
      for (const int from : known)
        if (const Traffic traffic = between(from, move); source < 0 || traffic < least)
          source = from, least = traffic;
      choice.traffic += least;
      known.push_back(made);
    }
    return choice;
  }

  constexpr void improve(const std::vector<int>& moves) {
    Traffic now;
    for (const int move : moves) now += between(program_.code[std::size_t(move)].operand[0], move);
    for (const bool needed_only : {false, true}) {
      const Choice choice = cheapest(moves, needed_only);
      if (!(choice.traffic < now)) continue;
      now = choice.traffic;
      for (std::size_t k = 0; k < moves.size(); ++k)
        if (choice.source[k] >= 0)
          program_.code[std::size_t(moves[k])].operand[0] = choice.source[k];
    }
  }

  Program& program_;
  const Shape& mesh_;
  const CostModel& model_;
  std::vector<int> root_{};                ///< per value
  std::vector<char> is_needed_{};          ///< per value: by more than moves
  std::vector<std::vector<int>> moves_{};  ///< of one root each, in order
};

}  // namespace detail

/// Chooses the source of every move. Never more bytes; sums stay the same, as far as a
/// reduce-scatter adds in the order of an all-reduce.
///
/// @param mesh  extents of the axes
/// @cost        the square of the moves of one value
constexpr void share_moves(Program& program, const Shape& mesh, const CostModel& model = {}) {
  const detail::MoveSharing pass(program, mesh, model);
  remove_unused(program);
  find_last_uses(program);
}

}  // namespace cleave::inline v0::spmd
