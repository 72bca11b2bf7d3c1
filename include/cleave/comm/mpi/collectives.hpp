// Collectives as messages between processes.
//
// What is large moves once, from sender to receiver, in place where it lies densely on
// both sides. Reductions are an exchange of addends and a sum in rank order, block by block while
// they are in the cache: the same bits as on threads. What is small takes log2(n) steps.
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

/// all[r] = what rank r gave, `bytes` from each, in ceil(log2(n)) steps; returns on no rank before
/// all have come.
inline void gather_small(MpiMessages& messages, const void* mine, std::size_t bytes, void* all) {
  const auto n = std::size_t(messages.size()), self = std::size_t(messages.rank());
  std::byte* from_here = messages.scratch(n * bytes);  // rank self, self + 1, ..
  std::memcpy(from_here, mine, bytes);
  for (std::size_t have = 1; have < n; have *= 2) {
    const std::size_t more = std::min(have, n - have) * bytes;
    messages.receive(from_here + have * bytes, more, messages.after(int(have)));
    messages.send(from_here, more, messages.before(int(have)));
    messages.finish();
  }
  auto* to = static_cast<std::byte*>(all);
  std::memcpy(to + self * bytes, from_here, (n - self) * bytes);
  std::memcpy(to, from_here + (n - self) * bytes, self * bytes);
}

/// piece(r) = what rank r gives in `mine`, for every r.
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

/// The longest array, in bytes, that takes log2(n) steps in which it is passed on; of longer ones
/// every rank sends each other its part. The same on all ranks; small in tests.
inline std::size_t max_forwarded_bytes = std::size_t(64) << 10;

inline bool goes_in_steps(const MpiMessages& messages, std::size_t bytes) {
  return messages.size() > 2 && bytes <= max_forwarded_bytes;
}

/// gather_pieces in ceil(log2(n)) steps: a rank passes on what it has got so far (J. Bruck et al.,
/// "Efficient algorithms for all-to-all communications in multiport message-passing systems",
/// IEEE Transactions on Parallel and Distributed Systems 8, 1997).
template <class PieceOf>
void gather_in_steps(MpiMessages& messages, const ConstView& mine, const PieceOf& piece) {
  const int n = messages.size();
  std::vector<std::size_t> at(std::size_t(n) + 1);  // where the piece of rank self + i is
  for (int i = 0; i < n; ++i)
    at[std::size_t(i) + 1] = at[std::size_t(i)] + std::size_t(piece(messages.after(i)).bytes());
  std::byte* const all = messages.scratch(at.back());
  if (at[1] > 0) strided_copy(mine, View::dense(all, mine.dtype, mine.extents));
  for (int have = 1; have < n; have *= 2) {
    const auto begin = std::size_t(have), more = std::size_t(std::min(have, n - have));
    messages.receive(all + at[begin], at[begin + more] - at[begin], messages.after(have));
    messages.send(all, at[more], messages.before(have));
    messages.finish();
  }
  for (int i = 1; i < n; ++i) {
    const View to = piece(messages.after(i));
    if (to.size() > 0)
      strided_copy(ConstView::dense(all + at[std::size_t(i)], to.dtype, to.extents), to);
  }
}

/// result = the reduction of piece(self) of all ranks, in rank order and ceil(log2(n)) steps: what
/// goes i ranks further takes the steps that i has as binary digits (Bruck et al., as above).
template <class PieceOf>
void reduce_in_steps(MpiMessages& messages, ReduceOp op, const PieceOf& piece, const View& result) {
  const int n = messages.size();
  std::vector<const std::byte*> block(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) block[std::size_t(i)] = messages.pack(piece(messages.after(i)));
  for (int step = 1; step < n; step *= 2) {
    // block i is for the rank self + further(i), and the one that takes its place for step less
    const auto further = [&](int i) { return i & ~(step - 1); };
    const auto bytes_for = [&](int distance) {
      return std::size_t(piece(messages.after(distance)).bytes());
    };
    std::size_t sent = 0, received = 0;
    for (int i = step; i < n; ++i)
      if ((i & step) != 0) sent += bytes_for(further(i)), received += bytes_for(further(i) - step);
    std::byte* to = messages.scratch(sent);
    std::byte* from = messages.scratch(received);
    messages.receive(from, received, messages.before(step));
    const std::byte* const packed = to;
    for (int i = step; i < n; ++i) {
      if ((i & step) == 0) continue;
      const std::size_t bytes = bytes_for(further(i));
      if (bytes > 0) std::memcpy(to, block[std::size_t(i)], bytes);
      to += bytes;
      block[std::size_t(i)] = from;
      from += bytes_for(further(i) - step);
    }
    messages.send(packed, sent, messages.after(step));
    messages.finish();
  }
  if (result.size() == 0) return;
  std::vector<ConstView> addends(block.size());
  for (int i = 0; i < n; ++i)
    addends[std::size_t(messages.before(i))] =
        ConstView::dense(block[std::size_t(i)], result.dtype, result.extents);
  reduce_range(op, addends, result, 0, result.size());
}

/// Down a binomial tree, cut into parts that follow each other.
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
  if (!direct)
    strided_copy(ConstView::dense(landing, c.destination.dtype, c.destination.extents),
                 c.destination);
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
    gather_in_steps(messages, c.source, piece);
  else gather_pieces(messages, c.source, piece);
  messages.finish();
  strided_copy(c.source, piece(messages.rank()));  // MPI moves nothing while a rank copies
}

inline void reduce_scatter(const Collective& c, MpiMessages& messages) {
  const auto piece = [&](int r) { return c.source[c.pieces[std::size_t(r)]]; };
  if (goes_in_steps(messages, std::size_t(c.source.bytes())))
    return reduce_in_steps(messages, c.op, piece, c.destination);
  PieceReduction(messages, c.op, piece, c.destination).run();
  messages.finish();
}

/// The longest array, in bytes, that two ranks reduce each for itself: longer ones take less time
/// as two halves. The same on all ranks.
inline constexpr std::size_t max_bytes_in_one_go = std::size_t(1) << 20;

/// A reduce-scatter and an all-gather of equal chunks; in one go between two ranks, which send no
/// more bytes so, and where latency is all that counts.
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
    strided_copy(c.source, View::dense(out, type, c.source.extents));
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
    PieceReduction(messages, c.op, addend, View::dense(out, type, flat)).run();
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
    if (in_steps) reduce_in_steps(messages, c.op, addend, sum(messages.rank()));
    else PieceReduction(messages, c.op, addend, sum(messages.rank())).run();
    messages.finish();  // chunks of an `in` that is also `out` are free to be overwritten
    if (in_steps) gather_in_steps(messages, sum(messages.rank()), sum);
    else gather_pieces(messages, sum(messages.rank()), sum);
    messages.finish();
  }
  if (!direct) strided_copy(ConstView::dense(out, type, c.destination.extents), c.destination);
}

/// all_to_all and exchange: the transfers of a pair of ranks are matched by their order.
inline void exchange(const Collective& c, MpiMessages& messages) {
  for (const Transfer& t : c.receives)
    if (t.peer != messages.rank()) messages.receive(c.destination[t.destination], t.peer);
  for (const Transfer& t : c.sends)
    if (t.peer != messages.rank()) messages.send(c.source[t.source], t.peer);
  messages.finish();
  for (const Transfer& t : c.sends)  // now, as MPI moves nothing while a rank copies
    if (t.peer == messages.rank()) strided_copy(c.source[t.source], c.destination[t.destination]);
}

}  // namespace cleave::detail
