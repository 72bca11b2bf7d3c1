// What passes that reorder a program arrange: its instructions between inputs and writes, the steps
// of a round together, and which of these units need results of which.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <cleave/redistribute/plan.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd::detail {

constexpr bool is_collective(const Instruction& i) {
  return i.kind == InstructionKind::step && communicates(i.step);
}

/// Lists of numbers, one after the other.
struct NumberLists {
  std::vector<int> begin{}, number{};

  /// @param owner  calls f(list, number) for every number, in the same order whenever it is called
  template <class Each>
  constexpr void fill(int lists, const Each& each) {
    begin.assign(std::size_t(lists) + 1, 0);
    each([&](int list, int) { ++begin[std::size_t(list) + 1]; });
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    number.assign(std::size_t(begin.back()), 0);
    std::vector<int> next = begin;
    each([&](int list, int value) { number[std::size_t(next[std::size_t(list)]++)] = value; });
  }
  constexpr std::span<const int> operator[](int list) const {
    const auto first = std::size_t(begin[std::size_t(list)]);
    return {number.data() + first, std::size_t(begin[std::size_t(list) + 1]) - first};
  }
};

/// The units of a program without waits, numbered by their first instruction.
class Units {
 public:
  constexpr explicit Units(const Program& of) : of_(&of), unit_(of.code.size(), -1) {
    std::vector<int> of_round(std::size_t(round_count(of)), -1);
    for (std::size_t i = 0; i < of.code.size(); ++i) {
      const Instruction& code = of.code[i];
      if (code.kind == InstructionKind::input || code.kind == InstructionKind::constant ||
          code.kind == InstructionKind::write)
        continue;
      int* const known = code.round >= 0 ? &of_round[std::size_t(code.round)] : nullptr;
      unit_[i] = known != nullptr && *known >= 0 ? *known : count_++;
      if (known != nullptr) *known = unit_[i];
    }
    members_.fill(count_, [&](const auto& add) {
      for (std::size_t i = 0; i < unit_.size(); ++i)
        if (unit_[i] >= 0) add(unit_[i], int(i));
    });
    std::vector<int> maker(of.values.size(), -1);
    for (std::size_t i = 0; i < of.code.size(); ++i)
      for (int k = 0; k < of.code[i].results; ++k)
        maker[std::size_t(of.code[i].first + k)] = unit_[i];
    missing_.assign(std::size_t(count_), 0);
    const auto each_need = [&](const auto& add) {
      for (std::size_t i = 0; i < unit_.size(); ++i)
        for (int k = 0; unit_[i] >= 0 && k < of.code[i].operands; ++k)
          if (const int from = maker[std::size_t(of.code[i].operand[std::size_t(k)])]; from >= 0)
            add(from, unit_[i]);
    };
    users_.fill(count_, each_need);
    makers_.fill(count_,
                 [&](const auto& add) { each_need([&](int from, int user) { add(user, from); }); });
    for (int u = 0; u < count_; ++u) missing_[std::size_t(u)] = int(makers_[u].size());
  }

  constexpr int count() const { return count_; }
  /// Its instructions, in their order.
  constexpr std::span<const int> members(int unit) const { return members_[unit]; }
  /// The units that read its results, and those whose results it reads; once per operand.
  constexpr std::span<const int> users(int unit) const { return users_[unit]; }
  constexpr std::span<const int> makers(int unit) const { return makers_[unit]; }
  /// The number of `makers`, by unit.
  constexpr const std::vector<int>& missing() const { return missing_; }
  constexpr bool is_collective(int unit) const {
    return detail::is_collective(of_->code[std::size_t(members(unit)[0])]);
  }

  /// The order of instructions that begins with inputs and constants and ends with writes.
  /// @param between  the instructions of the units
  constexpr std::vector<int> whole_order(std::span<const int> between) const {
    std::vector<int> order;
    const auto append = [&](bool writes) {
      for (std::size_t i = 0; i < unit_.size(); ++i)
        if (unit_[i] < 0 && (of_->code[i].kind == InstructionKind::write) == writes)
          order.push_back(int(i));
    };
    append(false);
    order.insert(order.end(), between.begin(), between.end());
    append(true);
    return order;
  }

 private:
  const Program* of_;
  std::vector<int> unit_;  ///< of each instruction, or -1
  int count_ = 0;
  NumberLists members_{}, users_{}, makers_{};
  std::vector<int> missing_{};
};

/// A number with a key, the smallest key first; equal ones by number.
template <class Key>
struct Queued {
  Key key{};
  int number = 0;

  constexpr bool operator<(const Queued& other) const {  // for heaps, whose greatest is first
    return key != other.key ? key > other.key : number > other.number;
  }
};

}  // namespace cleave::inline v0::spmd::detail
