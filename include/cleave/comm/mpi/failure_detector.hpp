// How a rank learns that it waits in vain: a channel between all ranks of a world, separate from
// the one that carries data.
//
// A rank that fails tells all others. A rank that has waited for a while asks the ranks it waits
// for: a rank whose function has returned answers that it has left, a rank that waits answers that
// it waits, and a rank that computes stays silent. So nothing is sent while all goes well, and
// every wait ends: with its data, or with an error that names the ranks that failed, left or did
// not arrive. After a failure each rank tells all others when it has withdrawn its receives: it no
// longer reads their messages.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <time.h>

#include <cleave/comm/mpi/handle.hpp>
#include <cleave/comm/worker_thread.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

/// One per world and rank; all groups made from the world share it, and two threads of the rank may
/// wait at the same time.
class MpiFailureDetector {
 public:
  /// The rank that failed first, as far as this rank knows, and its error text.
  struct Failure {
    int rank = 0;
    std::string text;
  };

  /// @collective every rank of `world`
  explicit MpiFailureDetector(MPI_Comm world) : comm_(MpiComm::duplicate(world)) {
    mpi_check(MPI_Comm_rank(comm_.get(), &rank_), "MPI_Comm_rank");
    mpi_check(MPI_Comm_size(comm_.get(), &size_), "MPI_Comm_size");
    int* limit = nullptr;
    int is_set = 0;
    mpi_check(MPI_Comm_get_attr(comm_.get(), MPI_TAG_UB, &limit, &is_set), "MPI_Comm_get_attr");
    if (is_set != 0) largest_tag_ = *limit;
    left_.assign(std::size_t(size_), false);
    waits_ = withdrawn_ = asked_by_ = left_;
  }
  MpiFailureDetector(const MpiFailureDetector&) = delete;  // there is one channel
  MpiFailureDetector& operator=(const MpiFailureDetector&) = delete;
  /// Called when the last group of this rank is gone; tells all others if an exception is the
  /// reason.
  ///
  /// The channel is never freed: a note may be in flight to a rank that does not expect it, and
  /// would be delivered to the next communicator to which MPI gives the same context id.
  ~MpiFailureDetector() {
    if (!mpi_is_running()) return;
    if (broken()) {
      announce("its communicators were destroyed by an exception");
      withdraw();
    }
    comm_.abandon();
    try {
      if (!notes_.empty()) keep_until_exit(std::make_shared<Notes>(std::move(notes_)));
    } catch (...) {  // out of memory
    }
  }

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// The largest tag that MPI allows; the same on all ranks.
  int largest_tag() const noexcept { return largest_tag_; }

  /// Whether messages may be in flight that no rank will receive: no group of the world is usable.
  bool broken() const noexcept {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr || is_unwinding();
  }
  /// Whether another rank was the first to fail.
  bool woken() const noexcept {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr && failure_->rank != rank_;
  }

