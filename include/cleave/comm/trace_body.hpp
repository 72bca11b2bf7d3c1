// What traces record, and how they are printed.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/comm_scope.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/core/json_string.hpp>

namespace cleave::inline v0 {

CLEAVE_INLINE CommTrace::~CommTrace() {
  const std::lock_guard lock(state_->observing->mutex);
  std::vector<Observer*>& observers = state_->observers;
  for (std::size_t i = observers.size(); i-- > 0;)
    if (observers[i] == this) observers.erase(observers.begin() + std::ptrdiff_t(i));
  state_->observing->count.store(observers.size(), std::memory_order_relaxed);
}

CLEAVE_INLINE void CommTrace::observe(const Collective& collective, const Communicator& group,
                                      bool joins) {
  CommEvent event;
  event.kind = collective.kind;
  event.group = collective.axes[0] != '\0' ? collective.axes : group.label();
  event.group_size = group.size();
  event.dtype = collective.dtype();
  event.elements = received_elements(collective, group.rank(), group.size());
  event.bytes = event.elements * index_t(size_of(event.dtype));
  event.operation =
      collective.operation[0] != '\0' ? collective.operation : name_of(collective.kind);
  if (!joins) senders_.assign(std::size_t(group.size()), 0);
  event.messages = cleave::received_messages(collective, group.rank(), group.size(), senders_);
  const detail::CommPlace& place = detail::CommPlace::current();
  if (place.path != nullptr) event.path = *place.path;
  event.is_backward = place.is_backward;
  events_.push_back(std::move(event));
}

CLEAVE_INLINE CommTrace::CommTrace(std::shared_ptr<RankState> state) : state_(std::move(state)) {
  const std::lock_guard lock(state_->observing->mutex);
  state_->observers.push_back(this);
  state_->observing->count.store(state_->observers.size(), std::memory_order_relaxed);
}

namespace detail {

/// Columns of text; the first row is the heading. Columns marked in `numbers` are right-aligned.
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

/// A line for equal calls.
template <class Event>
struct CommLine {
  const Event* event;
  index_t calls = 0, messages = 0, bytes = 0;
};

/// Whether path a comes before b: compares names, and numbers by value.
inline bool precedes(const std::string& a, const std::string& b) {
  const auto digits = [](const std::string& text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    return end - at;
  };
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  while (i > 0 && digits(a, i - 1) > 0) --i;  // back to the start of a number that differs
  const std::size_t of_a = digits(a, i), of_b = digits(b, i);
  if (of_a > 0 && of_b > 0 && of_a != of_b) return of_a < of_b;
  return a.compare(i, a.npos, b, i, b.npos) < 0;
}

/// Events as lines, in the order of their first occurrence.
///
/// @param by_module  calls of different modules, and of the two passes, are different lines, in an
///                   order that does not depend on when asynchronous ones ran
template <class Event>
std::vector<CommLine<Event>> comm_lines(const std::vector<Event>& events, bool by_module) {
  std::vector<CommLine<Event>> lines;
  for (const Event& event : events) {
    const auto is_same = [&](const CommLine<Event>& line) {
      const Event& other = *line.event;
      return other.kind == event.kind && other.group == event.group &&
             other.group_size == event.group_size && other.dtype == event.dtype &&
             other.operation == event.operation &&
             (!by_module || (other.path == event.path && other.is_backward == event.is_backward));
    };
    auto line = std::find_if(lines.begin(), lines.end(), is_same);
    if (line == lines.end()) line = lines.insert(line, {&event});
    ++line->calls;
    line->messages += event.messages;
    line->bytes += event.bytes;
  }
  if (by_module)
    std::stable_sort(lines.begin(), lines.end(), [](const auto& x, const auto& y) {
      const Event &a = *x.event, &b = *y.event;
      if (a.is_backward != b.is_backward) return b.is_backward;
      if (a.path != b.path) return precedes(a.path, b.path);
      if (a.group != b.group) return a.group < b.group;
      if (a.kind != b.kind) return a.kind < b.kind;
      if (a.dtype != b.dtype) return a.dtype < b.dtype;
      return a.operation < b.operation;
    });
  return lines;
}

}  // namespace detail

template <std::same_as<CommEvent> Event>
std::string CommEvents::to_string() const {
  std::vector<std::vector<std::string>> rows{
      {"calls", "collective", "group", "ranks", "dtype", "received bytes", "in"}};
  for (const auto& line : detail::comm_lines<Event>(events_, false))
    rows.push_back({std::to_string(line.calls), name_of(line.event->kind), line.event->group,
                    std::to_string(line.event->group_size), name_of(line.event->dtype),
                    std::to_string(line.bytes), line.event->operation});
  return detail::table(rows, {true, false, false, true, false, true, false});
}

template <std::same_as<CommEvent> Event>
std::string CommEvents::by_module() const {
  std::vector<std::vector<std::string>> rows{{"module", "pass", "calls", "collective", "group",
                                              "ranks", "dtype", "messages", "received bytes",
                                              "in"}};
  for (const auto& line : detail::comm_lines<Event>(events_, true))
    rows.push_back({line.event->path.empty() ? "(root)" : line.event->path,
                    line.event->is_backward ? "backward" : "forward", std::to_string(line.calls),
                    name_of(line.event->kind), line.event->group,
                    std::to_string(line.event->group_size), name_of(line.event->dtype),
                    std::to_string(line.messages), std::to_string(line.bytes),
                    line.event->operation});
  return detail::table(rows, {false, false, true, false, false, true, false, true, true, false});
}

template <std::same_as<CommEvent> Event>
std::string CommEvents::to_json() const {
  std::string text = "[";
  const auto quoted = detail::json_string;
  for (const auto& line : detail::comm_lines<Event>(events_, true)) {
    const Event& event = *line.event;
    text += (text.size() > 1 ? ",\n {" : "\n {");
    text += "\"module\": " + quoted(event.path);
    text += ", \"pass\": " + quoted(event.is_backward ? "backward" : "forward");
    text += ", \"calls\": " + std::to_string(line.calls);
    text += ", \"collective\": " + quoted(name_of(event.kind));
    text += ", \"group\": " + quoted(event.group);
    text += ", \"ranks\": " + std::to_string(event.group_size);
    text += ", \"dtype\": " + quoted(name_of(event.dtype));
    text += ", \"messages\": " + std::to_string(line.messages);
    text += ", \"received_bytes\": " + std::to_string(line.bytes);
    text += ", \"operation\": " + quoted(event.operation) + "}";
  }
  return text + "\n]\n";
}

}  // namespace cleave::inline v0
