// How a rank waits for other processes: with failure detection and a time-out.
//
// Every wait, for messages or for a flag in shared memory, ends: when the awaited event happens, or
// with an error that names the ranks that failed, left or did not arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <sched.h>
#include <time.h>

#include <cleave/comm/mpi/mpi_failure_detector.hpp>
#include <cleave/comm/mpi/scratch.hpp>
#include <cleave/comm/thread/cancellable_barrier.hpp>
#include <cleave/comm/worker_thread.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::detail {

/// How often a rank polls a flag in shared memory, or (slower) for messages.
struct MpiPolls {
  struct Counts {
    int before_yield;  ///< of the core
    int before_check;  ///< of the failure detector
  };
  Counts flags{2000, 256}, messages{50, 32};
  /// Whether ranks and their worker threads outnumber the cores; then worker threads sleep while
  /// they wait. A thread that yields to one that computes resumes only milliseconds later.
  bool workers_sleep = false;

  /// With more processes on the node than cores, a rank yields its core almost at once. Open MPI
  /// yields by itself at every poll if OMPI_MCA_mpi_yield_when_idle is 1.
  static MpiPolls of(int ranks, int cores) {
    const char* yields = std::getenv("OMPI_MCA_mpi_yield_when_idle");
    const bool library_yields = yields != nullptr && *yields == '1';
    MpiPolls polls;
    if (library_yields || ranks > cores) polls = {.flags = {2, 64}, .messages = {2, 256}};
    if (library_yields) polls.messages.before_yield = std::numeric_limits<int>::max();
    polls.workers_sleep = 2 * ranks > cores;
    return polls;
  }
};

/// The group and the call for which messages are sent.
struct MpiOpContext : MpiWait {
  MPI_Comm comm = MPI_COMM_NULL;
  unsigned sequence = 0;  ///< distinguishes consecutive collectives: below `sequences`
  int rank = 0;           ///< in the group
  int size = 1;
  std::span<const int> comm_ranks{};  ///< of the group's members, in `comm`; empty: the same
  MpiFailureDetector* detector = nullptr;
  MpiScratch* scratch = nullptr;  ///< kept by the group
  std::size_t longest_message = 0;
  const MpiPolls* polls = nullptr;

  static constexpr unsigned sequences = 16;

  /// The tag of a message of `bytes` bytes, which matches only a receive of the same size.
  int tag(std::size_t bytes) const noexcept {
    const std::uint64_t span = (std::uint64_t(detector->largest_tag()) + 1) / sequences;
    const std::uint64_t mixed = (std::uint64_t(bytes) * 0x9e3779b97f4a7c15u) >> 32;
    return int(sequence * span + mixed % span);
  }

  int in_comm(int peer) const { return comm_ranks.empty() ? peer : comm_ranks[std::size_t(peer)]; }

  /// Announces the failure to all ranks and throws: the ranks are out of step from here on.
  [[noreturn]] void fail(const std::string& message) const {
    const Error error(operation, message, {.rank = detector->rank()});
    detector->announce(error.what());
    throw error;
  }
};

/// Lists for its lifetime a call inside of MPI that waits for other ranks: if it does not end in
/// time, or in vain, the watchdog ends the job with an error.
class MpiBlockingCall {
 public:
  /// @param context  must outlive this
  explicit MpiBlockingCall(const MpiOpContext& context)
      : entry_(context.detector->enter(context)) {}
  MpiBlockingCall(const MpiBlockingCall&) = delete;  // one entry
  MpiBlockingCall& operator=(const MpiBlockingCall&) = delete;
  ~MpiBlockingCall() { MpiFailureDetector::leave(entry_); }

 private:
  MpiFailureDetector::Entry* entry_;
};

/// A period in which nothing arrives.
class MpiBackoff {
 public:
  /// What a rank waits for.
  enum class For : std::uint8_t { flags, messages };

  /// @param context  must outlive this
  explicit MpiBackoff(const MpiOpContext& context, For what = For::messages)
      : context_(context),
        what_(what),
        sleeps_(context.polls->workers_sleep && is_worker_thread()),
        counts_(sleeps_              ? MpiPolls::Counts{0, 16}
                : what == For::flags ? context.polls->flags
                                     : context.polls->messages) {}

  /// Whether this thread sleeps between two polls. @see MpiPolls
  bool sleeps() const noexcept { return sleeps_; }

  /// Called between two polls: at first polls fast, then yields the core.
  void pause() noexcept {
    if (++polled_ > counts_.before_yield) leave_core();
    else if (what_ == For::flags) spin_pause();
  }

  /// The same; every few calls also checks for failures and the time-out.
  ///
  /// @param missing  (int) -> bool: whether a rank of the group is awaited
  /// @throws Error if a rank has failed, or an awaited one has left or does not arrive in time
  template <class Missing>
  void rest(const Missing& missing) {
    pause();
    if (polled_ % counts_.before_check != 0) return;
    context_.detector->verify(context_.operation);
    const double now = MPI_Wtime();
    if (since_ == 0) since_ = checked_ = now;
    if (now < checked_ + seconds_between_checks) return;
    checked_ = now;
    MpiFailureDetector& detector = *context_.detector;
    if (detector.ends_job()) {  // by the watchdog
      if (!listed_) listed_.emplace(context_);
      return;
    }
    if (!stated_) stated_.emplace(detector.board(), detector.seat(), context_.place());
    const auto peers = detector.board().missing_peers(context_.world_ranks, missing);
    if (peers.empty()) return;
    const std::string reason = reason_to_stop(context_, now - since_, peers);
    if (reason.empty()) return;
    detector.verify(context_.operation);  // a rank that fails states that first, and then leaves
    context_.fail(reason);
  }

 private:
  static constexpr double seconds_between_checks = 0.01;

  void leave_core() const noexcept {
    if (!sleeps_) {
      sched_yield();
    } else if (what_ != For::flags) {  // a flag wakes its sleepers
      const timespec nap{0, 20'000};
      nanosleep(&nap, nullptr);
    }
  }

  const MpiOpContext& context_;
  For what_;
  bool sleeps_;
  MpiPolls::Counts counts_;
  long polled_ = 0;
  double since_ = 0;                         ///< when the wait began
  double checked_ = 0;                       ///< when this rank last read what the others do
  std::optional<StatusBoard::Wait> stated_;  ///< once this wait is not short
  std::optional<MpiBlockingCall> listed_;    ///< likewise
};

}  // namespace cleave::inline v0::detail
