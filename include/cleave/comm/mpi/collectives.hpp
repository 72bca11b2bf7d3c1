// Collectives as messages between processes.
//
// Long data move once, from sender to receiver, and are not packed where they are contiguous on
// both sides. Reductions exchange addends and sum them in rank order, block by block while they are
// in cache: the same bits as on threads. Short data take log2(n) steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/linear_range.hpp>
#include <cleave/comm/mpi/messages.hpp>
#include <cleave/comm/mpi/reduce_pieces.hpp>
#include <cleave/comm/reduce.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

/// An all-gather in place: rank r contributes bytes [at(r), at(r + 1)) of `data`; those of this
/// rank are there already. In ceil(log2(n)) steps: a rank forwards all that it has received so far
/// (J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport
/// message-passing systems", IEEE Transactions on Parallel and Distributed Systems 8, 1997).
/// @tparam Offset  (a rank, or n) -> bytes
template <class Offset>
void gather_in_steps(MpiMessages& messages, std::byte* data, const Offset& at) {
  const int n = messages.size(), self = messages.rank();
  if (messages.pairs()) {
    for (int have = 1; have < n; have *= 2) {
      const int here = self & -have, there = here ^ have;  // first ranks of the two halves
      messages.receive(data + at(there), at(there + have) - at(there), self ^ have);
      messages.send(data + at(here), at(here + have) - at(here), self ^ have);
      messages.finish();
    }
    return;
  }
  const std::size_t all = at(n), behind = all - at(self);
  const auto further = [&](int i) {  // offset of rank self + i's bytes in `from_here`
    return self + i <= n ? at(self + i) - at(self) : behind + at(self + i - n);
  };
  std::byte* const from_here = messages.scratch(all);
  if (further(1) > 0) std::memcpy(from_here, data + at(self), further(1));
  for (int have = 1; have < n; have *= 2) {
    const int more = std::min(have, n - have);
    messages.receive(from_here + further(have), further(have + more) - further(have),
                     messages.after(have));
    messages.send(from_here, further(more), messages.before(have));
    messages.finish();
  }
  if (behind > 0) std::memcpy(data + at(self), from_here, behind);
  if (all > behind) std::memcpy(data, from_here + behind, all - behind);
}

/// all[r] = the `bytes` bytes of rank r, in ceil(log2(n)) steps; no rank returns before all ranks
/// have called.
inline void gather_small(MpiMessages& messages, const void* mine, std::size_t bytes, void* all) {
  const auto at = [bytes](int r) { return std::size_t(r) * bytes; };
  std::byte* const data = messages.scratch(at(messages.size()));  // MPI may access it for longer
  std::memcpy(data + at(messages.rank()), mine, bytes);
  gather_in_steps(messages, data, at);
  std::memcpy(all, data, at(messages.size()));
}

inline void barrier(MpiMessages& messages) {
  const std::byte here{};
  std::vector<std::byte> all(std::size_t(messages.size()));
  gather_small(messages, &here, 1, all.data());
}

/// Posts an all-gather: piece(r) = `mine` of rank r, for every other rank r.
template <class PieceOf>
void gather_pieces(MpiMessages& messages, const ConstView& mine, const PieceOf& piece) {
  for (int step = 1; step < messages.size(); ++step) {
    const int peer = messages.before(step);
    messages.receive(View(piece(peer)), peer);
  }
  const std::byte* packed = messages.pack(mine);
  for (int step = 1; step < messages.size(); ++step)
    messages.send(packed, std::size_t(mine.bytes()), messages.after(step));
}

/// The longest array, in bytes, that is forwarded in log2(n) steps; of longer ones every rank sends
/// its part to each peer. The same on all ranks; small in tests.
inline std::size_t max_forwarded_bytes = std::size_t(64) << 10;

inline bool goes_in_steps(const MpiMessages& messages, std::size_t bytes) {
  return messages.size() > 2 && bytes <= max_forwarded_bytes;
}

/// Whether a reduce-scatter goes in steps: up to four ranks exchange all addends at once, except
/// for very short arrays, for which the number of messages counts.
inline bool reduces_in_steps(const MpiMessages& messages, std::size_t bytes) {
  return goes_in_steps(messages, bytes) && (messages.size() > 4 || bytes < 1024);
}

