// The requests of one collective: posted without blocking, split where MPI's counts are too narrow
// or where shorter parts go eagerly, and waited for with failure detection and a time-out.
//
// A message of n bytes matches only a receive of n bytes, since its tag depends on n: Open MPI
// writes past a receive buffer that is shorter than the message. Ranks that disagree about sizes
// get an error that says so, whatever the value of CLEAVE_CHECK.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>

#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/mpi/eager.hpp>
#include <cleave/comm/mpi/handle.hpp>
#include <cleave/comm/mpi/workspace.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

class MpiRequests {
 public:
  /// @throws Error if a rank is known to have failed
  explicit MpiRequests(const MpiOpContext& context) : context_(context) {
    if (context_.workspace != nullptr) work_ = std::move(*context_.workspace);
    if (work_ == nullptr) work_ = std::make_unique<MpiWorkspace>();
    context_.detector->enter(context_.operation);
  }
  MpiRequests(const MpiRequests&) = delete;  // a request has one owner
  MpiRequests& operator=(const MpiRequests&) = delete;
  ~MpiRequests() {
    if (!withdraw()) work_->scratch.abandon();
    if (entered_) context_.detector->leave();
    if (context_.workspace == nullptr) return;
    work_->clear();
    *context_.workspace = std::move(work_);
  }

  const MpiOpContext& context() const noexcept { return context_; }

  /// Memory that lives as long as the requests; until exit if MPI may still access it then.
  std::byte* scratch(std::size_t bytes) { return work_->scratch.take(bytes); }

  /// The number of requests posted so far: a mark for `wait`.
  std::size_t posted() const noexcept { return forgotten_ + work_->requests.size(); }

  /// Removes the requests before a mark from the lists. @pre they are complete
  void forget(std::size_t end) {
    const auto count = std::ptrdiff_t(end - forgotten_);
    work_->requests.erase(work_->requests.begin(), work_->requests.begin() + count);
    work_->posted.erase(work_->posted.begin(), work_->posted.begin() + count);
    forgotten_ = end;
  }

  /// The leading bytes of a message that go in eager parts.
  std::size_t parts_of(std::size_t bytes) const {
    return bytes_in_parts(bytes, context_.size, context_.eager);
  }

  void send(const std::byte* data, std::size_t bytes, int peer) {
    send_parts(data, bytes, peer, parts_of(bytes));
  }
  void receive(std::byte* data, std::size_t bytes, int peer) {
    receive_parts(data, bytes, peer, parts_of(bytes));
  }

  /// For data that the caller has split: one message of up to `mpi_message_limit` bytes.
  void send_whole(const std::byte* data, std::size_t bytes, int peer) {
    send_parts(data, bytes, peer, 0);
  }
  void receive_whole(std::byte* data, std::size_t bytes, int peer) {
    receive_parts(data, bytes, peer, 0);
  }

  /// A receive of this size will be posted later, so that its message is not unexpected.
  void announce_receive(std::size_t bytes, int peer) {
    work_->later.push_back({peer, bytes, bytes, true});
  }

  /// Waits for the requests posted between two marks.
  ///
  /// @param meanwhile  called when nothing has arrived: does a little other work and returns
  ///                   whether there was any
  /// @throws Error if a rank has failed or left, sends another size, or does not send in time
  template <class Meanwhile>
  void wait(std::size_t begin, std::size_t end, const Meanwhile& meanwhile) {
    begin = std::max(begin, forgotten_) - forgotten_;  // from here on: indices into the lists
    end = std::max(end, forgotten_) - forgotten_;
    std::size_t pending = 0;
    for (std::size_t i = begin; i < end; ++i) pending += is_open(i);
    MpiBackoff backoff(context_);
    double unexpected_since = 0;
    while (pending > 0) {
      const std::size_t done = complete(begin, end);
      pending -= done;
      if (done > 0) backoff.renew(), unexpected_since = 0;
      else if (meanwhile()) continue;
      else if (backoff.rest([&] { return awaited(begin, end); }) && backoff.waited() > 0.2)
        find_unexpected_message(begin, end, unexpected_since);
    }
  }

  /// Withdraws the open requests, so that MPI does not access memory whose owner an exception is
  /// about to destroy; the group is unusable afterwards. A receive in progress ends within moments,
  /// because its sender drains its requests too; a send is harmless once its receiver has
  /// withdrawn. A rank that computes is waited for 2 s at most: it hears of the failure before it
  /// receives.
  ///
  /// @return whether MPI no longer accesses the memory of any message
  bool withdraw() noexcept {
    if (open_ == 0) return true;
    try {
      MpiFailureDetector& detector = *context_.detector;
      detector.announce(std::string(context_.operation) + " was interrupted by an exception");
      for (std::size_t i = 0; i < work_->requests.size(); ++i)
        if (is_open(i) && work_->posted[i].receives) MPI_Cancel(&work_->requests[i]);
      drain([](const MpiPosted& message) { return message.receives; });
      if (std::exchange(entered_, false)) detector.leave();
      drain([&](const MpiPosted& message) {
        return message.receives || !detector.has_withdrawn(world_rank(message.peer));
      });
    } catch (...) {  // out of memory, or MPI fails too: the requests stay open
    }
    return std::exchange(open_, 0) == 0;
  }

