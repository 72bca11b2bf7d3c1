// The requests of one collective: posted without blocking, split where MPI's counts are too narrow,
// and waited for with an eye on the watch and the clock.
//
// A message of n bytes must be received as n bytes: ranks that disagree about sizes get an error
// that says so, whatever CLEAVE_CHECK is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>

#include <cleave/comm/mpi_handle.hpp>
#include <cleave/comm/mpi_watch.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

/// The most bytes of one message; longer ones are split. The same on all ranks. Small in tests.
inline std::size_t mpi_message_limit = std::size_t(1) << 30;

/// Where messages go and on whose behalf.
struct MpiRoute {
  MPI_Comm comm = MPI_COMM_NULL;
  int tag = 0;
  int rank = 0;  ///< in the group
  int size = 1;
  std::span<const int> comm_ranks{};   ///< of the members of the group; empty: the same numbers
  std::span<const int> world_ranks{};  ///< likewise, in the world of `watch`
  MpiWatch* watch = nullptr;
  const std::string* label = nullptr;
  std::string operation{};
  double timeout_seconds = 0;
};

class MpiRequests {
 public:
  /// @throws Error if a rank is known to have failed
  explicit MpiRequests(MpiRoute route) : route_(std::move(route)) {
    route_.watch->listen_now_and_then();
    route_.watch->throw_if_failed(route_.operation);
  }
  MpiRequests(const MpiRequests&) = delete;  // a request has one owner
  MpiRequests& operator=(const MpiRequests&) = delete;
  ~MpiRequests() { withdraw(); }

  const MpiRoute& route() const noexcept { return route_; }

  /// How many have been posted: marks for `wait`.
  std::size_t posted() const noexcept { return requests_.size(); }

  void send(const std::byte* data, std::size_t bytes, int peer) {
    for (std::size_t at = 0; at < bytes; at += mpi_message_limit) {
      const std::size_t part = std::min(mpi_message_limit, bytes - at);
      check(MPI_Isend(data + at, int(part), MPI_BYTE, comm_rank(peer), route_.tag, route_.comm,
                      open(peer, part, false)),
            "MPI_Isend");
    }
  }
  void receive(std::byte* data, std::size_t bytes, int peer) {
    for (std::size_t at = 0; at < bytes; at += mpi_message_limit) {
      const std::size_t part = std::min(mpi_message_limit, bytes - at);
      check(MPI_Irecv(data + at, int(part), MPI_BYTE, comm_rank(peer), route_.tag, route_.comm,
                      open(peer, part, true)),
            "MPI_Irecv");
    }
  }

  /// Waits for the requests posted between two marks.
  /// @throws Error if a rank has failed or left, sends another size, or does not come in time
  void wait(std::size_t begin, std::size_t end) {
    std::size_t pending = 0;
    for (std::size_t i = begin; i < end; ++i) pending += requests_[i] != MPI_REQUEST_NULL;
    Idle idle;
    while (pending > 0) {
      const std::size_t done = complete(begin, end);
      pending -= done;
      if (done > 0) idle = {};
      else rest(idle, begin, end);
    }
  }

  /// Takes back what is still open, so that nothing is written to memory whose owner an exception
  /// is about to destroy; the group is of no use any more. A receive that has begun ends within
  /// moments, since its sender does the same; a send that nobody takes is left to itself.
  ///
  /// @return whether MPI is done with the memory of all messages
  bool withdraw() noexcept {
    if (open_ == 0) return true;
    try {
      route_.watch->announce(route_.operation + " ended half-way");
      for (std::size_t i = 0; i < posted(); ++i)
        if (about_[i].receives && requests_[i] != MPI_REQUEST_NULL) MPI_Cancel(&requests_[i]);
      indices_.resize(posted());
      const double begin = MPI_Wtime();
      while (open_ > 0 && MPI_Wtime() < begin + (receives_open() ? 2.0 : 0.2)) {
        int done = 0;
        MPI_Testsome(int(posted()), requests_.data(), &done, indices_.data(),
                     MPI_STATUSES_IGNORE);
        if (done != MPI_UNDEFINED) open_ -= std::size_t(done);
        if (done == 0) sched_yield();
      }
    } catch (...) {  // out of memory: what is open stays open
    }
    return std::exchange(open_, 0) == 0;
  }

 private:
  struct About {
    int peer = 0;
    std::size_t bytes = 0;
    bool receives = false;
  };
  /// A time in which no request completed.
  struct Idle {
    long polls = 0;
    double since = 0;
    double left_since = 0;  ///< when an awaited rank was found to have left
    double late_since = 0;  ///< when the time was out
    bool asked = false;
  };

  /// How long a rank that left may still be heard of, as its last messages may be under way; and
  /// how long a rank has to answer.
  static constexpr double grace_seconds = 0.25;

  /// Room for one more request.
  MPI_Request* open(int peer, std::size_t bytes, bool receives) {
    about_.push_back({peer, bytes, receives});
    requests_.push_back(MPI_REQUEST_NULL);
    ++open_;
    return &requests_.back();
  }

  bool receives_open() const noexcept {
    for (std::size_t i = 0; i < posted(); ++i)
      if (about_[i].receives && requests_[i] != MPI_REQUEST_NULL) return true;
    return false;
  }

