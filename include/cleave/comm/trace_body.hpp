// What traces record, and how they are printed.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/trace.hpp>

namespace cleave {

CLEAVE_INLINE CommTrace::~CommTrace() {
  const std::lock_guard lock(*state_->observing);
  std::vector<Observer*>& observers = state_->observers;
  for (std::size_t i = observers.size(); i-- > 0;)
    if (observers[i] == this) observers.erase(observers.begin() + std::ptrdiff_t(i));
}

CLEAVE_INLINE void CommTrace::observe(const Collective& collective, const Communicator& group) {
  CommEvent event;
  event.kind = collective.kind;
  event.group = collective.axes[0] != '\0' ? collective.axes : group.label();
  event.group_size = group.size();
  event.dtype = collective.dtype();
  event.elements = received_elements(collective, group.rank(), group.size());
  event.bytes = event.elements * index_t(size_of(event.dtype));
  event.operation =
      collective.operation[0] != '\0' ? collective.operation : name_of(collective.kind);
  events_.push_back(std::move(event));
}

CLEAVE_INLINE CommTrace::CommTrace(std::shared_ptr<RankState> state) : state_(std::move(state)) {
  const std::lock_guard lock(*state_->observing);
  state_->observers.push_back(this);
}

namespace detail {

/// Columns of text; the first row is the heading. Those in `numbers` are aligned to the right.
template <std::same_as<std::string> Text>
Text table(const std::vector<std::vector<Text>>& rows, const std::vector<bool>& numbers) {
  std::vector<std::size_t> widths(numbers.size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      if (row[i].size() > widths[i]) widths[i] = row[i].size();
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (numbers[i] ? gap + row[i] : row[i] + gap);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

}  // namespace detail

template <std::same_as<CommEvent> Event>
std::string CommTrace::to_string() const {
  struct Line {
    const Event* event;
    index_t calls, bytes;
  };
  std::vector<Line> lines;
  for (const Event& event : events_) {
    std::size_t i = 0;
    const auto same = [&](const Event& other) {
      return other.kind == event.kind && other.group == event.group &&
             other.group_size == event.group_size && other.dtype == event.dtype &&
             other.operation == event.operation;
    };
    while (i < lines.size() && !same(*lines[i].event)) ++i;
    if (i == lines.size()) lines.push_back({&event, 0, 0});
    ++lines[i].calls;
    lines[i].bytes += event.bytes;
  }
  std::vector<std::vector<std::string>> rows{
      {"calls", "collective", "group", "ranks", "dtype", "received bytes", "in"}};
  for (const Line& line : lines)
    rows.push_back({std::to_string(line.calls), name_of(line.event->kind), line.event->group,
                    std::to_string(line.event->group_size), name_of(line.event->dtype),
                    std::to_string(line.bytes), line.event->operation});
  return detail::table(rows, {true, false, false, true, false, true, false});
}

}  // namespace cleave
