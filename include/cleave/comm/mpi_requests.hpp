// The requests of one collective: posted without blocking, split where MPI's counts are too narrow,
// and waited for with an eye on the watch and the clock.
//
// A message of n bytes must be received as n bytes: ranks that disagree about sizes get an error
// that says so, whatever CLEAVE_CHECK is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>

#include <cleave/comm/mpi_handle.hpp>
#include <cleave/comm/mpi_patience.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

/// The most bytes of one message; longer ones are split. The same on all ranks. Small in tests.
inline std::size_t mpi_message_limit = std::size_t(1) << 30;

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
    MpiPatience patience(route_);
    while (pending > 0) {
      const std::size_t done = complete(begin, end);
      pending -= done;
      if (done > 0) patience.renew();
      else patience.rest([&] { return awaited(begin, end); });
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
      route_.fail("rank " + std::to_string(world_rank(about.peer)) + " sends " + sent + " the " +
           std::to_string(about.bytes) + " bytes that rank " +
           std::to_string(route_.watch->rank()) + " expects in " + route_.where());
    };
    if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS) {
      int kind = status.MPI_ERROR;
      MPI_Error_class(status.MPI_ERROR, &kind);
      if (kind == MPI_ERR_TRUNCATE) disagree("more than");
      route_.fail(mpi_error_text(status.MPI_ERROR) + " in " + route_.where());
    }
    if (!about.receives) return;
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (std::size_t(bytes) != about.bytes) disagree(std::to_string(bytes) + " of");
  }

  /// World ranks of those whose messages are open, ascending.
  std::vector<int> awaited(std::size_t begin, std::size_t end) const {
    std::vector<int> ranks;
    for (std::size_t i = begin; i < end; ++i)
      if (requests_[i] != MPI_REQUEST_NULL) ranks.push_back(world_rank(about_[i].peer));
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  int comm_rank(int peer) const {
    return route_.comm_ranks.empty() ? peer : route_.comm_ranks[std::size_t(peer)];
  }
  int world_rank(int peer) const { return route_.world_ranks[std::size_t(peer)]; }

  void check(int code, const char* call) {
    if (code != MPI_SUCCESS) route_.fail(std::string(call) + ": " + mpi_error_text(code));
  }

  MpiRoute route_;
  std::vector<MPI_Request> requests_;
  std::vector<About> about_;  ///< the request of the same index
  std::size_t open_ = 0;      ///< requests that have not completed
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace cleave::detail
