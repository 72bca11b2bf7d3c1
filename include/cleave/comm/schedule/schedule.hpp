// How a collective is carried out, as a value: the steps of one rank, in order. A schedule is made
// without communication: select.hpp chooses it, run_schedule.hpp runs it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/pieces.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// The ranks that take part in a step.
enum class RankLevel : std::uint8_t {
  group,   ///< all ranks of the collective
  node,    ///< those on this rank's node
  column,  ///< those with this rank's position on every node
};

enum class StepAction : std::uint8_t {
  copy,      ///< elements in this rank's memory
  reduce,    ///< likewise, in the order of the operands
  direct,    ///< ranks of one node read each other's memory
  library,   ///< a collective of the MPI library
  messages,  ///< MPI_Isend and MPI_Irecv
};

/// One step: of communication, with calls, or in this rank's own memory.
struct ScheduleStep {
  StepAction action{};
  RankLevel level = RankLevel::group;
  std::span<const Collective> calls{};  ///< one; `direct` may run several together
  std::vector<ConstView> operands{};    ///< of a reduction; of a copy: the source
  View result{};                        ///< of a copy or a reduction
  ReduceOp op{};

  static ScheduleStep copy(const ConstView& from, const View& to) {
    return {.action = StepAction::copy, .operands = {from}, .result = to};
  }
  static ScheduleStep reduction(ReduceOp op, std::vector<ConstView> operands, const View& result) {
    return {
        .action = StepAction::reduce, .operands = std::move(operands), .result = result, .op = op};
  }
};

/// The steps, and what they refer to: scratch memory, lists of boxes and calls.
class Schedule {
 public:
  /// @param allocates  false: scratch is null; for schedules that are only printed
  explicit Schedule(bool allocates = true) : allocates_(allocates) {}
  Schedule(Schedule&&) = default;  // steps refer to members
  Schedule& operator=(Schedule&&) = default;

  std::span<const ScheduleStep> steps() const noexcept { return steps_; }
  index_t scratch_bytes() const noexcept { return scratch_bytes_; }

  /// Flat memory that lives as long as the schedule.
  View scratch(DType type, index_t count) {
    const Shape extents = Shape::filled(1, count);
    const auto bytes = std::size_t(count) * size_of(type);
    scratch_bytes_ += index_t(bytes);
    if (!allocates_ || bytes == 0) return View::dense(nullptr, type, extents);
    return View::dense(scratch_.emplace_back(allocate_bytes(Host{}, bytes)).get(), type, extents);
  }

  /// Lists that live as long as the schedule.
  std::span<const Box> keep(std::vector<Box> boxes) {
    return boxes_.emplace_back(std::move(boxes));
  }
  std::span<const Transfer> keep(std::vector<Transfer> transfers) {
    return transfers_.emplace_back(std::move(transfers));
  }
  std::span<const Collective> keep(std::vector<Collective> calls) {
    return calls_.emplace_back(std::move(calls));
  }

  void copy(const ConstView& from, const View& to) {
    if (to.size() > 0) steps_.push_back(ScheduleStep::copy(from, to));
  }
  void reduce(ReduceOp op, std::vector<ConstView> operands, const View& result) {
    if (result.size() > 0)
      steps_.push_back(ScheduleStep::reduction(op, std::move(operands), result));
  }
  void call(StepAction action, RankLevel level, const Collective& c) {
    calls(action, level, keep({c}));
  }
  /// @param of  must outlive the schedule, e.g. as what `keep` returns
  void calls(StepAction action, RankLevel level, std::span<const Collective> of) {
    ScheduleStep& step = steps_.emplace_back();
    step.action = action;
    step.level = level;
    step.calls = of;
  }
  void direct(RankLevel level, std::vector<Collective> calls_of_step) {
    calls(StepAction::direct, level, keep(std::move(calls_of_step)));
  }

 private:
  bool allocates_;
  std::vector<ScheduleStep> steps_{};
  std::vector<std::shared_ptr<void>> scratch_{};
  index_t scratch_bytes_ = 0;
  std::vector<std::vector<Box>> boxes_{};
  std::vector<std::vector<Transfer>> transfers_{};
  std::vector<std::vector<Collective>> calls_{};
};

/// The steps of communication: "direct reduce_scatter on the node, library all_reduce in the
/// column"; those of several rounds once, with their number: ".. (8 times)".
inline std::string to_string(const Schedule& schedule) {
  static constexpr const char* actions[] = {"", "", "direct", "library", "messages"};
  static constexpr const char* levels[] = {"", " on the node", " in the column"};
  std::vector<std::pair<std::string, int>> lines;
  for (const ScheduleStep& step : schedule.steps()) {
    if (step.calls.empty()) continue;
    std::string line = std::string(actions[std::size_t(step.action)]) + " " +
                       name_of(step.calls[0].kind) + levels[std::size_t(step.level)];
    std::size_t i = 0;
    while (i < lines.size() && lines[i].first != line) ++i;
    if (i == lines.size()) lines.emplace_back(std::move(line), 0);
    ++lines[i].second;
  }
  std::string text;
  for (const auto& [line, count] : lines)
    text += (text.empty() ? "" : ", ") + line +
            (count > 1 ? " (" + std::to_string(count) + " times)" : "");
  return text;
}

}  // namespace cleave::inline v0::detail
