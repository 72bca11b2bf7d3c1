// Starts collectives early and waits for them late: rounds run while the rank computes what does
// not need their results.
//
// The pass plays the program with estimated times. It takes instructions in their order, but
// what only a collective needs comes first, and what needs the result of a round that is still
// running comes after everything that does not. A round starts as soon as its operands exist; if
// they are inputs, when its first user is less than twice its duration away: earlier starts would
// hide no more, and hold memory. Every rank makes the same choices, and starts and waits in the
// same order.
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
class StartEarly {
 public:
  static constexpr double start_us = 20;  ///< a rank's time for a start and a wait

  constexpr StartEarly(const Program& of, const Shape& mesh, const ProgramCosts& costs)
      : program_(with_rounds(of)), units_(program_) {
    find_times(mesh, costs);
    play();
    for (std::size_t u = 0; u < waits_.size(); ++u)  // of outputs
      if (began_us_[u] >= 0 && waits_[u] < 0) wait(int(u));
    drop_short();
    reorder(program_, units_.whole_order(order_));
    number_rounds();
    find_last_uses(program_);
  }

  constexpr Program take() { return static_cast<Program&&>(program_); }

 private:
  /// Without waits; every collective is in a round.
  static constexpr Program with_rounds(const Program& of) {
    Program program = of;
    std::erase_if(program.code,
                  [](const Instruction& i) { return i.kind == InstructionKind::wait; });
    int rounds = round_count(program);
    for (Instruction& i : program.code) {
      i.is_started = false;
      if (is_collective(i) && i.round < 0) i.round = rounds++;
    }
    return program;
  }

  constexpr void find_times(const Shape& mesh, const ProgramCosts& costs) {
    const auto count = std::size_t(units_.count());
    std::vector<double> before(count, 0);
    double sum = 0;
    for (std::size_t u = 0; u < count; ++u) {
      before[u] = sum;
      us_.push_back(time_of(int(u), mesh, costs));
      if (!units_.is_collective(int(u))) sum += us_[u];
    }
    needed_us_.assign(count, sum);
    for (std::size_t u = 0; u < count; ++u)
      for (const int user : units_.users(int(u)))
        needed_us_[u] = std::min(needed_us_[u], before[std::size_t(user)]);
    find_urgent();
    missing_ = units_.missing();
    done_us_.assign(count, 0);
    settled_us_.assign(count, 0);
    began_us_.assign(count, -1);
    waits_.assign(count, -1);
    hidden_us_.assign(count, 0);
  }

  /// Finds what only a collective needs, or a chain that leads to one, and what inputs are for.
  constexpr void find_urgent() {
    const auto count = std::size_t(units_.count());
    is_urgent_.assign(count, 0);
    is_of_inputs_.assign(count, 1);
    for (std::size_t u = count; u-- > 0;) {
      const auto users = units_.users(int(u));
      bool is_urgent = !units_.is_collective(int(u)) && !users.empty();
      for (const int user : users)
        is_urgent = is_urgent && (units_.is_collective(user) ||
                                  (users.size() == 1 && is_urgent_[std::size_t(user)]));
      is_urgent_[u] = char(is_urgent);
    }
    for (std::size_t u = 0; u < count; ++u)
      for (const int maker : units_.makers(int(u)))
        if (us_[std::size_t(maker)] > 0 || !is_of_inputs_[std::size_t(maker)]) is_of_inputs_[u] = 0;
  }

  /// The steps of a round share its latency.
  constexpr double time_of(int unit, const Shape& mesh, const ProgramCosts& costs) const {
    const auto members = units_.members(unit);
    double us = 0;
    for (const int i : members)
      us += estimated_us(program_, program_.code[std::size_t(i)], mesh, costs);
    if (!units_.is_collective(unit)) return us;
    const AxisMask axes = program_.code[std::size_t(members[0])].axes;
    return us -
           double(members.size() - 1) * cleave::estimated_us(axes, mesh, 0, costs.communication);
  }

  template <class Key>
  static constexpr void push(std::vector<Queued<Key>>& heap, Key key, int number) {
    heap.push_back({key, number});
    std::push_heap(heap.begin(), heap.end());
  }
  template <class Key>
  static constexpr int pop(std::vector<Queued<Key>>& heap) {
    std::pop_heap(heap.begin(), heap.end());
    const int number = heap.back().number;
    heap.pop_back();
    return number;
  }

  constexpr void play() {
    for (int u = 0; u < units_.count(); ++u)
      if (missing_[std::size_t(u)] == 0) arrive(u);
    for (int left = units_.count(); left > 0;) {
      while (!late_.empty() && late_.front().key <= now_us_) settle(pop(late_));
      const double next_us = ready_.empty() ? 0 : us_[std::size_t(ready_.front().number)];
      const bool is_due = !rounds_.empty() && rounds_.front().key <= computed_us_ + next_us;
      if (is_due || (!rounds_.empty() && ready_.empty() && late_.empty())) {
        start(pop(rounds_));
        --left;
      } else if (!ready_.empty()) {
        compute(pop(ready_));
        --left;
      } else {  // nothing to do until a round is complete
        const int unit = pop(late_);
        now_us_ = std::max(now_us_, done_us_[std::size_t(unit)]);
        settle(unit);
      }
    }
  }

