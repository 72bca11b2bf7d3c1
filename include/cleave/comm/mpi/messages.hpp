// The messages of one call, given as views: a view that is not contiguous is packed, others are
// sent and received in place.
//
// A message of n bytes matches only a receive of n bytes, since its tag depends on n: Open MPI
// writes past a receive buffer that is shorter than the message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/mpi/scratch.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

class MpiMessages {
 public:
  /// @param context  must outlive this
  /// @throws Error if a rank is known to have failed
  explicit MpiMessages(const MpiOpContext& context) : context_(context) {
    context_.detector->verify(context_.operation);
  }
  MpiMessages(const MpiMessages&) = delete;  // requests have one owner
  MpiMessages& operator=(const MpiMessages&) = delete;
  /// After an exception MPI must not write to memory that the exception destroys.
  ~MpiMessages() {
    int done = requests_.empty() ? 1 : 0;
    for (MPI_Request& request : requests_)
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    for (const double end = MPI_Wtime() + 1; done == 0 && MPI_Wtime() < end;)
      MPI_Testall(int(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    if (done == 0) scratch_.abandon();
  }

  /// Messages between two ranks match in order; nothing is sent for an empty view.
  void send(const ConstView& view, int peer) {
    const auto bytes = std::size_t(view.bytes());
    const void* data = view.data;
    if (!view.contiguous()) {
      void* const packed = scratch_.take(bytes);
      pack_view(view, packed);
      data = packed;
    }
    in_fragments(bytes, [&](std::size_t at, int length, MPI_Request* request) {
      check(MPI_Isend(static_cast<const std::byte*>(data) + at, length, MPI_BYTE,
                      context_.in_comm(peer), context_.tag(bytes), context_.comm, request),
            "MPI_Isend");
      peers_.push_back(peer);
    });
  }

  /// A view that is not contiguous is unpacked by `finish`.
  void receive(const View& view, int peer) {
    const auto bytes = std::size_t(view.bytes());
    void* data = view.data;
    if (!view.contiguous() && bytes > 0) {
      data = scratch_.take(bytes);
      unpacks_.push_back({data, view});
    }
    in_fragments(bytes, [&](std::size_t at, int length, MPI_Request* request) {
      check(MPI_Irecv(static_cast<std::byte*>(data) + at, length, MPI_BYTE, context_.in_comm(peer),
                      context_.tag(bytes), context_.comm, request),
            "MPI_Irecv");
      peers_.push_back(peer);
    });
  }

  /// Waits for everything. If it does not arrive in time, the job ends.
  void finish() {
    const MpiBlockingCall listed(context_);
    MpiBackoff backoff(context_);
    const int count = int(requests_.size());
    if (!is_worker_thread())
      check(MPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    else
      for (int done = 0;; backoff.pause()) {
        check(MPI_Testall(count, requests_.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
        if (done != 0) break;
      }
    unpack();
  }

  /// The same for short messages. If they do not arrive in time, the job ends between nodes;
  /// @throws Error if a rank has failed or left, or does not arrive in time
  void finish_short() {
    MpiBackoff backoff(context_);
    for (int done = 0;;) {
      check(MPI_Testall(int(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
      if (done != 0) break;
      // MPI_Testall completes all requests or none
      backoff.rest([this](int r) { return std::ranges::count(peers_, r) > 0; });
    }
    unpack();
  }

 private:
  struct Unpack {
    const void* packed;
    View view;
  };

  void unpack() {
    requests_.clear(), peers_.clear();
    for (const Unpack& u : unpacks_) unpack_view(u.packed, u.view);
    unpacks_.clear();
  }

  /// Calls post(offset, bytes, request) for each fragment of a message: the longest that MPI's
  /// counts allow.
  template <class Post>
  void in_fragments(std::size_t bytes, const Post& post) {
    for (std::size_t at = 0; at < bytes; at += context_.longest_message) {
      MPI_Request request = MPI_REQUEST_NULL;
      post(at, int(std::min(context_.longest_message, bytes - at)), &request);
      requests_.push_back(request);
    }
  }

  void check(int code, const char* call) const {
    if (code != MPI_SUCCESS)
      context_.fail(std::string(call) + ": " + mpi_error_string(code) + " in " + context_.place());
  }

  const MpiOpContext& context_;
  std::vector<MPI_Request> requests_{};
  std::vector<int> peers_{};  ///< of the request with the same index
  std::vector<Unpack> unpacks_{};
  MpiScratch& scratch_ = *context_.scratch;
};

/// Runs an exchange or an all-to-all. Sends start at the next rank; transfers between two ranks
/// keep their order.
inline void exchange(const Collective& c, const MpiOpContext& context) {
  const int rank = context.rank;
  MpiMessages messages(context);
  for (const Transfer& t : c.receives)
    if (t.peer != rank) messages.receive(c.destination[t.destination], t.peer);
  each_sent(c, rank, context.size, [&](int r, const Box& from, const Box& to) {
    if (r != rank) return messages.send(c.source[from], r);
    const ConstView source = c.source[from];
    const View destination = c.destination[to];
    if (source.size() > 0 && source.data != destination.data) strided_copy(source, destination);
  });
  messages.finish();
}

}  // namespace cleave::inline v0::detail
