// Merges collectives: steps of one kind over the same axes that do not need each other's results
// become rounds, each of which sends a rank one message per peer where tensors are small.
//
// Steps may be merged if equally many collectives follow each of them at most (those that need its
// result, directly or not). Such steps do not depend on each other; and as that number decreases
// along every dependency, rounds cannot wait for each other in a circle, however many there are.
//
// How many rounds: merging saves the time that a call takes a rank; splitting lets the first of
// them run while the rank still computes the operands of the last. With n rounds that time is n c,
// and what nothing hides is the transfer of one of them, t / n: n = sqrt(t / c), and no more than
// can run, one after the other, within the computation between the first step and the last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <cleave/redistribute/cost.hpp>
#include <cleave/spmd/estimate.hpp>
#include <cleave/spmd/passes/reorder.hpp>
#include <cleave/spmd/passes/units.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// The pass over a program of steps.
class Coalescing {
 public:
  static constexpr double call_us = 5;  ///< the time of a rank that a call takes
  static constexpr index_t most_bytes = index_t(25) << 20;  ///< received in a round

  constexpr Coalescing(const Program& of, const Shape& mesh, const ProgramCosts& costs)
      : program_(of), mesh_(mesh), costs_(costs) {
    std::erase_if(program_.code,
                  [](const Instruction& i) { return i.kind == InstructionKind::wait; });
    for (Instruction& i : program_.code) i.round = -1, i.is_started = false;
    find_heights();
    find_times();
    merge();
    place();
  }

  constexpr Program take() { return static_cast<Program&&>(program_); }

 private:
  constexpr const Instruction& code(int i) const { return program_.code[std::size_t(i)]; }

  /// Finds, for every instruction, the most collectives that follow one another after it.
  constexpr void find_heights() {
    std::vector<int> of_value(program_.values.size(), 0);
    height_.assign(program_.code.size(), 0);
    for (std::size_t n = program_.code.size(); n-- > 0;) {
      const Instruction& i = program_.code[n];
      int height = 0;
      for (int k = 0; k < i.results; ++k)
        height = std::max(height, of_value[std::size_t(i.first + k)]);
      height_[n] = height;
      for (int k = 0; k < i.operands; ++k) {
        int& before = of_value[std::size_t(i.operand[std::size_t(k)])];
        before = std::max(before, height + (is_collective(i) ? 1 : 0));
      }
    }
  }

  /// Finds the time that a rank computes before each instruction.
  constexpr void find_times() {
    double us = 0;
    for (const Instruction& i : program_.code) {
      before_us_.push_back(us);
      if (i.kind == InstructionKind::compute) us += estimated_us(program_, i, mesh_, costs_);
    }
  }

  constexpr bool are_mergeable(int a, int b) const {
    const Instruction &x = code(a), &y = code(b);
    if (x.step != y.step || x.axes != y.axes || height_[std::size_t(a)] != height_[std::size_t(b)])
      return false;
    if (x.step != StepKind::all_reduce && x.step != StepKind::reduce_scatter) return true;
    return x.reduction == y.reduction && dtype_of_operand(a) == dtype_of_operand(b);
  }
  constexpr DType dtype_of_operand(int i) const {
    return program_.values[std::size_t(code(i).operand[0])].dtype;
  }

  constexpr index_t bytes(int i) const {
    const PlacedValue& x = program_.values[std::size_t(code(i).operand[0])];
    return redistribution::capped_product(
        redistribution::received_elements(step_of(program_, code(i)), x.shape, mesh_),
        index_t(size_of(x.dtype)));
  }

  constexpr void merge() {
    std::vector<std::vector<int>> sets;  // of mergeable steps, in their order
    for (int i = 0; i < int(program_.code.size()); ++i) {
      if (!is_collective(code(i))) continue;
      std::size_t s = 0;
      while (s < sets.size() && !are_mergeable(sets[s][0], i)) ++s;
      if (s == sets.size()) sets.emplace_back();
      sets[s].push_back(i);
    }
    for (const std::vector<int>& set : sets)
      if (set.size() > 1) cut(set);
  }

  /// Cuts a set into rounds of about equally many bytes.
  constexpr void cut(const std::vector<int>& set) {
    index_t all = 0;
    for (const int i : set) all = redistribution::capped_sum(all, bytes(i));
    const index_t rounds = rounds_of(set, all), most = (all + rounds - 1) / rounds;
    index_t sum = 0;
    int members = 0;
    for (const int i : set) {
      if (members == 0) ++rounds_, sum = 0;
      program_.code[std::size_t(i)].round = rounds_ - 1;
      sum = redistribution::capped_sum(sum, bytes(i));
      members = sum >= most && i != set.back() && all > 0 ? 0 : members + 1;
    }
  }

  constexpr index_t rounds_of(const std::vector<int>& set, index_t all) const {
    const AxisMask axes = code(set[0]).axes;
    const double latency_us = cleave::estimated_us(axes, mesh_, 0, costs_.communication);
    const double us =
        cleave::estimated_us(axes, mesh_, double(all), costs_.communication) - latency_us;
    const double hidden_us =
        before_us_[std::size_t(set.back())] - before_us_[std::size_t(set.front())] - us;
    index_t n = 1;
    const auto helps = [&](index_t rounds) {
      return double(rounds) * double(rounds) * call_us <= us &&
             double(rounds) * latency_us <= hidden_us;
    };
    while (n < index_t(set.size()) && helps(n + 1)) ++n;
    return std::min(std::max(n, all / most_bytes), index_t(set.size()));
  }

  /// Places the steps of each round behind what the last of them needs. Everything else stays in
  /// order, as far as rounds allow.
  constexpr void place() {
    const Units units(program_);
    std::vector<int> missing = units.missing(), order;
    std::vector<Queued<int>> ready;
    const auto push = [&](int unit) {
      ready.push_back({units.members(unit).back(), unit});
      std::push_heap(ready.begin(), ready.end());
    };
    for (int u = 0; u < units.count(); ++u)
      if (missing[std::size_t(u)] == 0) push(u);
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end());
      const int unit = ready.back().number;
      ready.pop_back();
      for (const int i : units.members(unit)) order.push_back(i);
      for (const int user : units.users(unit))
        if (--missing[std::size_t(user)] == 0) push(user);
    }
    reorder(program_, units.whole_order(order));
    find_last_uses(program_);
  }

  Program program_;
  const Shape& mesh_;
  const ProgramCosts& costs_;
  std::vector<int> height_{};        ///< by instruction
  std::vector<double> before_us_{};  ///< likewise
  int rounds_ = 0;
};

}  // namespace detail

/// Merges collectives of a program of steps into rounds. Values stay the same, as bytes do; an
/// all-reduce that is merged adds in the same order of ranks.
///
/// @param mesh  extents of the axes
/// @cost        instructions times kinds of collectives
constexpr Program coalesce(const Program& program, const Shape& mesh,
                           const ProgramCosts& costs = {}) {
  return detail::Coalescing(program, mesh, costs).take();
}

}  // namespace cleave::inline v0::spmd
