// Measures the network between two nodes when a world is made: its round trip, and which messages
// arrive sooner in eager parts. That depends on more than the round trip: where TCP paces what it
// sends (BBR), parts win at all lengths; where it does not (CUBIC, Reno), copying them is soon
// slower than the reply that they save.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/mpi/collectives.hpp>
#include <cleave/comm/mpi/eager.hpp>
#include <cleave/comm/mpi/handle.hpp>
#include <cleave/comm/mpi/messages.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

/// One of two ranks that measure the network between them. Both call the same functions.
class NetworkProbe {
 public:
  /// @param pair  of a group of two ranks, with `comm_ranks`; the measurements of the first count
  ///              on both
  explicit NetworkProbe(const MpiOpContext& pair)
      : pair_(pair), peer_(pair.comm_ranks[std::size_t(1 - pair.rank)]) {}

  /// The fastest of a few round trips, in seconds.
  double round_trip() {
    double fastest = std::numeric_limits<double>::max();
    for (int trip = 0; trip < 5; ++trip) {
      const double start = MPI_Wtime();
      if (is_first()) send(nullptr, 0), receive(nullptr, 0);
      else receive(nullptr, 0), send(nullptr, 0);
      fastest = std::min(fastest, MPI_Wtime() - start);
    }
    return agreed(fastest);
  }

  /// How many times sooner an all-to-all of two ranks ends if its messages, of this length, go in
  /// eager parts: the ratio of two medians.
  double gain_in_parts(std::size_t bytes) {
    constexpr int turns = 9;
    const auto part = index_t(bytes);
    source_.resize(2 * bytes), destination_.resize(2 * bytes);
    std::array<std::vector<double>, 2> seconds;  // whole, in parts
    for (int turn = 0; turn <= turns; ++turn)
      for (const int in_parts : {turn % 2, 1 - turn % 2}) {
        pair_.eager = {.to_all = 0, .to_one = in_parts != 0 ? bytes : 0, .of_longer = 0};
        const double time = seconds_of_all_to_all(part);
        if (turn > 0) seconds[std::size_t(in_parts)].push_back(time);  // at first, caches are cold
      }
    for (std::vector<double>& times : seconds)
      std::nth_element(times.begin(), times.begin() + turns / 2, times.end());
    return agreed(seconds[0][turns / 2] / seconds[1][turns / 2]);
  }

 private:
  bool is_first() const { return pair_.rank == 0; }

  void send(const void* data, int bytes) {
    mpi_check(MPI_Send(data, bytes, MPI_BYTE, peer_, 0, pair_.comm), "MPI_Send");
  }
  void receive(void* data, int bytes) {
    mpi_check(MPI_Recv(data, bytes, MPI_BYTE, peer_, 0, pair_.comm, MPI_STATUS_IGNORE), "MPI_Recv");
  }

  /// The number of the first of the two ranks. Neither rank is ahead afterwards.
  double agreed(double number) {
    double answer = number;
    if (is_first()) send(&number, sizeof number), receive(&answer, sizeof answer);
    else receive(&answer, sizeof answer), send(&answer, sizeof answer);
    return answer;
  }

  double seconds_of_all_to_all(index_t part) {
    const auto piece = [&](int r) {
      return Box{Shape::filled(1, r * part), Shape::filled(1, (r + 1) * part)};
    };
    std::array<Transfer, 2> sends, receives;
    for (int r = 0; r < 2; ++r) {
      sends[std::size_t(r)] = {r, piece(r), piece(pair_.rank)};
      receives[std::size_t(r)] = {r, piece(pair_.rank), piece(r)};
    }
    const Shape extents = Shape::filled(1, 2 * part);
    Collective call;
    call.kind = CollectiveKind::all_to_all;
    call.source = ConstView::dense(source_.data(), DType::uint8, extents);
    call.destination = View::dense(destination_.data(), DType::uint8, extents);
    call.sends = sends;
    call.receives = receives;
    agreed(0);
    const double start = MPI_Wtime();
    MpiMessages messages(pair_);
    exchange(call, messages);
    return MPI_Wtime() - start;
  }

  MpiOpContext pair_;
  int peer_;  ///< in the communicator
  std::vector<std::byte> source_{}, destination_{};
};

/// For several peers on a network with this round trip: what is copied, at 2 GB/s (no cache holds
/// that many messages), while a reply arrives; from 1 MiB to 4 MiB.
inline std::size_t eager_bytes_to_all(double round_trip_seconds) {
  constexpr double copied_per_second = 2e9, least = 1 << 20, most = 4 << 20;
  return std::size_t(std::clamp(copied_per_second * round_trip_seconds, least, most));
}

/// The length up to which messages to the only peer are to be sent in parts; 0: none.
/// @param gain  bytes -> `NetworkProbe::gain_in_parts`; called with 128 KiB, 256 KiB, up to 4 MiB
template <class Gain>
std::size_t eager_bytes_to_one(const Gain& gain) {
  // Each measurement is uncertain: the limit is where the product of all gains up to it, each
  // divided by `worthwhile`, is largest.
  constexpr double worthwhile = 1.07;
  double product = 1, largest = 1;
  std::size_t limit = 0;
  for (std::size_t bytes = 128 << 10; bytes <= std::size_t(4) << 20; bytes *= 2) {
    product *= gain(bytes) / worthwhile;
    if (product > largest) largest = product, limit = bytes;
  }
  return limit;
}

/// Whether TCP paces what it sends, as BBR does: a packet then leaves only when the one before it
/// has had its time, and a message of two parts arrives sooner if the short one is first. Without
/// pacing it arrives later.
inline bool tcp_paces() {
  std::ifstream setting("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name;
  return setting >> name && name.starts_with("bbr");
}

/// The eager bytes of messages between the nodes of a world, which the first rank and the first one
/// on another node measure; the defaults if there is none.
///
/// @param world  the context of a call of all its ranks, whose messages do not mix with others
/// @param nodes  of its ranks (nodes_of)
/// @return       the same on all ranks
/// @cost         0.1 to 0.3 s, and 16 MiB on these two ranks; if a round trip takes half a
///               millisecond, five of them
/// @collective   every rank of the world
inline EagerBytes eager_bytes_between(const MpiOpContext& world, std::span<const int> nodes) {
  EagerBytes eager;
  const auto other = std::ranges::find_if(nodes, [&](int node) { return node != nodes[0]; });
  if (other == nodes.end()) return eager;
  const int far = int(other - nodes.begin());
  if (world.rank == 0 || world.rank == far) {
    const int ranks[] = {0, far};
    MpiOpContext pair = world;
    pair.rank = world.rank == 0 ? 0 : 1;
    pair.size = 2;
    pair.comm_ranks = pair.world_ranks = ranks;
    NetworkProbe probe(pair);
    const double round_trip = probe.round_trip();
    eager.to_all = eager_bytes_to_all(round_trip);
    eager.far = round_trip >= 0.5e-3;
    eager.shortest_first = eager.far && tcp_paces();
    if (!eager.far) {  // else parts of the default lengths save more than they cost
      eager.to_one = eager_bytes_to_one([&](std::size_t b) { return probe.gain_in_parts(b); });
      eager.of_longer = 0;
      if (eager.to_one == 0) eager = {0, 0, 0};  // no TCP: replies cost less than any copy
    }
  }
  mpi_check(MPI_Bcast(&eager, int(sizeof eager), MPI_BYTE, 0, world.comm), "MPI_Bcast");
  return eager;
}

}  // namespace cleave::detail