  /// The error of another rank; empty if none has failed, or if this rank failed first.
  std::string cause() const {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr || failure_->rank == rank_) return {};
    return "rank " + std::to_string(failure_->rank) + " failed: " + failure_->text;
  }

  /// @throws Error if a rank is known to have failed
  void throw_if_failed(const char* operation) const {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr)
      throw Error(operation,
                  "rank " + std::to_string(failure_->rank) + " failed: " + failure_->text,
                  {.rank = rank_});
  }

  /// Whether that rank's function has returned. Known only after that rank was asked.
  bool has_left(int rank) const {
    const std::lock_guard lock(mutex_);
    return left_[std::size_t(rank)];
  }
  /// Whether that rank has answered, since it was last asked, that it waits for others.
  bool waits(int rank) const {
    const std::lock_guard lock(mutex_);
    return waits_[std::size_t(rank)];
  }

  /// Whether that rank has announced, after a failure, that it receives nothing more.
  bool has_withdrawn(int rank) const {
    const std::lock_guard lock(mutex_);
    return withdrawn_[std::size_t(rank)];
  }

  /// Asks a rank to tell this one if it has left or waits, and later when it leaves.
  void ask(int rank) {
    const std::lock_guard lock(mutex_);
    waits_[std::size_t(rank)] = false;
    post(Kind::asked, {}, rank);
  }

  /// Receives the notes of other ranks.
  ///
  /// @param looks  probes without a result before this returns: one makes only a little progress
  void listen(int looks = 1) {
    const std::lock_guard lock(mutex_);
    heard_ = MPI_Wtime();
    while (looks > 0) {
      int arrived = 0;
      MPI_Status status;
      mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.get(), &arrived, &status),
                "MPI_Iprobe");
      if (arrived == 0) {
        --looks;
        continue;
      }
      int length = 0;
      mpi_check(MPI_Get_count(&status, MPI_CHAR, &length), "MPI_Get_count");
      std::string text(std::size_t(length), '\0');
      mpi_check(MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG,
                         comm_.get(), MPI_STATUS_IGNORE),
                "MPI_Recv");
      hear(Kind(status.MPI_TAG), status.MPI_SOURCE, std::move(text));
    }
  }

  /// Before this rank communicates: receives the notes of other ranks, at most every 10 ms. A
  /// worker thread does so only while it waits, because MPI may yield the core at each probe to the
  /// thread that computes.
  /// @throws Error if a rank is known to have failed
  void verify(const char* operation) {
    const std::lock_guard lock(mutex_);
    look(operation);
  }

  /// `verify` at one call in 16, or once a failure is known, where a peer that gives up leaves a
  /// mark in shared memory: reading the clock takes a noticeable part of a short call.
  void verify_some(const char* operation) {
    const unsigned calls = calls_.load(std::memory_order_relaxed) + 1;
    calls_.store(calls, std::memory_order_relaxed);
    if (calls % 16 == 0 || failed_.load(std::memory_order_relaxed)) verify(operation);
  }

  /// `verify` before a thread of this rank posts receives, which counts as receiving from then on.
  void enter(const char* operation) {
    const std::lock_guard lock(mutex_);
    look(operation);
    ++receiving_;
  }

  /// Called after all receives of such a thread have ended.
  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    --receiving_;
    if (failure_ != nullptr) withdraw();
  }

  /// Tells all others that this rank has failed, unless a failure is known already.
  void announce(const std::string& text) noexcept {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) return;
    try {
      fail(rank_, text);
      tell_all(Kind::failed, text.substr(0, longest_text));
    } catch (...) {  // if sending fails, peers time out
    }
  }

  /// The last call of a rank: waits until every rank has made it. After a failure it waits for at
  /// most `timeout` seconds, because a rank that computes or is stuck elsewhere does not listen;
  /// otherwise as long as other ranks run.
  ///
  /// @return whether all ranks have arrived and none has failed
  /// @collective every rank
  bool part(double timeout) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      mine_ = failure_ != nullptr ? 1 : 0;
      MPI_Request request = MPI_REQUEST_NULL;
      mpi_check(MPI_Iallreduce(&mine_, &any_, 1, MPI_INT, MPI_MAX, comm_.get(), &request),
                "MPI_Iallreduce");
      leaving_ = true;
      for (int r = 0; r < size_; ++r)
        if (asked_by_[std::size_t(r)]) post(Kind::left, {}, r);
      double known = 0;  // when a failure became known
      for (int polls = 0;; ++polls) {
        int done = 0;
        mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        listen();
        reap();
        if (done != 0) return any_ == 0;
        if (failure_ != nullptr) {
          withdraw();
          if (known == 0) known = MPI_Wtime();
          if (MPI_Wtime() > known + timeout) return false;
        }
        if (polls < 1000) {
          sched_yield();
        } else {
          const timespec nap{0, 200'000};
          nanosleep(&nap, nullptr);
        }
      }
    } catch (...) {
      return false;
    }
  }

 private:
  /// What a note says, as its tag.
  enum class Kind : int { failed, asked, left, waits, withdrawn };

  struct Note {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  using Notes = std::vector<std::unique_ptr<Note>>;

  /// Notes are short enough to be sent eagerly, whether or not the receiver listens.
  static constexpr std::size_t longest_text = 1000;

  /// How long a rank may communicate without checking for a peer's failure: less than peers wait
  /// for its withdrawal (MpiRequests::drain). Open MPI yields the core at each check, which, done
  /// at every call of some milliseconds, costs several percent where processes share cores.
  static constexpr double seconds_between_looks = 0.1;

  bool is_unwinding() const noexcept { return std::uncaught_exceptions() > exceptions_at_birth_; }

  void look(const char* operation) {
    if (!is_worker_thread() && MPI_Wtime() > heard_ + seconds_between_looks) listen(8);
    if (failure_ == nullptr) return;
    withdraw();
    throw_if_failed(operation);
  }

  void fail(int rank, std::string text) {
    failure_ = std::make_unique<Failure>(Failure{rank, std::move(text)});
    failed_.store(true, std::memory_order_relaxed);
  }

  /// After a failure, once no receive is open: tells all others, once. None is posted afterwards.
  void withdraw() noexcept {
    if (receiving_ > 0 || withdrawn_[std::size_t(rank_)]) return;
    withdrawn_[std::size_t(rank_)] = true;
    try {
      tell_all(Kind::withdrawn, {});
    } catch (...) {  // the others wait for this for a limited time
    }
  }

  /// Returns when the notes have been sent, or after 1 s.
  void tell_all(Kind kind, const std::string& text) {
    for (int step = 1; step < size_; ++step) post(kind, text, (rank_ + step) % size_);
    for (const double end = MPI_Wtime() + 1; !notes_.empty() && MPI_Wtime() < end;) reap();
  }

  void post(Kind kind, std::string text, int rank) {
    notes_.push_back(std::make_unique<Note>(Note{std::move(text)}));
    Note& note = *notes_.back();
    mpi_check(MPI_Isend(note.text.data(), int(note.text.size()), MPI_CHAR, rank, int(kind),
                        comm_.get(), &note.request),
              "MPI_Isend");
  }

  void hear(Kind kind, int from, std::string text) {
    switch (kind) {
      case Kind::failed:
        if (failure_ == nullptr) fail(from, std::move(text));
        break;
      case Kind::asked:
        asked_by_[std::size_t(from)] = true;
        post(leaving_ ? Kind::left : Kind::waits, {}, from);
        break;
      case Kind::left: left_[std::size_t(from)] = true; break;
      case Kind::waits: waits_[std::size_t(from)] = true; break;
      case Kind::withdrawn: withdrawn_[std::size_t(from)] = true; break;
    }
  }

  /// Frees the notes that have been sent.
  void reap() {
    std::erase_if(notes_, [](const std::unique_ptr<Note>& note) {
      int done = 0;
      mpi_check(MPI_Test(&note->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      return done != 0;
    });
  }

  mutable std::recursive_mutex mutex_;
  MpiComm comm_;
  int rank_ = 0;
  int size_ = 1;
  int largest_tag_ = 32767;
  int exceptions_at_birth_ = std::uncaught_exceptions();
  std::unique_ptr<Failure> failure_;
  std::atomic<bool> failed_{false};  ///< whether `failure_` is set
  std::atomic<unsigned> calls_{0};   ///< of `verify_some`
  std::vector<bool> left_;
  std::vector<bool> waits_;
  std::vector<bool> withdrawn_;
  std::vector<bool> asked_by_;
  Notes notes_;
  double heard_ = 0;   ///< when this rank last listened
  int receiving_ = 0;  ///< threads of this rank that may have receives open
  bool leaving_ = false;
  int mine_ = 0;  // what `part` reduces
  int any_ = 0;
};

}  // namespace cleave::detail
