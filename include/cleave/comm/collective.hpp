// A collective operation as a value: the call of one rank.
//
// Sources and destinations are strided views; pieces and transfers are boxes of indices in them, so
// that a backend that reads peers directly packs nothing, and one that sends messages packs once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/core/call_site.hpp>
#include <cleave/core/checksum.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

enum class CollectiveKind : std::uint8_t {
  barrier,
  broadcast,
  scatter,
  gather,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  exchange,
};

constexpr const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::barrier: return "barrier";
    case CollectiveKind::broadcast: return "broadcast";
    case CollectiveKind::scatter: return "scatter";
    case CollectiveKind::gather: return "gather";
    case CollectiveKind::all_gather: return "all_gather";
    case CollectiveKind::reduce_scatter: return "reduce_scatter";
    case CollectiveKind::all_reduce: return "all_reduce";
    case CollectiveKind::all_to_all: return "all_to_all";
    case CollectiveKind::exchange: return "exchange";
  }
  return "unknown";
}

/// A checksum of what ranks must agree on, as a `Collective::detail`.
constexpr std::uint64_t checksum_detail(std::uint64_t checksum) {
  return std::uint64_t(15) << 60 | checksum >> 4;
}

/// Dimensions or pairs of ranks, as such a number: up to 15 numbers less than 15 take four bits
/// each; otherwise a checksum replaces them.
constexpr std::uint64_t packed_detail(std::span<const int> numbers) {
  bool fits = numbers.size() <= 15;
  std::uint64_t digits = 0;
  for (std::size_t i = 0; fits && i < numbers.size(); ++i) {
    const auto number = std::uint64_t(numbers[i]);
    fits = number < 15;
    digits |= (number + 1) << 4 * i;
  }
  return fits ? digits : checksum_detail(detail::checksum(numbers));
}

/// Two numbers less than 2^30 that distinguish calls which look alike, as such a number.
constexpr std::uint64_t numbered_detail(int first, int second) {
  return std::uint64_t(14) << 60 | std::uint64_t(first) << 30 | std::uint64_t(second);
}

/// A detail: " along dimensions 1, 0", " with pairs {0, 1}, {1, 0}", " with numbers 1, 2" or
/// " with checksum 5"; empty for 0.
inline std::string detail_to_string(CollectiveKind kind, std::uint64_t detail) {
  if (detail == 0) return "";
  const std::uint64_t value = detail & ~(std::uint64_t(15) << 60);
  if (detail >> 60 == 15) return " with checksum " + std::to_string(value);
  if (detail >> 60 == 14)
    return " with numbers " + std::to_string(value >> 30) + ", " +
           std::to_string(value & ((std::uint64_t(1) << 30) - 1));
  const bool pairs = kind == CollectiveKind::exchange;
  std::string numbers;
  int count = 0;
  for (; detail != 0; detail >>= 4, ++count)
    numbers += (count > 0 ? ", " : "") + std::string(pairs && count % 2 == 0 ? "{" : "") +
               std::to_string(int(detail & 15) - 1) + (pairs && count % 2 == 1 ? "}" : "");
  const char* what = pairs        ? " with pairs "
                     : count == 1 ? " along dimension "
                                  : " along dimensions ";
  return what + numbers;
}

/// "ranks of group 'world' disagree: rank 0 runs barrier, rank 2 runs all_gather"
inline std::string disagreement_message(const std::string& group, int a, const std::string& does,
                                        int b, const std::string& other_does) {
  return "ranks of group '" + group + "' disagree: rank " + std::to_string(a) + " " + does +
         ", rank " + std::to_string(b) + " " + other_does;
}

/// One box of elements that moves from a rank to another (or stays: peer == own rank).
struct Transfer {
  int peer = 0;       ///< in the group: the receiver (in `sends`) or the sender (in `receives`)
  Box source{};       ///< its place in the sender's `Collective::source`
  Box destination{};  ///< its place in the receiver's `Collective::destination`
};

