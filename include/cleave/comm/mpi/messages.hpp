// The messages of one collective, given as views: a view that is not contiguous is packed, others
// are sent and received in place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/requests.hpp>
#include <cleave/tensor/streaming.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

/// Calls f with the transfers to higher ranks than this one, then with the others. Lists are
/// ordered by rank; starting at the next rank keeps ranks from all contacting the same peer first.
/// Transfers to the same peer keep their order.
template <class F>
void for_each_from_next_rank(std::span<const Transfer> transfers, int rank, const F& f) {
  for (const Transfer& t : transfers)
    if (t.peer > rank) f(t);
  for (const Transfer& t : transfers)
    if (t.peer <= rank) f(t);
}

class MpiMessages {
 public:
  /// @throws Error if a rank is known to have failed
  explicit MpiMessages(const MpiOpContext& context) : requests_(context) {}
  MpiMessages(const MpiMessages&) = delete;  // requests have one owner
  MpiMessages& operator=(const MpiMessages&) = delete;

  int rank() const noexcept { return requests_.context().rank; }
  int size() const noexcept { return requests_.context().size; }
  /// The rank `step` places further, cyclically: starting at step 1 keeps ranks from all contacting
  /// the same peer first.
  int after(int step) const noexcept { return (rank() + step) % size(); }
  int before(int step) const noexcept { return (rank() - step + size()) % size(); }
  /// The same for messages that are forwarded in log2(n) steps: of 2^k ranks, those whose numbers
  /// differ by the binary digit `step` exchange. The reply doubles as an acknowledgement, which
  /// would otherwise cost a packet.
  int send_partner(int step) const noexcept { return pairs() ? rank() ^ step : after(step); }
  int receive_partner(int step) const noexcept { return pairs() ? rank() ^ step : before(step); }
  bool pairs() const noexcept { return (size() & (size() - 1)) == 0; }

  void send(const std::byte* data, std::size_t bytes, int peer) {
    requests_.send(data, bytes, peer);
  }
  void receive(std::byte* data, std::size_t bytes, int peer) {
    requests_.receive(data, bytes, peer);
  }

  /// Whether a message of this length goes completely in eager parts.
  bool in_parts(std::size_t bytes) const { return requests_.parts_of(bytes) == bytes; }

  /// See MpiRequests::send_whole.
  void send_whole(const std::byte* data, std::size_t bytes, int peer) {
    requests_.send_whole(data, bytes, peer);
  }
  void receive_whole(std::byte* data, std::size_t bytes, int peer) {
    requests_.receive_whole(data, bytes, peer);
  }

  /// See MpiRequests::announce_receive.
  void announce_receive(std::size_t bytes, int peer) { requests_.announce_receive(bytes, peer); }

  /// Views between two ranks match in order; nothing is sent for an empty one.
  void send(const ConstView& view, int peer) { send(pack(view), std::size_t(view.bytes()), peer); }
  /// A view that is not contiguous is received packed, and unpacked by `finish`.
  void receive(const View& view, int peer) {
    const auto bytes = std::size_t(view.bytes());
    if (view.contiguous()) return receive(static_cast<std::byte*>(view.data), bytes, peer);
    std::byte* packed = scratch(bytes);
    const std::size_t begin = posted();
    receive(packed, bytes, peer);
    unpacks_.push_back({begin, posted(), packed, view});
  }

  /// The elements of a view contiguously: in place if it is contiguous, else as a copy.
  const std::byte* pack(const ConstView& view) {
    if (view.contiguous()) return static_cast<const std::byte*>(view.data);
    std::byte* packed = scratch(std::size_t(view.bytes()));
    pack_view(view, packed);
    return packed;
  }

  /// Memory that lives as long as the messages.
  std::byte* scratch(std::size_t bytes) { return requests_.scratch(bytes); }

  /// The part a rank sends to itself. `finish` copies it in pieces while waiting for peers, because
  /// MPI makes no progress during a copy.
  /// @param array  bytes of the array that `destination` is part of
  void keep(const ConstView& source, const View& destination, index_t array) {
    kept_.push_back({source, destination, std::size_t(array), 0});
  }

  /// A mark for `wait`.
  std::size_t posted() const noexcept { return requests_.posted(); }

  /// Waits for the requests posted between two marks. @throws Error as MpiRequests::wait
  void wait(std::size_t begin, std::size_t end) {
    requests_.wait(begin, end, [] { return false; });
  }

  /// See MpiRequests::forget.
  void forget(std::size_t end) { requests_.forget(end); }

  /// Waits for everything. @throws Error as MpiRequests::wait
  void finish() {
    const auto copy_part = [this] { return copy_kept_part(); };
    for (const Unpack& u : unpacks_) {
      requests_.wait(u.begin, u.end, copy_part);
      unpack_view(u.packed, u.view);
    }
    unpacks_.clear();
    requests_.wait(0, posted(), copy_part);
    for (const Kept& k : kept_) {
      if (k.copied == 0) strided_copy(k.source, k.destination, k.array);
      else copy_run(k.from(), k.to(), k.left(), k.array);
    }
    kept_.clear();
  }

 private:
  struct Unpack {
    std::size_t begin, end;
    const std::byte* packed;
    View view;
  };

  struct Kept {
    ConstView source;
    View destination;
    std::size_t array;   // bytes
    std::size_t copied;  // bytes

    bool dense() const { return source.contiguous() && destination.contiguous(); }
    const std::byte* from() const { return static_cast<const std::byte*>(source.data) + copied; }
    std::byte* to() const { return static_cast<std::byte*>(destination.data) + copied; }
    std::size_t left() const { return std::size_t(source.bytes()) - copied; }
  };

  /// Copies a microsecond's worth of the contiguous self-sends. @return whether it copied any
  bool copy_kept_part() {
    constexpr std::size_t part = 8 << 10;
    for (Kept& k : kept_) {
      const std::size_t bytes = std::min(part, k.left());
      if (bytes == 0 || k.source.data == k.destination.data || !k.dense()) continue;
      copy_run(k.from(), k.to(), bytes, k.array);
      k.copied += bytes;
      return true;
    }
    return false;
  }

  std::vector<Unpack> unpacks_;
  std::vector<Kept> kept_;
  MpiRequests requests_;
};

}  // namespace cleave::detail
