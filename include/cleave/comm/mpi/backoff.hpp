// How a rank waits for other processes: under the failure detector and a time-out.
//
// Whatever it waits for (messages, a flag in shared memory), the wait ends: with what it waits for,
// or with an error that names who failed, left or did not come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <time.h>

#include <cleave/comm/mpi/failure_detector.hpp>
#include <cleave/comm/mpi/handle.hpp>
#include <cleave/comm/thread/cancellable_barrier.hpp>
#include <cleave/comm/worker_thread.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

struct MpiWorkspace;

/// Where messages go and on whose behalf.
struct MpiOpContext {
  MPI_Comm comm = MPI_COMM_NULL;
  unsigned sequence = 0;  ///< tells a collective from the next ones: below `sequences`
  int rank = 0;           ///< in the group
  int size = 1;
  std::span<const int> comm_ranks{};   ///< of the members of the group; empty: the same numbers
  std::span<const int> world_ranks{};  ///< likewise, in the world of `detector`
  MpiFailureDetector* detector = nullptr;
  std::unique_ptr<MpiWorkspace>* workspace = nullptr;  ///< where the group keeps one, if it does
  const std::string* label = nullptr;
  const char* operation = "";
  double timeout_seconds = 0;

  static constexpr unsigned sequences = 16;

  /// The tag of a message of that many bytes: it meets only a receive of as many.
  int tag(std::size_t bytes) const noexcept {
    const std::uint64_t span = (std::uint64_t(detector->largest_tag()) + 1) / sequences;
    const std::uint64_t mixed = (std::uint64_t(bytes) * 0x9e3779b97f4a7c15u) >> 32;
    return int(sequence * span + mixed % span);
  }

  /// "all_gather of group 'tp'"
  std::string where() const { return std::string(operation) + " of group '" + *label + "'"; }

  /// Gives up, and tells all others: the ranks are out of step from here on.
  [[noreturn]] void fail(const std::string& message) const {
    const Error error(operation, message, {.rank = detector->rank()});
    detector->announce(error.what());
    throw error;
  }
};

/// How often a rank looks, at a flag in shared memory or for messages, which takes longer: before
/// it leaves the core to others, and between two times that it hears whether it waits in vain.
struct MpiPolls {
  int flags = 2000;
  int messages = 50;
  /// Whether ranks and their threads for asynchronous work are more than the cores: these sleep
  /// while they wait. A thread that yields to one that computes comes back milliseconds later.
  bool workers_sleep = false;
  int heard_flags = 256;
  int heard_messages = 32;

  /// A rank leaves the core at once where others need it: more processes of a node than cores. Open
  /// MPI does so itself, whenever it looks for messages, if it is told to.
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

/// A time in which nothing arrives.
class MpiBackoff {
 public:
  /// What a rank waits for. The MPI library's collectives await ranks that wait in their turn, and
  /// have longer to say so; they may end later than on a rank that has left, which is awaited until
  /// the time-out.
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

  /// Something has arrived: the time begins anew.
  void renew() { idle_ = {}; }

  /// Whether this thread is to sleep between two looks. @see MpiPolls
  bool sleeps() const noexcept { return sleeps_; }

  /// Seconds without anything, when this rank last looked at the clock.
  double waited() const noexcept { return idle_.waited; }

  /// What a rank does between two looks: first look fast, then leave the core to others; every
  /// few looks hear whether it waits in vain.
  ///
  /// @param awaited  the world ranks that this one waits for, ascending: a callable
  /// @return whether it was one of the few
  /// @throws Error if one has failed or left, or does not come in time
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
    const auto gone = such(awaited(), [&](int r) { return detector.has_left(r); });
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
    double late_since = 0;  ///< when the time was out
    bool asked = false;
  };

  /// How long a rank that left may still be heard of, as its last messages may be under way; and
  /// how long a rank has to answer.
  static constexpr double grace_seconds = 0.25;

  void leave_core() const noexcept {
    if (!sleeps_) {
      sched_yield();
    } else if (what_ != For::flags) {  // a flag wakes who sleeps
      const timespec nap{0, 20'000};
      nanosleep(&nap, nullptr);
    }
  }

  /// After the time-out: asks the awaited ranks, and names those that do not answer. One that waits
  /// in its turn is about to find who is to blame; if it does not, they wait for each other.
  void find_culprit(double now, const std::vector<int>& awaited) {
    MpiFailureDetector& detector = *context_.detector;
    if (idle_.late_since == 0) {
      idle_.late_since = now;
      for (const int r : awaited) detector.ask(r);
    }
    if (now < idle_.late_since + (what_ == For::library ? 4 : 1) * grace_seconds) return;
    const std::string limit = within(context_.timeout_seconds);
    const auto silent = such(awaited, [&](int r) { return !detector.waits(r); });
    if (!silent.empty())
      context_.fail(listed(silent) + " did not reach " + context_.where() + limit);
    if (now > idle_.late_since + 8 * grace_seconds)
      context_.fail(listed(awaited) + " did not reach " + context_.where() + limit +
                    ", waiting elsewhere");
  }

  template <class Predicate>
  static std::vector<int> such(std::vector<int> ranks, Predicate predicate) {
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
