// Collectives as messages between processes.
//
// What is large moves once, from who has it to who wants it, in place where it lies densely on
// both sides. Reductions are an exchange of addends and a sum in rank order, block by block while
// they are in the cache: the same bits as on threads. What is small takes log2(n) steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/flat_range.hpp>
#include <cleave/comm/mpi_messages.hpp>
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

/// Elements of one message of a reduction: a block fits in a cache, a piece is at most 64 blocks,
/// and only one if it is small.
inline index_t reduction_block(index_t elements, std::size_t size) {
  const index_t usual = (index_t(256) << 10) / index_t(size);
  const index_t most = std::max<index_t>(1, index_t(mpi_message_limit / size));
  return std::min(elements <= 2 * usual ? 2 * usual : std::max(usual, (elements + 63) / 64), most);
}

/// result = the reduction of piece(self) of all ranks.
///
/// While the addends of one block are summed, those of the next are under way: scratch for two
/// blocks of every other rank.
template <class PieceOf>
void reduce_pieces(MpiMessages& messages, ReduceOp op, const PieceOf& piece, const View& result) {
  const int n = messages.size(), self = messages.rank();
  const DType type = result.dtype;
  const std::size_t size = size_of(type);
  const ConstView own = piece(self);
  const index_t elements = own.size();
  const index_t block = reduction_block(elements, size);
  const index_t blocks = (elements + block - 1) / block;
  const std::size_t room = std::size_t(std::min(block, elements)) * size;
  std::byte* slots = messages.scratch(2 * std::size_t(n - 1) * room);
  std::byte* packed = messages.scratch(room);
  const auto slot = [&](index_t b, int step) {
    return slots + (std::size_t(b % 2) * std::size_t(n - 1) + std::size_t(step - 1)) * room;
  };
  const auto count_of = [&](index_t b) { return std::min(block, elements - b * block); };

  std::vector<std::size_t> marks;  // of the requests of block b: [marks[2b], marks[2b + 1])
  const auto post = [&](index_t b) {
    marks.push_back(messages.posted());
    for (int step = 1; step < n; ++step)
      messages.receive(slot(b, step), std::size_t(count_of(b)) * size, messages.before(step));
    marks.push_back(messages.posted());
  };
  for (index_t b = 0; b < std::min<index_t>(blocks, 2); ++b) post(b);
  if (blocks > 2)  // the others have the size of the first
    for (int step = 1; step < n; ++step)
      messages.announce_receive(std::size_t(count_of(blocks - 1)) * size, messages.before(step));

  for (int step = 1; step < n; ++step) {
    const int peer = messages.after(step);
    const ConstView theirs = piece(peer);
    const std::byte* data = messages.pack(theirs);
    const index_t part = reduction_block(theirs.size(), size);
    for (index_t at = 0; at < theirs.size(); at += part)
      messages.send(data + std::size_t(at) * size,
                    std::size_t(std::min(part, theirs.size() - at)) * size, peer);
  }

  std::vector<ConstView> addends(static_cast<std::size_t>(n));
  for (index_t b = 0; b < blocks; ++b) {
    messages.wait(marks[std::size_t(2 * b)], marks[std::size_t(2 * b + 1)]);
    const index_t begin = b * block, count = count_of(b);
    const Shape extents(std::array<index_t, 1>{count});
    for (int step = 1; step < n; ++step)
      addends[std::size_t(messages.before(step))] = ConstView::dense(slot(b, step), type, extents);
    if (!own.contiguous()) pack_range(own, begin, count, packed);
    addends[std::size_t(self)] =
        ConstView::dense(own.contiguous() ? element_at(own, begin) : packed, type, extents);
    if (result.contiguous()) {
      reduce_range(op, addends, View::dense(element_at(result, begin), type, extents), 0, count);
    } else {
      const View sum = View::dense(packed, type, extents);
      reduce_range(op, addends, sum, 0, count);
      unpack_range(packed, result, begin, count);
    }
    if (b + 2 < blocks) post(b + 2);
  }
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
  gather_pieces(messages, c.source, piece);
  strided_copy(c.source, piece(messages.rank()));
  messages.finish();
}

inline void reduce_scatter(const Collective& c, MpiMessages& messages) {
  const auto piece = [&](int r) { return c.source[c.pieces[std::size_t(r)]]; };
  reduce_pieces(messages, c.op, piece, c.destination);
  messages.finish();
}

/// A reduce-scatter and an all-gather of equal chunks; in one go where latency is all that counts.
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
    reduce_pieces(messages, c.op, addend, sum(messages.rank()));
    messages.finish();  // chunks of an `in` that is also `out` are free to be overwritten
    gather_pieces(messages, sum(messages.rank()), sum);
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
  for (const Transfer& t : c.sends)
    if (t.peer == messages.rank()) strided_copy(c.source[t.source], c.destination[t.destination]);
  messages.finish();
}

}  // namespace cleave::detail
