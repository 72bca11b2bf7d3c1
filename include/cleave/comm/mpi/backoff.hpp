// How a rank waits for other processes: with failure detection and a time-out.
//
// Every wait, for messages or for a flag in shared memory, ends: when the awaited event happens, or
// with an error that names the ranks that failed, left or did not arrive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <time.h>

#include <cleave/comm/mpi/failure_detector.hpp>
#include <cleave/comm/mpi/handle.hpp>
#include <cleave/comm/mpi/scratch.hpp>
#include <cleave/comm/thread/cancellable_barrier.hpp>
#include <cleave/comm/worker_thread.hpp>
#include <cleave/core/call_site.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

/// The group and the call for which messages are sent.
struct MpiOpContext {
  MPI_Comm comm = MPI_COMM_NULL;
  unsigned sequence = 0;  ///< distinguishes consecutive collectives: below `sequences`
  int rank = 0;           ///< in the group
  int size = 1;
  std::span<const int> comm_ranks{};   ///< of the group's members, in `comm`; empty: the same
  std::span<const int> world_ranks{};  ///< likewise, in the world of `detector`
  MpiFailureDetector* detector = nullptr;
  MpiScratch* scratch = nullptr;  ///< kept by the group
  const std::string* label = nullptr;
  const char* operation = "";
  CallSite site{};          ///< of the call, if known
  const char* caller = "";  ///< or what it is for. @see Signature::caller
  double timeout_seconds = 0;
  std::size_t longest_message = 0;

  static constexpr unsigned sequences = 16;

  /// The tag of a message of `bytes` bytes, which matches only a receive of the same size.
  int tag(std::size_t bytes) const noexcept {
    const std::uint64_t span = (std::uint64_t(detector->largest_tag()) + 1) / sequences;
    const std::uint64_t mixed = (std::uint64_t(bytes) * 0x9e3779b97f4a7c15u) >> 32;
    return int(sequence * span + mixed % span);
  }

  int in_comm(int peer) const { return comm_ranks.empty() ? peer : comm_ranks[std::size_t(peer)]; }
  /// The world ranks of the other members, ascending.
  std::vector<int> others() const {
    std::vector<int> ranks(world_ranks.begin(), world_ranks.end());
    std::erase(ranks, detector->rank());
    std::ranges::sort(ranks);
    return ranks;
  }

  /// "all_gather of group 'tp'"
  std::string where() const { return std::string(operation) + " of group '" + *label + "'"; }
  /// The same with the place of the call: " at heat.cpp:41".
  std::string place() const {
    return where() + (*caller != '\0' ? text_of_caller(caller) : to_string(site));
  }

  /// Announces the failure to all ranks and throws: the ranks are out of step from here on.
  [[noreturn]] void fail(const std::string& message) const {
    const Error error(operation, message, {.rank = detector->rank()});
    detector->announce(error.what());
    throw error;
  }
};

/// How often a rank polls a flag in shared memory, or (slower) for messages: before it yields the
/// core (`flags`, `messages`), and between checks of the failure detector (`heard_..`).
struct MpiPolls {
  int flags = 2000;
  int messages = 50;
  /// Whether ranks and their worker threads outnumber the cores; then worker threads sleep while
  /// they wait. A thread that yields to one that computes resumes only milliseconds later.
  bool workers_sleep = false;
  int heard_flags = 256;
  int heard_messages = 32;

  /// With more processes on the node than cores, a rank yields its core almost at once. Open MPI
  /// yields by itself at every poll if OMPI_MCA_mpi_yield_when_idle is 1.
  static MpiPolls of(int ranks, int cores) {
    const char* yields = std::getenv("OMPI_MCA_mpi_yield_when_idle");
    const bool library_yields = yields != nullptr && *yields == '1';
    MpiPolls polls;
    if (library_yields || ranks > cores)
      polls = {.flags = 2, .messages = 2, .heard_flags = 64, .heard_messages = 256};
    if (library_yields) polls.messages = std::numeric_limits<int>::max();
    polls.workers_sleep = 2 * ranks > cores;
    return polls;
  }
};

inline MpiPolls& mpi_polls() {
  static MpiPolls polls;
  return polls;
}

/// A period in which nothing arrives.
class MpiBackoff {
 public:
  /// What a rank waits for. In a collective of the MPI library the awaited ranks wait too, and have
  /// longer to answer; a rank may complete it and leave before its peers do, so that a rank that
  /// has left is awaited until the time-out.
  enum class For : std::uint8_t { flags, messages, library };