 private:
  void send_parts(const std::byte* data, std::size_t bytes, int peer, std::size_t in_parts) {
    for_each_part(bytes, in_parts, shortest_first(), [&](std::size_t at, std::size_t part) {
      check(MPI_Isend(data + at, int(part), MPI_BYTE, comm_rank(peer), context_.tag(bytes),
                      context_.comm, open(peer, part, bytes, false)),
            "MPI_Isend");
    });
  }
  void receive_parts(std::byte* data, std::size_t bytes, int peer, std::size_t in_parts) {
    for_each_part(bytes, in_parts, shortest_first(), [&](std::size_t at, std::size_t part) {
      check(MPI_Irecv(data + at, int(part), MPI_BYTE, comm_rank(peer), context_.tag(bytes),
                      context_.comm, open(peer, part, bytes, true)),
            "MPI_Irecv");
    });
  }

  /// Appends an open request.
  MPI_Request* open(int peer, std::size_t bytes, std::size_t whole, bool receives) {
    work_->posted.push_back({peer, bytes, whole, receives});
    work_->requests.push_back(MPI_REQUEST_NULL);
    ++open_;
    return &work_->requests.back();
  }

  bool is_open(std::size_t i) const noexcept { return work_->requests[i] != MPI_REQUEST_NULL; }

  /// Waits, for at most 2 s, until no request for which `matters` holds is open.
  template <class Matters>
  void drain(Matters matters) {
    work_->indices.resize(work_->requests.size());
    for (const double end = MPI_Wtime() + 2; MPI_Wtime() < end; sched_yield()) {
      int done = 0;
      MPI_Testsome(int(work_->requests.size()), work_->requests.data(), &done,
                   work_->indices.data(), MPI_STATUSES_IGNORE);
      context_.detector->listen();
      open_ = 0;
      for (std::size_t i = 0; i < work_->requests.size(); ++i)
        open_ += is_open(i) && matters(work_->posted[i]);
      if (open_ == 0) return;
    }
  }

  /// @return how many requests of the range completed just now
  std::size_t complete(std::size_t begin, std::size_t end) {
    work_->indices.resize(end - begin);
    work_->statuses.resize(end - begin);
    int done = 0;
    const int code = MPI_Testsome(int(end - begin), &work_->requests[begin], &done,
                                  work_->indices.data(), work_->statuses.data());
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check(code, "MPI_Testsome");
    if (done == MPI_UNDEFINED) return 0;
    open_ -= std::size_t(done);
    for (std::size_t i = 0; i < std::size_t(done); ++i)
      inspect(work_->posted[begin + std::size_t(work_->indices[i])], work_->statuses[i], code);
    return std::size_t(done);
  }

  void inspect(const MpiPosted& message, MPI_Status& status, int code) {
    if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS)
      context_.fail(mpi_error_text(status.MPI_ERROR) + " in " + context_.where());
    if (!message.receives) return;
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (std::size_t(bytes) != message.bytes) disagree(message, bytes);
  }

  /// Looks for a message from an awaited rank that stays unmatched: then the ranks disagree.
  void find_unexpected_message(std::size_t begin, std::size_t end, double& unexpected_since) {
    for (std::size_t i = begin; i < end; ++i) {
      if (!is_open(i) || !work_->posted[i].receives) continue;
      int found = 0, bytes = 0;
      MPI_Status status;
      check(
          MPI_Iprobe(comm_rank(work_->posted[i].peer), MPI_ANY_TAG, context_.comm, &found, &status),
          "MPI_Iprobe");
      if (found == 0 || is_expected(work_->posted[i].peer, status.MPI_TAG)) continue;
      if (unexpected_since == 0) unexpected_since = MPI_Wtime();
      if (MPI_Wtime() < unexpected_since + 0.2) return;
      check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      disagree(work_->posted[i], bytes);
    }
  }

  bool is_expected(int peer, int tag) const noexcept {
    for (const std::vector<MpiPosted>* list : {&work_->posted, &work_->later})
      for (const MpiPosted& message : *list)
        if (message.receives && message.peer == peer && context_.tag(message.whole) == tag)
          return true;
    return false;
  }

  [[noreturn]] void disagree(const MpiPosted& message, int bytes) const {
    const bool may_be_part = shortest_first() || std::size_t(bytes) >= eager_part();
    context_.fail("rank " + std::to_string(world_rank(message.peer)) + " sends " +
                  (may_be_part ? "at least " : "") + std::to_string(bytes) + " bytes where rank " +
                  std::to_string(context_.detector->rank()) + " expects " +
                  std::to_string(message.whole) + " in " + context_.where());
  }

  /// The world ranks of the peers of open requests, ascending.
  std::vector<int> awaited(std::size_t begin, std::size_t end) const {
    std::vector<int> ranks;
    for (std::size_t i = begin; i < end; ++i)
      if (is_open(i)) ranks.push_back(world_rank(work_->posted[i].peer));
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  bool shortest_first() const noexcept { return context_.eager.shortest_first; }

  int comm_rank(int peer) const {
    return context_.comm_ranks.empty() ? peer : context_.comm_ranks[std::size_t(peer)];
  }
  int world_rank(int peer) const { return context_.world_ranks[std::size_t(peer)]; }

  void check(int code, const char* call) {
    if (code != MPI_SUCCESS) context_.fail(std::string(call) + ": " + mpi_error_text(code));
  }

  MpiOpContext context_;
  std::unique_ptr<MpiWorkspace> work_;
  std::size_t open_ = 0;       ///< requests that have not completed
  std::size_t forgotten_ = 0;  ///< requests removed from the lists
  bool entered_ = true;        ///< the failure detector counts this as receiving
};

}  // namespace cleave::detail
