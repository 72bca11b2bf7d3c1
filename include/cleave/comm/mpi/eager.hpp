// Which part of a message goes eagerly: without a reply from its receiver, but copied once more;
// and in which order.
#pragma once

#include <algorithm>
#include <cstddef>

namespace cleave::detail {

/// Maximum bytes of one message; longer ones are split. The same on all ranks. Small in tests.
inline std::size_t mpi_message_limit = std::size_t(1) << 30;

/// The longest part that Open MPI sends over TCP eagerly (btl_tcp_eager_limit: 64 KiB with the
/// header).
inline std::size_t eager_part() { return std::min(std::size_t(60) << 10, mpi_message_limit); }

/// How many bytes are sent eagerly, and how: the same on all ranks. The defaults are for short
/// round trips, with several peers, and for long ones, with one. @see eager_bytes_between
struct EagerBytes {
  /// The total of a rank's messages to several peers, up to which all of them are sent in parts.
  std::size_t to_all = std::size_t(1) << 20;
  /// The same for the only peer.
  std::size_t to_one = std::size_t(1) << 20;
  /// Of a longer message to the only peer, at most a quarter and this many bytes are sent while the
  /// rest waits for the reply. With more peers, their messages overlap it.
  std::size_t of_longer = std::size_t(512) << 10;
  /// Whether a round trip between nodes takes half a millisecond or more.
  bool far = false;
  /// Whether the shortest part of a message is sent before the others, not after them.
  bool shortest_first = false;

  friend bool operator==(const EagerBytes&, const EagerBytes&) = default;
};

/// The number of leading bytes of a message that are sent in eager parts.
inline std::size_t bytes_in_parts(std::size_t bytes, int ranks, const EagerBytes& eager) {
  const auto peers = std::size_t(std::max(1, ranks - 1));
  if (peers > 1) return bytes <= eager.to_all / peers ? bytes : 0;
  return bytes <= eager.to_one ? bytes : std::min(eager.of_longer, bytes / 4);
}

/// Calls post(offset, bytes) for each part of a message whose first `in_parts` bytes are sent
/// eagerly. The rest is posted first, so that its rendezvous begins at once.
template <class Post>
void for_each_part(std::size_t bytes, std::size_t in_parts, bool shortest_first, const Post& post) {
  for (std::size_t at = in_parts; at < bytes; at += mpi_message_limit)
    post(at, std::min(mpi_message_limit, bytes - at));
  const std::size_t shortest = shortest_first ? in_parts % eager_part() : 0;
  if (shortest > 0) post(std::size_t(0), shortest);
  for (std::size_t at = shortest; at < in_parts; at += eager_part())
    post(at, std::min(eager_part(), in_parts - at));
}

}  // namespace cleave::detail