/// gather_pieces in log2(n) steps; in place if the pieces are contiguous and adjacent.
template <class PieceOf>
void gather_pieces_in_steps(MpiMessages& messages, const ConstView& mine, const PieceOf& piece) {
  const int n = messages.size();
  std::vector<std::size_t> at(std::size_t(n) + 1);
  std::byte* data = nullptr;
  bool in_place = true;
  for (int r = 0; r < n; ++r) {
    const View to = piece(r);
    const auto bytes = std::size_t(to.bytes());
    at[std::size_t(r) + 1] = at[std::size_t(r)] + bytes;
    if (bytes == 0) continue;
    if (data == nullptr) data = static_cast<std::byte*>(to.data);
    in_place = in_place && to.contiguous() && to.data == data + at[std::size_t(r)];
  }
  if (!in_place) data = messages.scratch(at.back());
  pack_view(mine, data + at[std::size_t(messages.rank())]);
  gather_in_steps(messages, data, [&](int r) { return at[std::size_t(r)]; });
  if (in_place) return;
  for (int r = 0; r < n; ++r) unpack_view(data + at[std::size_t(r)], piece(r));
}

/// result = the reduction of piece(self) of all ranks, in rank order and ceil(log2(n)) steps: a
/// block for the rank at distance i moves in the steps that are binary digits of i (Bruck et al.,
/// as above).
inline void reduce_in_steps(MpiMessages& messages, ReduceOp op, PieceOf piece, const View& result) {
  struct Block {
    const std::byte* data;
    std::size_t bytes;  // blocks[i]: of the piece for the rank at distance i
  };
  const int n = messages.size();
  std::vector<Block> blocks;
  for (int i = 0; i < n; ++i) {
    const ConstView theirs = piece(messages.send_partner(i));
    blocks.push_back({messages.pack(theirs), std::size_t(theirs.bytes())});
  }
  for (int step = 1; step < n; step *= 2) {
    // block i still has distance further(i) to go, and the block that replaces it one `step` less
    const auto further = [&](int i) { return std::size_t(i & -step); };
    std::size_t sent = 0, received = 0;
    for (int i = step; i < n; ++i) {
      if ((i & step) == 0) continue;
      sent += blocks[further(i)].bytes;
      received += blocks[further(i - step)].bytes;
    }
    std::byte* to = messages.scratch(sent);
    std::byte* from = messages.scratch(received);
    messages.receive(from, received, messages.receive_partner(step));
    const std::byte* const packed = to;
    for (int i = step; i < n; ++i) {
      if ((i & step) == 0) continue;
      const std::size_t bytes = blocks[further(i)].bytes;
      if (bytes > 0) std::memcpy(to, blocks[std::size_t(i)].data, bytes);
      to += bytes;
      blocks[std::size_t(i)].data = from;
      from += blocks[further(i - step)].bytes;
    }
    messages.send(packed, sent, messages.send_partner(step));
    messages.finish();
  }
  if (result.size() == 0) return;
  std::vector<ConstView> addends(blocks.size());
  for (int i = 0; i < n; ++i)
    addends[std::size_t(messages.receive_partner(i))] =
        ConstView::dense(blocks[std::size_t(i)].data, result.dtype, result.extents);
  reduce_range(op, addends, result, 0, result.size());
}

/// Along a binomial tree, pipelined in parts.
inline void broadcast(const Collective& c, MpiMessages& messages) {
  const int n = messages.size();
  const int place = (messages.rank() - c.root + n) % n;  // the root's is 0
  const bool root = place == 0;
  const auto bytes = std::size_t(root ? c.source.bytes() : c.destination.bytes());
  const std::size_t part = std::max(std::size_t(1) << 20, (bytes + 63) / 64);
  const bool direct = root || c.destination.contiguous();
  std::byte* landing = nullptr;
  if (!root)
    landing = direct ? static_cast<std::byte*>(c.destination.data) : messages.scratch(bytes);
  const std::byte* data = root ? messages.pack(c.source) : landing;

  int reach = 1;  // the distance to the parent; children are nearer
  while (reach < n && (root || !(place & reach))) reach *= 2;
  std::vector<std::size_t> marks{messages.posted()};
  for (std::size_t at = 0; at < bytes && !root; at += part) {
    messages.receive(landing + at, std::min(part, bytes - at), (place - reach + c.root + n) % n);
    marks.push_back(messages.posted());
  }
  for (std::size_t at = 0, i = 0; at < bytes; at += part, ++i) {
    if (!root) messages.wait(marks[i], marks[i + 1]);
    for (int step = reach / 2; step > 0; step /= 2)
      if (place + step < n)
        messages.send(data + at, std::min(part, bytes - at), (place + step + c.root) % n);
  }
  messages.finish();
  if (!direct) unpack_view(landing, c.destination);
}

inline void scatter(const Collective& c, MpiMessages& messages) {
  if (messages.rank() != c.root) {
    messages.receive(c.destination, c.root);
  } else {
    for (int step = 1; step < messages.size(); ++step) {
      const int peer = messages.after(step);
      messages.send(c.source[c.pieces[std::size_t(peer)]], peer);
    }
    strided_copy(c.source[c.pieces[std::size_t(c.root)]], c.destination);
  }
  messages.finish();
}

