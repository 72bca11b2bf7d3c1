// When a rank stops waiting for others: the one decision of all backends, as a function of values.
//
// How a rank learns what others do differs: threads and the processes of a node keep their statuses
// in memory that all of them read (status_board.hpp); processes of different nodes ask each other
// (mpi/watchdog.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/call_site.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::detail {

/// What a rank does, as far as others know.
struct RankStatus {
  enum class State : std::uint8_t { silent, computes, waits, left, failed };

  State state = State::silent;  ///< silent: it does not answer
  bool reached = false;         ///< whether it has begun the call of the rank that waits
  /// In which call it waits, or why it has failed; ends with a 0.
  std::array<char, 1000> text{};

  void set_text(std::string_view from) noexcept {
    const std::size_t length = std::min(from.size(), text.size() - 1);
    std::copy_n(from.data(), length, text.data());
    text[length] = '\0';
  }
};
static_assert(std::is_trivially_copyable_v<RankStatus>);  // sent as bytes

struct PeerStatus {
  int rank = 0;  ///< in the world
  RankStatus status{};
};

/// A rank that has failed, and the cause.
struct RankFailure {
  int rank = -1;  ///< in the world; -1: none failed
  std::string cause{};
};
inline std::string to_string(const RankFailure& failure) {
  return "rank " + std::to_string(failure.rank) + " failed: " + failure.cause;
}

/// Thrown by the other ranks when one has failed.
class PeerError : public Error {
 public:
  PeerError(std::string operation, RankFailure failure, int rank)
      : Error(std::move(operation), to_string(failure), {.rank = rank}),
        failure_(std::move(failure)) {}

  const RankFailure& failure() const noexcept { return failure_; }

 private:
  RankFailure failure_;
};

/// The call in which a rank waits for others, with names for errors.
struct RankWait {
  int world_rank = 0;
  const char* operation = "";
  const std::string* label = nullptr;  ///< of the group; null: none
  CallSite site{};                     ///< of the call, if known
  const char* caller = "";             ///< or what it is for. @see Signature::caller
  double timeout_seconds = 0;

  /// "all_gather of group 'tp'"
  std::string where() const {
    if (label == nullptr) return operation;
    return std::string(operation) + " of group '" + *label + "'";
  }
  /// The same with the place of the call: " at heat.cpp:41".
  std::string place() const {
    return where() + (*caller != '\0' ? caller_to_string(caller) : to_string(site));
  }
  /// After the time-out, how long a rank waits for others, which wait too, to name the culprit.
  double grace_seconds() const noexcept { return std::min(2.0, timeout_seconds); }
};

/// "rank 2", "ranks 1, 3"
inline std::string ranks_named(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

/// Why a rank stops waiting.
///
/// @param waited  for how many seconds it has waited
/// @param peers   the ranks that it waits for, or may wait for, ascending
/// @return        an error text that names the culprits; empty: the rank waits on
inline std::string reason_to_stop(const RankWait& wait, double waited,
                                  std::span<const PeerStatus> peers) {
  using State = RankStatus::State;
  const auto ranks_where = [&](auto holds) {
    std::vector<int> ranks;
    for (const PeerStatus& peer : peers)
      if (!peer.status.reached && holds(peer.status.state)) ranks.push_back(peer.rank);
    return ranks;
  };
  for (const PeerStatus& peer : peers)
    if (peer.status.state == State::failed)
      return to_string(RankFailure{peer.rank, peer.status.text.data()});
  if (const auto gone = ranks_where([](State s) { return s == State::left; }); !gone.empty())
    return ranks_named(gone) + " left while rank " + std::to_string(wait.world_rank) +
           " waits in " + wait.where();
  if (!(waited > wait.timeout_seconds)) return {};

  auto culprits = ranks_where([](State s) { return s != State::waits; });
  if (culprits.empty()) {
    if (waited <= wait.timeout_seconds + wait.grace_seconds()) return {};
    culprits = ranks_where([](State) { return true; });
  }
  const std::string place = wait.place(), limit = within(wait.timeout_seconds);
  std::string text = culprits.empty() ? place + " did not end" + limit
                                      : ranks_named(culprits) + " did not reach " + place + limit;
  if (culprits.empty() && !peers.empty()) text += ", although all ranks have reached it";
  for (const PeerStatus& peer : peers) {
    const std::string who = "; rank " + std::to_string(peer.rank);
    if (peer.status.state == State::silent) text += who + " does not answer";
    if (peer.status.state == State::waits && peer.status.text.data() != place)
      text += who + " waits in " + peer.status.text.data();
  }
  return text;
}

}  // namespace cleave::inline v0::detail
