// How a rank of an MPI world learns that others have failed or are missing, and tells others.
//
// Processes that share memory state in it what they do (status_board.hpp): a failure is an
// exception on every rank, and no message is needed.
//
// Between nodes, and without shared memory, ranks wait inside of MPI, where no exception reaches
// them: a failure ends the job. The watchdog of each process answers other ranks' questions. Once a
// call of its own rank has lasted a second, it asks the next rank of the group every second, and
// after CLEAVE_TIMEOUT all of them, whether they have begun this call, wait elsewhere, compute or
// have left. If the wait is in vain, it prints the reason and calls MPI_Abort. Nothing is sent
// while all goes well.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <time.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/mpi/mpi_handle.hpp>
#include <cleave/comm/mpi/watchdog.hpp>
#include <cleave/comm/rank_status.hpp>
#include <cleave/comm/status_board.hpp>
#include <cleave/core/clock.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::detail {

/// A call of a group, in which its rank may wait inside of MPI.
struct MpiWait : RankWait {
  std::span<const int> world_ranks{};  ///< of the group's members
  std::uint64_t group_id = 0;          ///< the same on all members, and only there
  std::uint64_t number = 0;            ///< of the call in its group, from 1; 0: not counted
};

/// One per world and rank; all groups made from the world share it, and two threads of the rank may
/// wait at the same time.
class MpiFailureDetector final : public AbortNotification,
                                 public std::enable_shared_from_this<MpiFailureDetector> {
 public:
  /// A listed call. The watchdog locks it for some microseconds, a few times per second.
  struct Entry {
    std::mutex mutex{};
    const MpiWait* wait = nullptr;
    Clock::time_point since{}, asked{};  ///< when the watchdog has first seen it; has last asked
    std::uint64_t round = 0;             ///< of questions about it; 0: it has not been seen
    bool postponed = false;              ///< whether a lower rank could report first
    Clock::time_point doubted{};      ///< when there first was a reason that may end the job itself
    std::vector<PeerStatus> peers{};  ///< that were asked, ascending
  };

  /// The detector of this rank until its last group is gone; it still answers then.
  /// @param board  shared by all ranks of the world; null if they do not share memory
  /// @collective every rank of `world`
  static std::shared_ptr<MpiFailureDetector> create(MPI_Comm world, StatusBoard* board) {
    const std::shared_ptr<MpiFailureDetector> detector(new MpiFailureDetector(world, board));
    if (detector->ends_job()) detector->be_watched();
    return {detector.get(), [detector](auto*) { detector->end(); }};
  }
  MpiFailureDetector(const MpiFailureDetector&) = delete;  // one per world and rank
  MpiFailureDetector& operator=(const MpiFailureDetector&) = delete;
  /// The channel is not freed: a message may be in flight to a rank that does not expect it.
  ~MpiFailureDetector() override { comm_.abandon(); }

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// The largest tag that MPI allows; the same on all ranks.
  int largest_tag() const noexcept { return largest_tag_; }
  /// Whether a failure ends the job; otherwise it is an exception on every rank.
  bool ends_job() const noexcept { return !is_shared_ && size_ > 1; }

  /// Whether messages may be in flight that no rank will receive: no group of the world is usable.
  bool broken() const noexcept {
    return mpi_is_running() && (board_->has_failed() || is_unwinding());
  }

  /// @throws Error if a rank is known to have failed
  void verify(const char* operation) const { board_->verify(operation, rank_); }

  /// Tells all others that this rank has failed, unless a failure is known already.
  void announce(std::string_view cause) noexcept { board_->fail(rank_, cause); }

  void raise(int, const char* cause) noexcept override { announce(cause); }
  std::string heard() noexcept override {
    if (!mpi_is_running()) return {};  // nor is there shared memory
    const RankFailure failure = board_->failure();
    return failure.rank < 0 || failure.rank == rank_ ? std::string() : to_string(failure);
  }

  /// Of all ranks if they share memory, else of this one.
  StatusBoard& board() noexcept { return *board_; }
  /// This rank's place on the board.
  int seat() const noexcept { return is_shared_ ? rank_ : 0; }

  /// Lists a call, which must outlive its entry. @return the entry, or null if there are too many
  Entry* enter(const MpiWait& wait) {
    if (!ends_job()) be_watched();
    for (Entry& entry : entries_) {
      const std::lock_guard lock(entry.mutex);
      if (entry.wait != nullptr) continue;
      entry.wait = &wait;
      entry.round = 0;
      return &entry;
    }
    return nullptr;
  }
  static void leave(Entry* entry) noexcept {
    if (entry == nullptr) return;
    const std::lock_guard lock(entry->mutex);
    entry->wait = nullptr;
  }

  /// A new group of this rank: its number, and how many calls it has begun.
  std::pair<std::uint64_t, std::shared_ptr<std::atomic<std::uint64_t>>> add_group(
      std::uint64_t checksum) {
    const std::lock_guard lock(mutex_);
    while (calls_of(checksum) != nullptr) checksum = checksum * 0x9e3779b97f4a7c15u + 1;
    return groups_.emplace_back(checksum, std::make_shared<std::atomic<std::uint64_t>>(0));
  }

  /// The last call of a rank: waits until every rank has made it. After a failure it waits for at
  /// most `timeout` seconds, because a rank that computes or is stuck elsewhere does not know;
  /// otherwise as long as other ranks run.
  ///
  /// @return whether all ranks have arrived and none has failed
  /// @collective every rank
  bool shut_down(double timeout) noexcept {
    if (ends_job() && board_->has_failed()) end_job(rank_, board_->failure().cause);
    MPI_Request request = MPI_REQUEST_NULL;
    if (ends_job() && MPI_Ibarrier(comm_.get(), &request) != MPI_SUCCESS) return false;
    board_->leave(seat());
    for (Clock::time_point known{};;) {  // when a failure became known
      int done = 1;
      if (!ends_job())
        for (int r = 0; r < size_; ++r) done = done != 0 && board_->has_left(r) ? 1 : 0;
      else if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      const bool failed = board_->has_failed();
      if (done != 0) return !failed;
      if (failed && known == Clock::time_point()) known = Clock::now();
      if (failed && seconds_since(known) > timeout) return false;
      const timespec nap{0, 200'000};
      nanosleep(&nap, nullptr);
    }
  }

 private:
  friend MpiWatchdog<MpiFailureDetector>;

  enum class Tag : int { question, answer };

  struct Message {
    std::uint64_t round = 0, group_id = 0, number = 0;
    RankStatus status{};
  };
  struct Sent {
    Message message{};
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MpiFailureDetector(MPI_Comm world, StatusBoard* board)
      : comm_(MpiComm::duplicate(world)),
        is_shared_(board != nullptr),
        board_(is_shared_ ? std::shared_ptr<StatusBoard>(std::shared_ptr<void>(), board)
                          : StatusBoard::create(1)) {
    mpi_check(MPI_Comm_rank(comm_.get(), &rank_), "MPI_Comm_rank");
    mpi_check(MPI_Comm_size(comm_.get(), &size_), "MPI_Comm_size");
    int* limit = nullptr;
    int is_set = 0;
    mpi_check(MPI_Comm_get_attr(comm_.get(), MPI_TAG_UB, &limit, &is_set), "MPI_Comm_get_attr");
    if (is_set != 0) largest_tag_ = *limit;
  }

  /// The last group of this rank is gone.
  void end() noexcept {
    if (!mpi_is_running()) return;  // nor is there shared memory
    if (is_unwinding()) announce("its communicators were destroyed by an exception");
    board_->leave(seat());
  }

  void be_watched() {
    if (!is_watched_.exchange(true)) MpiWatchdog<MpiFailureDetector>::watch(shared_from_this());
  }

  bool is_unwinding() const noexcept { return std::uncaught_exceptions() > exceptions_at_birth_; }

  static double seconds_since(Clock::time_point begin) {
    return Seconds(Clock::now() - begin).count();
  }

  /// @pre the mutex is held
  const std::atomic<std::uint64_t>* calls_of(std::uint64_t group_id) const {
    for (const auto& [id, calls] : groups_)
      if (id == group_id) return calls.get();
    return nullptr;
  }

  // The rest is called by the watchdog.

  void look() {
    const bool asks = !is_shared_ && mpi_has_threads();
    if (asks) receive();
    for (Entry& entry : entries_) {
      const std::lock_guard lock(entry.mutex);
      if (entry.wait != nullptr) look_at(entry, *entry.wait, asks);
    }
    std::erase_if(sent_, [](const std::unique_ptr<Sent>& message) {
      int done = 0;
      return MPI_Test(&message->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    });
  }

  void send(const Message& message, int rank, Tag tag) {
    sent_.push_back(std::make_unique<Sent>(Sent{message}));
    Sent& sent = *sent_.back();
    if (MPI_Isend(&sent.message, sizeof sent.message, MPI_BYTE, rank, int(tag), comm_.get(),
                  &sent.request) != MPI_SUCCESS)
      sent_.pop_back();
  }

  /// Answers questions, and takes the answers to this rank's.
  void receive() {
    for (;;) {
      int arrived = 0;
      MPI_Status status;
      Message message;
      if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.get(), &arrived, &status) != MPI_SUCCESS ||
          arrived == 0 ||
          MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
                   comm_.get(), MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return;
      if (Tag(status.MPI_TAG) == Tag::question) {
        message.status = status_for(message.group_id, message.number);
        send(message, status.MPI_SOURCE, Tag::answer);
        continue;
      }
      for (Entry& entry : entries_) {
        const std::lock_guard lock(entry.mutex);
        for (PeerStatus& peer : entry.peers)
          if (entry.round == message.round && peer.rank == status.MPI_SOURCE)
            peer.status = message.status;
      }
    }
  }

  /// What this rank does, for a rank that waits in this call.
  RankStatus status_for(std::uint64_t group_id, std::uint64_t number) {
    RankStatus status = board_->status_of(seat());
    for (Entry& entry : entries_) {
      const std::lock_guard lock(entry.mutex);
      if (entry.wait == nullptr) continue;
      if (status.state == RankStatus::State::computes) status.set_text(entry.wait->place());
      status.state = RankStatus::State::waits;
      status.reached = status.reached || (entry.wait->group_id == group_id && number == 0);
    }
    if (board_->has_failed()) {
      status.state = RankStatus::State::failed;
      status.set_text(board_->failure().cause);
    }
    const std::lock_guard lock(mutex_);
    const auto* const calls = calls_of(group_id);
    status.reached = status.reached || (number > 0 && calls != nullptr && *calls >= number);
    return status;
  }

  void look_at(Entry& entry, const MpiWait& wait, bool asks) {
    if (entry.round == 0) {
      entry.round = ++rounds_;
      entry.since = entry.asked = Clock::now();
      entry.postponed = false;
      entry.doubted = {};
      entry.peers.clear();
      return;
    }
    if (seconds_since(entry.asked) < std::clamp(wait.timeout_seconds / 2, 0.3, 1.0)) return;
    std::vector<int> others(wait.world_ranks.begin(), wait.world_ranks.end());
    std::rotate(others.begin(), std::ranges::find(others, rank_), others.end());
    const int next = others[others.size() > 1 ? 1 : 0];
    others.erase(others.begin());
    std::ranges::sort(others);
    const double waited = seconds_since(entry.since);
    // ranks that share memory have met before they call MPI
    if (const RankFailure failure = board_->failure(); is_shared_ && failure.rank >= 0) {
      entry.peers.assign(1, {failure.rank, {RankStatus::State::failed, false, {}}});
      entry.peers.back().status.set_text(failure.cause);
    }
    // before all ranks have been asked, only those that have left or failed matter
    const bool all = !asks || entry.peers.size() == others.size();
    decide(entry, wait, all ? waited : 0, others);
    entry.asked = Clock::now();
    entry.round = ++rounds_;
    if (!asks) return;
    entry.peers.clear();
    for (const int r : others) {
      if (r != next && waited <= wait.timeout_seconds) continue;
      entry.peers.push_back({r, {}});
      send({entry.round, wait.group_id, wait.number, {}}, r, Tag::question);
    }
  }

  /// How long a launcher may take to end the ranks of a job.
  static constexpr double launcher_seconds = 3;

  void decide(Entry& entry, const MpiWait& wait, double waited, std::span<const int> others) {
    std::string reason = reason_to_stop(wait, waited, entry.peers);
    if (reason.empty()) return;
    using State = RankStatus::State;
    const auto any = [&](auto holds) { return std::ranges::any_of(entry.peers, holds); };
    // a rank that has failed, or does not answer, may be ending the job, which takes the launcher
    // time; ranks that wait themselves wait for others, which they name sooner
    double extra_seconds = 0;
    if (any([](const PeerStatus& peer) {
          return peer.status.state == State::failed || peer.status.state == State::silent;
        }))
      extra_seconds = launcher_seconds;
    else if (!any([](const PeerStatus& peer) {
               return peer.status.state != State::waits && !peer.status.reached;
             }))
      extra_seconds = 2 * launcher_seconds;
    if (entry.doubted == Clock::time_point{}) entry.doubted = Clock::now();
    if (seconds_since(entry.doubted) < extra_seconds) return;
    if (entry.peers.empty()) reason += ", waiting for " + ranks_named(others);
    const bool is_first = std::ranges::none_of(entry.peers, [&](const PeerStatus& peer) {
      return peer.rank < rank_ && peer.status.state == RankStatus::State::waits;
    });
    if (!is_first && !std::exchange(entry.postponed, true)) return;
    const Error error(wait.operation, reason, {.rank = rank_});
    end_job(rank_, error.what(), mpi_has_threads());
  }

  MpiComm comm_;
  bool is_shared_;
  std::shared_ptr<StatusBoard> board_;
  int rank_ = 0;
  int size_ = 1;
  int largest_tag_ = 32767;
  int exceptions_at_birth_ = std::uncaught_exceptions();
  std::atomic<bool> is_watched_{false};
  std::array<Entry, 8> entries_{};
  std::vector<std::unique_ptr<Sent>> sent_;
  std::uint64_t rounds_ = 0;
  std::mutex mutex_;  ///< guards the list of groups
  std::vector<std::pair<std::uint64_t, std::shared_ptr<std::atomic<std::uint64_t>>>> groups_;
};

}  // namespace cleave::inline v0::detail