  /// @return how many requests of the range completed just now
  std::size_t complete(std::size_t begin, std::size_t end) {
    indices_.resize(end - begin);
    statuses_.resize(end - begin);
    int done = 0;
    const int code = MPI_Testsome(int(end - begin), &requests_[begin], &done, indices_.data(),
                                  statuses_.data());
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check(code, "MPI_Testsome");
    if (done == MPI_UNDEFINED) return 0;
    open_ -= std::size_t(done);
    for (std::size_t i = 0; i < std::size_t(done); ++i)
      inspect(about_[begin + std::size_t(indices_[i])], statuses_[i], code);
    return std::size_t(done);
  }

  void inspect(const About& about, MPI_Status& status, int code) {
    const auto disagree = [&](const std::string& sent) {
      fail("rank " + std::to_string(world_rank(about.peer)) + " sends " + sent + " the " +
           std::to_string(about.bytes) + " bytes that rank " +
           std::to_string(route_.watch->rank()) + " expects in " + where());
    };
    if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS) {
      int kind = status.MPI_ERROR;
      MPI_Error_class(status.MPI_ERROR, &kind);
      if (kind == MPI_ERR_TRUNCATE) disagree("more than");
      fail(mpi_error_text(status.MPI_ERROR) + " in " + where());
    }
    if (!about.receives) return;
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (std::size_t(bytes) != about.bytes) disagree(std::to_string(bytes) + " of");
  }

  /// What a rank does while nothing arrives: first poll fast, then leave the core to others; every
  /// few polls hear whether it waits in vain.
  void rest(Idle& idle, std::size_t begin, std::size_t end) {
    if (++idle.polls > 50) sched_yield();
    if (idle.polls % 16 != 0) return;
    MpiWatch& watch = *route_.watch;
    watch.listen();
    watch.throw_if_failed(route_.operation);
    const double now = MPI_Wtime();
    if (idle.since == 0) idle.since = now;
    const double waited = now - idle.since;
    if (!idle.asked && waited > std::min(1.0, route_.timeout_seconds / 4)) {
      idle.asked = true;
      for (const int r : awaited(begin, end)) watch.ask(r);
    }
    const auto has_left = [&](int r) { return watch.has_left(r); };
    if (const std::vector<int> gone = awaited(begin, end, has_left); !gone.empty()) {
      if (idle.left_since == 0) idle.left_since = now;
      if (now > idle.left_since + grace_seconds)
        fail(listed(gone) + " left while rank " + std::to_string(watch.rank()) + " waits in " +
             where());
    }
    if (waited > route_.timeout_seconds) find_culprit(idle, now, begin, end);
  }

  /// After the time-out: asks the awaited ranks, and names those that do not answer. One that waits
  /// in its turn is about to find who is to blame; if it does not, they wait for each other.
  void find_culprit(Idle& idle, double now, std::size_t begin, std::size_t end) {
    MpiWatch& watch = *route_.watch;
    if (idle.late_since == 0) {
      idle.late_since = now;
      for (const int r : awaited(begin, end)) watch.ask(r);
    }
    if (now < idle.late_since + grace_seconds) return;
    char limit[64];
    std::snprintf(limit, sizeof limit, " within %g s", route_.timeout_seconds);
    const auto is_silent = [&](int r) { return !watch.waits(r); };
    if (const std::vector<int> silent = awaited(begin, end, is_silent); !silent.empty())
      fail(listed(silent) + " did not come to " + where() + limit);
    if (now > idle.late_since + 8 * grace_seconds)
      fail(listed(awaited(begin, end)) + " did not come to " + where() + limit +
           ", waiting elsewhere");
  }

  /// World ranks of those whose messages are open, if they are such.
  template <class Such>
  std::vector<int> awaited(std::size_t begin, std::size_t end, Such such) const {
    std::vector<int> ranks;
    for (std::size_t i = begin; i < end; ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      if (const int r = world_rank(about_[i].peer); such(r)) ranks.push_back(r);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }
  std::vector<int> awaited(std::size_t begin, std::size_t end) const {
    return awaited(begin, end, [](int) { return true; });
  }

  /// "rank 2", "ranks 1, 3"
  static std::string listed(const std::vector<int>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
    return text;
  }

  int comm_rank(int peer) const {
    return route_.comm_ranks.empty() ? peer : route_.comm_ranks[std::size_t(peer)];
  }
  int world_rank(int peer) const { return route_.world_ranks[std::size_t(peer)]; }

  std::string where() const { return route_.operation + " of group '" + *route_.label + "'"; }

  void check(int code, const char* call) {
    if (code != MPI_SUCCESS) fail(std::string(call) + ": " + mpi_error_text(code));
  }

  /// Gives up, and tells all others: the ranks are out of step from here on.
  [[noreturn]] void fail(const std::string& message) {
    const Error error(route_.operation, message, {.rank = route_.watch->rank()});
    route_.watch->announce(error.what());
    throw error;
  }

  MpiRoute route_;
  std::vector<MPI_Request> requests_;
  std::vector<About> about_;  ///< the request of the same index
  std::size_t open_ = 0;      ///< requests that have not completed
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace cleave::detail