inline void gather(const Collective& c, MpiMessages& messages) {
  if (messages.rank() != c.root) {
    messages.send(c.source, c.root);
  } else {
    for (int step = 1; step < messages.size(); ++step) {
      const int peer = messages.before(step);
      messages.receive(c.destination[c.pieces[std::size_t(peer)]], peer);
    }
    strided_copy(c.source, c.destination[c.pieces[std::size_t(c.root)]]);
  }
  messages.finish();
}

inline void all_gather(const Collective& c, MpiMessages& messages) {
  const auto piece = [&](int r) { return c.destination[c.pieces[std::size_t(r)]]; };
  if (goes_in_steps(messages, std::size_t(c.destination.bytes())))
    return gather_pieces_in_steps(messages, c.source, piece);
  gather_pieces(messages, c.source, piece);
  messages.keep(c.source, piece(messages.rank()), c.destination.bytes());
  messages.finish();
}

inline void reduce_scatter(const Collective& c, MpiMessages& messages) {
  const auto piece = [&](int r) { return c.source[c.pieces[std::size_t(r)]]; };
  if (reduces_in_steps(messages, std::size_t(c.source.bytes())))
    return reduce_in_steps(messages, c.op, PieceOf(piece), c.destination);
  PieceReduction(messages, c.op, PieceOf(piece), c.destination).run();
  messages.finish();
}

/// The longest array, in bytes, that each of two ranks reduces completely: longer ones are faster
/// in two halves. The same on all ranks.
inline constexpr std::size_t max_bytes_in_one_go = std::size_t(1) << 20;

/// A reduce-scatter and an all-gather of equal chunks. Ranks exchange complete arrays instead if
/// there are two ranks, which then send no more bytes, or if only latency matters.
inline void all_reduce(const Collective& c, MpiMessages& messages) {
  const index_t n = messages.size(), elements = c.source.size();
  const DType type = c.source.dtype;
  const std::size_t size = size_of(type);
  const auto bytes = std::size_t(c.source.bytes());
  if (bytes == 0) return;
  const Shape flat(std::array<index_t, 1>{elements});
  const bool direct = c.destination.contiguous();
  std::byte* out = direct ? static_cast<std::byte*>(c.destination.data) : messages.scratch(bytes);
  const auto* in = static_cast<const std::byte*>(c.source.data);
  if (!c.source.contiguous()) {
    pack_view(c.source, out);
    in = out;
  }

  constexpr std::size_t small = 32 << 10;
  if (std::size_t(n) * bytes <= small) {
    std::byte* all = messages.scratch(std::size_t(n) * bytes);
    gather_small(messages, in, bytes, all);
    std::vector<ConstView> addends;
    for (index_t r = 0; r < n; ++r)
      addends.push_back(ConstView::dense(all + std::size_t(r) * bytes, type, flat));
    reduce_range(c.op, addends, View::dense(out, type, flat), 0, elements);
  } else if (n == 2 && bytes <= max_bytes_in_one_go) {
    const auto addend = [&](int) { return ConstView::dense(in, type, flat); };
    PieceReduction(messages, c.op, PieceOf(addend), View::dense(out, type, flat)).run();
    messages.finish();
  } else {
    const index_t chunk = (elements + n - 1) / n;
    const auto begin = [&](int r) { return std::min(chunk * r, elements); };
    const auto extents = [&](int r) {
      return Shape(std::array<index_t, 1>{std::min(chunk, elements - begin(r))});
    };
    const auto addend = [&](int r) {
      return ConstView::dense(in + std::size_t(begin(r)) * size, type, extents(r));
    };
    const auto sum = [&](int r) {
      return View::dense(out + std::size_t(begin(r)) * size, type, extents(r));
    };
    const bool in_steps = goes_in_steps(messages, bytes);
    if (in_steps) reduce_in_steps(messages, c.op, PieceOf(addend), sum(messages.rank()));
    else PieceReduction(messages, c.op, PieceOf(addend), sum(messages.rank())).run();
    messages.finish();  // if `in` is `out`, its chunks may be overwritten from here on
    if (in_steps) gather_pieces_in_steps(messages, sum(messages.rank()), sum);
    else gather_pieces(messages, sum(messages.rank()), sum);
    messages.finish();
  }
  if (!direct) unpack_view(out, c.destination);
}

/// all_to_all and exchange: transfers between two ranks match in order.
inline void exchange(const Collective& c, MpiMessages& messages) {
  for (const Transfer& t : c.receives)
    if (t.peer != messages.rank()) messages.receive(c.destination[t.destination], t.peer);
  for_each_from_next_rank(c.sends, messages.rank(), [&](const Transfer& t) {
    if (t.peer != messages.rank()) messages.send(c.source[t.source], t.peer);
    else messages.keep(c.source[t.source], c.destination[t.destination], c.destination.bytes());
  });
  messages.finish();
}

}  // namespace cleave::detail
