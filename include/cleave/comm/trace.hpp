// What a rank communicates while a CommTrace lives: which collectives, over which mesh axes, how
// many bytes. Tests assert on it; users print it.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>

namespace cleave {

/// One collective of one rank.
struct CommEvent {
  CollectiveKind kind = CollectiveKind::barrier;
  std::string group{};  ///< "world", or the mesh axes: "tp", "dp.tp"
  int group_size = 1;   ///< ranks
  DType dtype = DType::uint8;
  index_t elements = 0;     ///< received from other ranks, see `received_elements`
  index_t bytes = 0;        ///< the same in bytes
  std::string operation{};  ///< what the user called, or the kind
};

/// Records every collective of this rank, in any of its groups, from construction to destruction.
///
///     CommTrace trace(world);                       // or a mesh, or a communicator
///     auto y = x.redistribute(Replicate{});
///     CHECK(trace.count(CollectiveKind::all_gather) == 1);
///
/// Local; nothing is communicated. Traces of one rank may nest or overlap. A collective is recorded
/// when it is called, even if it then fails; look at the trace when asynchronous work has ended.
class CommTrace : private Observer {
 public:
  explicit CommTrace(const Communicator& communicator) : CommTrace(communicator.shared_state()) {}

  /// A World, a mesh, or anything else with a `communicator()`.
  template <class Owner>
    requires requires(const Owner& owner) {
      { owner.communicator() } -> std::convertible_to<const Communicator&>;
    }
  explicit CommTrace(const Owner& owner) : CommTrace(owner.communicator()) {}

  CommTrace(const CommTrace&) = delete;  // its rank knows it by its address
  CommTrace& operator=(const CommTrace&) = delete;

  ~CommTrace() override {
    const std::lock_guard lock(*state_->observing);
    std::vector<Observer*>& observers = state_->observers;
    for (std::size_t i = observers.size(); i-- > 0;)
      if (observers[i] == this) observers.erase(observers.begin() + std::ptrdiff_t(i));
  }

  /// Everything recorded so far, barriers included, in order.
  const std::vector<CommEvent>& events() const noexcept { return events_; }

  /// How many collectives were recorded, not counting barriers.
  index_t count() const { return index_t(events_.size()) - count(CollectiveKind::barrier); }

  /// How many of one kind.
  index_t count(CollectiveKind kind) const {
    index_t n = 0;
    for (const CommEvent& event : events_) n += event.kind == kind;
    return n;
  }

  /// Bytes that this rank received from others.
  index_t received_bytes() const {
    index_t bytes = 0;
    for (const CommEvent& event : events_) bytes += event.bytes;
    return bytes;
  }

  void clear() noexcept { events_.clear(); }

  /// A table: equal calls in one line, in the order of their first occurrence.
  std::string to_string() const;

 private:
  explicit CommTrace(std::shared_ptr<RankState> state) : state_(std::move(state)) {
    const std::lock_guard lock(*state_->observing);
    state_->observers.push_back(this);
  }

  void observe(const Collective& collective, const Communicator& group) override {
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

  std::shared_ptr<RankState> state_;
  std::vector<CommEvent> events_;
};

namespace detail {

/// Columns of text; the first row is the heading. Those in `numbers` are aligned to the right.
inline std::string table(const std::vector<std::vector<std::string>>& rows,
                         const std::vector<bool>& numbers) {
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

inline std::string CommTrace::to_string() const {
  struct Line {
    const CommEvent* event;
    index_t calls, bytes;
  };
  std::vector<Line> lines;
  for (const CommEvent& event : events_) {
    std::size_t i = 0;
    const auto same = [&](const CommEvent& other) {
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