/// The argument of `Communicator::run`. Which members are used depends on the kind:
///
/// | kind           | source          | destination          | else                           |
/// |----------------|-----------------|----------------------|--------------------------------|
/// | barrier        |                 |                      |                                |
/// | broadcast      | on the root     | everywhere else      | root; the root's destination is |
/// |                |                 |                      | left alone                     |
/// | scatter        | on the root     | rank r's piece       | root; pieces[r], in the root's  |
/// |                |                 |                      | source (only the root's used)  |
/// | gather         | rank r's piece  | on the root          | root; pieces[r], in the root's  |
/// |                |                 |                      | destination (likewise)         |
/// | all_gather     | rank r's piece  | all pieces           | pieces[r], in the destination  |
/// | reduce_scatter | same extents    | rank r's result      | pieces[r], in the source; op   |
/// | all_reduce     | same extents    | same extents         | op                             |
/// | all_to_all,    | data to send    | data to receive      | sends, receives: every transfer |
/// | exchange       |                 |                      | is in the sender's `sends`     |
/// |                |                 |                      | and the receiver's `receives`; |
/// |                |                 |                      | those of one pair of ranks in  |
/// |                |                 |                      | the same order on both sides   |
///
/// Sources are never written; a source and a destination do not overlap, except that they may be
/// the same view in an all_reduce, that the source of an all_gather may be the rank's own piece of
/// the destination, and that the source of an exchange may lie in the destination where no transfer
/// writes. `pieces` has one box per rank of the group; boxes may be empty.
struct Collective {
  CollectiveKind kind = CollectiveKind::barrier;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  ConstView source{};
  View destination{};
  std::span<const Box> pieces{};
  std::span<const Transfer> sends{};
  std::span<const Transfer> receives{};
  index_t global_count = 0;  ///< elements of the whole operation, equal on all ranks
  /// Further values that must be equal on all ranks and do not follow from the views: the
  /// dimensions or pairs that the user named. 0 if there are none. @see packed_detail
  std::uint64_t detail = 0;
  /// Whether all pieces or transfers have one size on all ranks: set by callers that know this of
  /// all ranks; backends then use their calls for equal counts, if any.
  bool even = false;
  const char* operation = "";  ///< the function that the user called, for errors and traces
  const char* axes = "";       ///< the mesh axes it runs over ("tp", "dp.tp"), if any
  CallSite site{};             ///< where the user called that function, if known

  static Collective broadcast(const ConstView& source, const View& destination, int root) {
    return {
        .kind = CollectiveKind::broadcast,
        .root = root,
        .source = source,
        .destination = destination,
        .global_count = source.size() > destination.size() ? source.size() : destination.size()};
  }
  static Collective scatter(const ConstView& source, const View& destination,
                            std::span<const Box> pieces, index_t elements, int root = 0) {
    return {.kind = CollectiveKind::scatter,
            .root = root,
            .source = source,
            .destination = destination,
            .pieces = pieces,
            .global_count = elements};
  }
  static Collective all_gather(const ConstView& source, const View& destination,
                               std::span<const Box> pieces) {
    return {.kind = CollectiveKind::all_gather,
            .source = source,
            .destination = destination,
            .pieces = pieces,
            .global_count = destination.size()};
  }
  static Collective reduce_scatter(ReduceOp op, const ConstView& source, const View& destination,
                                   std::span<const Box> pieces) {
    return {.kind = CollectiveKind::reduce_scatter,
            .op = op,
            .source = source,
            .destination = destination,
            .pieces = pieces,
            .global_count = source.size()};
  }
  static Collective all_reduce(ReduceOp op, const ConstView& source, const View& destination) {
    return {.kind = CollectiveKind::all_reduce,
            .op = op,
            .source = source,
            .destination = destination,
            .global_count = source.size()};
  }
  /// An exchange, or an all_to_all.
  static Collective exchange(CollectiveKind kind, const ConstView& source, const View& destination,
                             std::span<const Transfer> sends, std::span<const Transfer> receives) {
    return {.kind = kind,
            .source = source,
            .destination = destination,
            .sends = sends,
            .receives = receives};
  }

  /// This call as a step of another one: with its names, for errors and traces.
  Collective within(const Collective& whole) const {
    Collective call = *this;
    call.operation = *whole.operation != '\0' ? whole.operation : name_of(whole.kind);
    call.axes = whole.axes;
    call.site = whole.site;
    return call;
  }
  /// This call as made by that function of the user's, over these mesh axes.
  Collective named(const char* function, const char* over = "") const {
    Collective call = *this;
    call.operation = function;
    call.axes = over;
    return call;
  }

  DType dtype() const {
    return source.data != nullptr || source.extents.dims > 0 ? source.dtype : destination.dtype;
  }
};