  /// @param context  must outlive this
  explicit MpiBackoff(const MpiOpContext& context, For what = For::messages)
      : context_(context),
        what_(what),
        sleeps_(mpi_polls().workers_sleep && is_worker_thread()),
        polls_(sleeps_              ? 0
               : what == For::flags ? mpi_polls().flags
                                    : mpi_polls().messages),
        heard_(sleeps_              ? 16
               : what == For::flags ? mpi_polls().heard_flags
                                    : mpi_polls().heard_messages) {}

  /// Restarts the period: something has arrived.
  void renew() { idle_ = {}; }

  /// Whether this thread sleeps between two polls. @see MpiPolls
  bool sleeps() const noexcept { return sleeps_; }

  /// Seconds in which nothing arrived, when this rank last read the clock.
  double waited() const noexcept { return idle_.waited; }

  /// Called between two polls: at first polls fast, then yields the core; every few calls checks
  /// the failure detector and the time-out.
  ///
  /// @param awaited  a callable that returns the awaited world ranks, ascending
  /// @return whether this call made the check
  /// @throws Error if a rank has failed, or an awaited one has left or does not arrive in time
  template <class Awaited>
  bool rest(const Awaited& awaited) {
    if (++idle_.polls > polls_) leave_core();
    else if (what_ == For::flags) spin_pause();
    if (idle_.polls % heard_ != 0) return false;
    MpiFailureDetector& detector = *context_.detector;
    detector.listen();
    detector.throw_if_failed(context_.operation);
    const double now = MPI_Wtime();
    if (idle_.since == 0) idle_.since = now;
    const double waited = idle_.waited = now - idle_.since;
    if (!idle_.asked && waited > std::min(1.0, context_.timeout_seconds / 4)) {
      idle_.asked = true;
      for (const int r : awaited()) detector.ask(r);
    }
    if (!idle_.asked) return true;
    const auto gone = filtered(awaited(), [&](int r) { return detector.has_left(r); });
    if (!gone.empty() && (what_ != For::library || waited > context_.timeout_seconds)) {
      if (idle_.left_since == 0) idle_.left_since = now;
      if (now > idle_.left_since + grace_seconds)
        context_.fail(listed(gone) + " left while rank " + std::to_string(detector.rank()) +
                      " waits in " + context_.where());
    }
    if (waited > context_.timeout_seconds) find_culprit(now, awaited());
    return true;
  }

 private:
  struct Idle {
    long polls = 0;
    double since = 0;
    double waited = 0;
    double left_since = 0;  ///< when an awaited rank was found to have left
    double late_since = 0;  ///< when the time-out was noticed
    bool asked = false;
  };

  /// How long the last messages of a rank that has left may still be in flight; also how long a
  /// rank has to answer.
  static constexpr double grace_seconds = 0.25;

  void leave_core() const noexcept {
    if (!sleeps_) {
      sched_yield();
    } else if (what_ != For::flags) {  // a flag wakes its sleepers
      const timespec nap{0, 20'000};
      nanosleep(&nap, nullptr);
    }
  }

  /// After the time-out: asks the awaited ranks, and names those that do not answer. A rank that
  /// answers is waiting itself and should soon name the culprit; if not, ranks wait for each other.
  void find_culprit(double now, const std::vector<int>& awaited) {
    MpiFailureDetector& detector = *context_.detector;
    if (idle_.late_since == 0) {
      idle_.late_since = now;
      for (const int r : awaited) detector.ask(r);
    }
    if (now < idle_.late_since + (what_ == For::library ? 4 : 1) * grace_seconds) return;
    const std::string limit = within(context_.timeout_seconds);
    const auto silent = filtered(awaited, [&](int r) { return !detector.waits(r); });
    if (!silent.empty())
      context_.fail(listed(silent) + " did not reach " + context_.place() + limit);
    if (now > idle_.late_since + 8 * grace_seconds)
      context_.fail(listed(awaited) + " did not reach " + context_.place() + limit +
                    ", waiting elsewhere");
  }

  template <class Predicate>
  static std::vector<int> filtered(std::vector<int> ranks, Predicate predicate) {
    std::erase_if(ranks, [&](int r) { return !predicate(r); });
    return ranks;
  }

  /// "rank 2", "ranks 1, 3"
  static std::string listed(const std::vector<int>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
    return text;
  }

  const MpiOpContext& context_;
  For what_;
  bool sleeps_;
  int polls_, heard_;
  Idle idle_;
};

}  // namespace cleave::detail
