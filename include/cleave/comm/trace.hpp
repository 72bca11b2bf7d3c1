// Records what a rank communicates while a CommTrace lives: collectives, mesh axes, modules, bytes
// and time. Tests assert on it; users print it.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>

namespace cleave::inline v0 {

/// One collective of one rank.
struct CommEvent {
  CollectiveKind kind = CollectiveKind::barrier;
  std::string group{};  ///< "world", or the mesh axes: "tp", "dp.tp"
  int group_size = 1;   ///< ranks
  DType dtype = DType::uint8;
  index_t elements = 0;     ///< received from other ranks, see `received_elements`
  index_t bytes = 0;        ///< the same in bytes
  index_t messages = 0;     ///< that carry these elements, see `received_messages`
  std::string operation{};  ///< what the user called, or the kind
  std::string path{};       ///< of the module, see `with_paths`; "" if there is none
  bool is_backward = false;
};

/// Collectives of one rank, and their totals.
class CommEvents {
 public:
  CommEvents() = default;
  explicit CommEvents(std::vector<CommEvent> events) : events_(std::move(events)) {}

  /// Everything, barriers included, in order.
  const std::vector<CommEvent>& events() const noexcept { return events_; }

  /// How many collectives there are, not counting barriers.
  index_t count() const { return index_t(events_.size()) - count(CollectiveKind::barrier); }

  /// How many of one kind.
  index_t count(CollectiveKind kind) const {
    index_t n = 0;
    for (const CommEvent& event : events_) n += event.kind == kind;
    return n;
  }

  /// How many of one kind in the groups with that label: "tp", "dp.tp".
  index_t count(CollectiveKind kind, std::string_view group) const {
    index_t n = 0;
    for (const CommEvent& event : events_) n += event.kind == kind && event.group == group;
    return n;
  }

  /// Bytes that this rank received from others.
  index_t received_bytes() const {
    index_t bytes = 0;
    for (const CommEvent& event : events_) bytes += event.bytes;
    return bytes;
  }

  /// Messages that carried these bytes.
  index_t received_messages() const {
    index_t messages = 0;
    for (const CommEvent& event : events_) messages += event.messages;
    return messages;
  }

  /// The events of forward calls, and those of `backward`.
  CommEvents forward() const {
    return such([](const CommEvent& event) { return !event.is_backward; });
  }
  CommEvents backward() const {
    return such([](const CommEvent& event) { return event.is_backward; });
  }
  /// The events of a module, without the modules inside of it: "blocks.0.mlp". @see with_paths
  CommEvents at(std::string_view path) const {
    return such([&](const CommEvent& event) { return event.path == path; });
  }
  /// The events of a module and of all modules inside of it.
  CommEvents inside(std::string_view path) const {
    return such([&](const CommEvent& event) {
      const std::string_view theirs = event.path;
      return path.empty() || theirs == path ||
             (theirs.starts_with(path) && theirs[path.size()] == '.');
    });
  }

  /// The modules that communicate, in the order of their first collective.
  std::vector<std::string> paths() const {
    std::vector<std::string> paths;
    for (const CommEvent& event : events_) {
      bool is_new = event.kind != CollectiveKind::barrier;
      for (const std::string& path : paths) is_new = is_new && path != event.path;
      if (is_new) paths.push_back(event.path);
    }
    return paths;
  }

  /// A table: equal calls in one line, in the order of their first occurrence.
  template <std::same_as<CommEvent> Event = CommEvent>  // compiled where it is called
  std::string to_string() const;

  /// The same by module, with columns for its path, the pass (forward or backward), and the
  /// messages and bytes that this rank receives. The whole network is (root). Lines are ordered by
  /// pass and path, then by group and collective.
  template <std::same_as<CommEvent> Event = CommEvent>
  std::string by_module() const;

  /// The lines of `by_module` as an array of JSON objects: module, pass, calls, collective, group,
  /// ranks, dtype, messages, received_bytes, operation.
  template <std::same_as<CommEvent> Event = CommEvent>
  std::string to_json() const;

 protected:
  std::vector<CommEvent> events_;

 private:
  template <class Keep>
  CommEvents such(const Keep& keep) const {
    CommEvents some;
    for (const CommEvent& event : events_)
      if (keep(event)) some.events_.push_back(event);
    return some;
  }
};

/// Records every collective of this rank, in any of its groups, from construction to destruction.
///
///     CommTrace trace(world);                       // or a mesh, or a communicator
///     auto y = x.redistribute(Replicate{});
///     CHECK(trace.count(CollectiveKind::all_gather) == 1);
///
/// Local; nothing is communicated. Traces of one rank may nest or overlap. A collective is recorded
/// when it is called, even if it then fails; read the trace after asynchronous work has ended.
class CommTrace : public CommEvents, private Observer {
 public:
  explicit CommTrace(const Communicator& communicator) : CommTrace(communicator.shared_state()) {}

  /// A World, a mesh, or anything else with a `communicator()`.
  template <class Owner>
    requires requires(const Owner& owner) {
      { owner.communicator() } -> std::convertible_to<const Communicator&>;
    }
  explicit CommTrace(const Owner& owner) : CommTrace(owner.communicator()) {}

  CommTrace(const CommTrace&) = delete;  // registered with its rank by address
  CommTrace& operator=(const CommTrace&) = delete;

  CLEAVE_INLINE ~CommTrace() override;

  /// Seconds that this rank spent in completed collectives, including waits for other ranks.
  /// Asynchronous collectives count, too; on a GPU the time is the host's.
  double seconds() const noexcept { return seconds_; }

  void clear() noexcept {
    events_.clear();
    seconds_ = 0;
  }

 private:
  explicit CommTrace(std::shared_ptr<RankState> state);

  CLEAVE_INLINE void observe(const Collective& collective, const Communicator& group,
                             bool joins) override;
  void observe_time(double seconds) override { seconds_ += seconds; }

  std::shared_ptr<RankState> state_;
  std::vector<char> senders_{};  ///< by rank: whether it has sent a message in this round
  double seconds_ = 0;
};

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/comm/trace_body.hpp>
#endif