namespace detail {

constexpr bool is_exchange(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::exchange;
}
constexpr bool is_reduction(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce;
}
constexpr bool is_rooted(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::scatter ||
         kind == CollectiveKind::gather;
}

inline constexpr Box unknown_box{};

/// Calls f(sender, box of the sender's source, box of the destination) for everything that rank
/// `rank` of `size` receives, itself included, from the next rank on. Of a source that the receiver
/// does not know, the box has no dimensions. Nothing for reductions.
template <class F>
void each_received(const Collective& c, int rank, int size, const F& f) {
  if (is_exchange(c.kind)) {
    for (const bool higher : {true, false})
      for (const Transfer& t : c.receives)
        if ((t.peer > rank) == higher) f(t.peer, t.source, t.destination);
  } else if (c.kind == CollectiveKind::scatter ||
             (c.kind == CollectiveKind::broadcast && rank != c.root)) {
    f(c.root, unknown_box, Box::of(c.destination.extents));
  } else if (c.kind == CollectiveKind::all_gather ||
             (c.kind == CollectiveKind::gather && rank == c.root)) {
    for (int k = 1; k <= size; ++k) {
      const int r = (rank + k) % size;
      f(r, unknown_box, c.pieces[std::size_t(r)]);
    }
  }
}

/// Calls f(receiver, box of the source, box of the receiver's destination) likewise for everything
/// that the rank sends.
template <class F>
void each_sent(const Collective& c, int rank, int size, const F& f) {
  const Box whole = Box::of(c.source.extents);
  if (is_exchange(c.kind)) {
    for (const bool higher : {true, false})
      for (const Transfer& t : c.sends)
        if ((t.peer > rank) == higher) f(t.peer, t.source, t.destination);
  } else if (c.kind == CollectiveKind::gather) {
    f(c.root, whole, rank == c.root ? c.pieces[std::size_t(rank)] : unknown_box);
  } else if (c.kind == CollectiveKind::all_gather ||
             (c.kind != CollectiveKind::barrier && !is_reduction(c.kind) && rank == c.root)) {
    for (int k = 1; k <= size; ++k) {
      const int r = (rank + k) % size;
      if (c.kind == CollectiveKind::all_gather) f(r, whole, c.pieces[std::size_t(rank)]);
      else if (c.kind == CollectiveKind::scatter)
        f(r, c.pieces[std::size_t(r)], r == rank ? Box::of(c.destination.extents) : unknown_box);
      else if (r != rank) f(r, whole, whole);
    }
  }
}

/// The same as lists.
struct Transfers {
  std::vector<Transfer> sends{}, receives{};

  Transfers(const Collective& c, int rank, int size) {
    each_sent(c, rank, size,
              [&](int r, const Box& from, const Box& to) { sends.push_back({r, from, to}); });
    each_received(c, rank, size, [&](int r, const Box& from, const Box& to) {
      receives.push_back({r, from, to});
    });
  }
};

}  // namespace detail

/// Elements that rank `rank` of `size` receives from other ranks.
///
/// A reduction counts what a bandwidth-optimal algorithm moves: (n-1)/n of the source for a
/// reduce-scatter, rounded to whole pieces, twice that for an all-reduce.
inline index_t received_elements(const Collective& c, int rank, int size) {
  if (c.kind == CollectiveKind::reduce_scatter) return c.destination.size() * (size - 1);
  if (c.kind == CollectiveKind::all_reduce) return 2 * c.source.size() * (size - 1) / size;
  index_t elements = 0;
  detail::each_received(c, rank, size, [&](int r, const Box&, const Box& box) {
    if (r != rank) elements += box.volume();
  });
  return elements;
}

/// Messages that rank `rank` of `size` receives: one from each rank that has data for it, in an
/// all-reduce two, one with addends and one with results. Collectives that are run together count
/// one message per sender.
///
/// @param senders  by rank: whether it has already sent a message in this round; updated
inline index_t received_messages(const Collective& c, int rank, int size,
                                 std::vector<char>& senders) {
  if (c.kind == CollectiveKind::all_reduce) return c.source.size() > 0 ? 2 * index_t(size - 1) : 0;
  index_t messages = 0;
  const auto from = [&](int r, const Box&, const Box& box) {
    if (r != rank && !box.empty() && std::exchange(senders[std::size_t(r)], char(1)) == 0)
      ++messages;
  };
  detail::each_received(c, rank, size, from);
  if (c.kind == CollectiveKind::reduce_scatter)
    for (int r = 0; r < size; ++r) from(r, Box{}, Box::of(c.destination.extents));
  return messages;
}

}  // namespace cleave::inline v0