  /// What a unit needs has been computed or started.
  constexpr void arrive(int unit) {
    if (const double us = settled_us_[std::size_t(unit)]; us > now_us_) push(late_, us, unit);
    else settle(unit);
  }
  constexpr void settle(int unit) {
    const auto u = std::size_t(unit);
    if (units_.is_collective(unit))
      push(rounds_, is_of_inputs_[u] ? needed_us_[u] - 2 * us_[u] : 0.0, unit);
    else
      push(ready_, units_.members(unit).back() - (is_urgent_[u] ? int(program_.code.size()) : 0),
           unit);
  }

  constexpr void start(int unit) {
    const auto u = std::size_t(unit);
    append(unit);
    began_us_[u] = computed_us_;
    const double begin = std::max(now_us_, link_us_);
    link_us_ = begin + us_[u];
    for (const int user : units_.users(unit)) {
      double &done = done_us_[std::size_t(user)], &settled = settled_us_[std::size_t(user)];
      done = std::max(done, link_us_);
      settled = std::max(settled, link_us_ + us_[u]);  // estimates may be wrong
    }
    finish(unit);
  }
  constexpr void compute(int unit) {
    append(unit);
    now_us_ += us_[std::size_t(unit)];
    computed_us_ += us_[std::size_t(unit)];
    finish(unit);
  }
  constexpr void finish(int unit) {
    for (const int user : units_.users(unit))
      if (--missing_[std::size_t(user)] == 0) arrive(user);
  }

  constexpr void append(int unit) {
    for (const int maker : units_.makers(unit))
      if (began_us_[std::size_t(maker)] >= 0 && waits_[std::size_t(maker)] < 0) wait(maker);
    for (const int i : units_.members(unit)) order_.push_back(i);
  }

  constexpr void wait(int unit) {
    const auto u = std::size_t(unit);
    waits_[u] = int(program_.code.size());
    hidden_us_[u] = computed_us_ - began_us_[u];
    const int round = program_.code[std::size_t(units_.members(unit)[0])].round;
    order_.push_back(waits_[u]);
    Instruction& made = program_.code.emplace_back();
    made.kind = InstructionKind::wait;
    made.name = "wait";
    made.round = round;
    made.results = 0;
  }

  /// Rounds that would hide less than it costs to start them run at once.
  constexpr void drop_short() {
    std::vector<char> is_dropped(program_.code.size(), 0);
    for (int unit = 0; unit < units_.count(); ++unit) {
      const auto u = std::size_t(unit);
      if (waits_[u] < 0) continue;
      const bool starts = std::min(hidden_us_[u], us_[u]) >= start_us;
      for (const int i : units_.members(unit)) program_.code[std::size_t(i)].is_started = starts;
      if (!starts) is_dropped[std::size_t(waits_[u])] = 1;
    }
    std::erase_if(order_, [&](int i) { return is_dropped[std::size_t(i)] != 0; });
  }

  /// Numbers rounds in their order; a step that runs alone, at once, is in none.
  constexpr void number_rounds() {
    std::vector<int> members(std::size_t(round_count(program_)), 0);
    std::vector<int> renamed(members.size(), -1);
    for (const Instruction& i : program_.code)
      if (i.round >= 0 && (i.kind == InstructionKind::step)) ++members[std::size_t(i.round)];
    int rounds = 0;
    for (Instruction& i : program_.code) {
      if (i.round < 0) continue;
      int& round = renamed[std::size_t(i.round)];
      const bool is_round = members[std::size_t(i.round)] > 1 || i.is_started || round >= 0;
      if (is_round && round < 0) round = rounds++;
      i.round = round;
    }
  }

  Program program_;
  Units units_;
  std::vector<double> us_{};         ///< by unit: how long it takes
  std::vector<double> needed_us_{};  ///< by unit: computed before its first user, in the old order
  std::vector<char> is_urgent_{};    ///< by unit: whether it is computed for one collective
  std::vector<char>
      is_of_inputs_{};             ///< by unit: whether inputs, or views of them, are its operands
  std::vector<int> missing_{};     ///< by unit: operands that are neither computed nor started
  std::vector<double> done_us_{};  ///< by unit: when the rounds that it needs are complete
  std::vector<double> settled_us_{};    ///< by unit: when they are, even if they take twice as long
  std::vector<double> began_us_{};      ///< by unit: computed before its start; -1: not started
  std::vector<int> waits_{};            ///< by unit: the wait for it, or -1
  std::vector<double> hidden_us_{};     ///< by unit: computed between its start and its wait
  std::vector<Queued<int>> ready_{};    ///< computations, in their old order
  std::vector<Queued<double>> late_{};  ///< units that need results of rounds
  std::vector<Queued<double>> rounds_{};  ///< by when they must start
  std::vector<int> order_{};
  double now_us_ = 0, computed_us_ = 0, link_us_ = 0;
};

}  // namespace detail

/// Reorders a program of steps so that rounds run while the rank computes. Values and bytes stay.
/// Rounds that would hide nothing run at once.
///
/// @param mesh  extents of the axes
/// @cost        instructions times their logarithm
constexpr Program start_early(const Program& program, const Shape& mesh,
                              const ProgramCosts& costs = {}) {
  return detail::StartEarly(program, mesh, costs).take();
}

}  // namespace cleave::inline v0::spmd
