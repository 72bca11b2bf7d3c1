// Reductions by messages: ranks exchange addends, and sum them in rank order while they are in
// cache.
//
// The exchange is pipelined: while the addends of one block are summed, those of the next ones are
// in flight. With more ranks, blocks are shorter and fewer, so that a reduction takes the same
// scratch for any number of ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <cleave/comm/linear_range.hpp>
#include <cleave/comm/mpi/eager.hpp>
#include <cleave/comm/mpi/messages.hpp>
#include <cleave/comm/reduce.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

/// Maximum bytes of scratch for the blocks of a reduction; the same on all ranks. Small in tests.
inline std::size_t max_reduction_scratch = std::size_t(16) << 20;

/// The elements of one message when `ranks` ranks reduce a piece: an eager part, or 1 MiB of pieces
/// that are too long to be sent in parts. A rank has at least two blocks from every peer in flight,
/// and may have to pack as many of its own.
inline index_t reduction_block(bool in_parts, std::size_t size, int ranks) {
  constexpr std::size_t usual = 1 << 20;
  const std::size_t blocks = 4 * std::size_t(std::max(1, ranks - 1));
  const std::size_t most = std::min(max_reduction_scratch / blocks, mpi_message_limit);
  return std::max<index_t>(1, index_t(std::min(most, in_parts ? eager_part() : usual) / size));
}

/// The number of blocks of `bytes` bytes that a rank has in flight from each peer: several, to hide
/// the latency of distant ranks. Ranks need not agree.
inline int blocks_in_flight(std::size_t bytes, int ranks) {
  constexpr std::size_t from_one = 4 << 20;
  const std::size_t from_each = max_reduction_scratch / (2 * std::size_t(std::max(1, ranks - 1)));
  const std::size_t block = std::max<std::size_t>(bytes, 1);
  return int(std::clamp<std::size_t>(std::min(from_each, from_one) / block, 2, 16));
}

/// A reference to a function from a rank to this rank's addend for it, so that reductions are
/// compiled once.
class PieceOf {
 public:
  template <class F>
  explicit PieceOf(const F& f)
      : object_(&f), call_([](const void* object, int rank) -> ConstView {
          return (*static_cast<const F*>(object))(rank);
        }) {}

  ConstView operator()(int rank) const { return call_(object_, rank); }

 private:
  const void* object_;
  ConstView (*call_)(const void*, int);
};

/// result = the reduction of piece(self) of all ranks.
/// @cost   receives (n-1) times the result; scratch: `max_reduction_scratch` and a block
class PieceReduction {
 public:
  PieceReduction(MpiMessages& messages, ReduceOp op, PieceOf piece, const View& result)
      : messages_(messages), op_(op), piece_(piece), result_(result), own_(piece(messages.rank())) {
    const index_t elements = own_.size();
    block_ = block_of(own_);
    blocks_ = rounds_ = (elements + block_ - 1) / block_;
    slot_bytes_ = std::size_t(std::min(block_, elements)) * size_;
    packed_ = messages.scratch(slot_bytes_);
    for (int step = 1; step < messages.size(); ++step) {
      const ConstView theirs = piece(messages.after(step));
      const index_t part = block_of(theirs);
      rounds_ = std::max(rounds_, (theirs.size() + part - 1) / part);
      if (!theirs.contiguous())
        send_slot_bytes_ =
            std::max(send_slot_bytes_, std::size_t(std::min(part, theirs.size())) * size_);
    }
    depth_ = std::min<index_t>(
        blocks_in_flight(std::max(slot_bytes_, send_slot_bytes_), messages.size()),
        std::max<index_t>(rounds_, 1));
    marks_.resize(std::size_t(depth_));
    slots_ = messages.scratch(std::size_t(depth_) * peers() * slot_bytes_);
    send_slots_ = messages.scratch(std::size_t(depth_) * peers() * send_slot_bytes_);
  }

  void run() {
    if (blocks_ > 2)  // all but the last have the size of the first
      for (int step = 1; step < messages_.size(); ++step)
        messages_.announce_receive(std::size_t(count_of(blocks_ - 1)) * size_,
                                   messages_.before(step));
    for (index_t b = 0; b < std::min(rounds_, depth_); ++b) post(b);
    for (index_t b = 0; b < rounds_; ++b) {
      const Marks marks = marks_[std::size_t(b % depth_)];
      messages_.wait(marks.begin, marks.end);
      if (b < blocks_) sum(b);  // may overwrite the memory the block was sent from
      messages_.forget(marks.end);
      if (b + depth_ < rounds_) post(b + depth_);
    }
  }

 private:
  /// The requests of a block.
  struct Marks {
    std::size_t begin = 0, end = 0;
  };

  /// The elements of a message of the reduction of a piece.
  index_t block_of(const ConstView& piece) const {
    return reduction_block(messages_.in_parts(std::size_t(piece.bytes())), size_, messages_.size());
  }
  std::size_t peers() const { return std::size_t(messages_.size() - 1); }
  index_t count_of(index_t b) const { return std::min(block_, own_.size() - b * block_); }
  std::size_t place(index_t b, int step) const {
    return std::size_t(b % depth_) * peers() + std::size_t(step - 1);
  }
  std::byte* slot(index_t b, int step) const { return slots_ + place(b, step) * slot_bytes_; }

  void post(index_t b) {
    Marks& marks = marks_[std::size_t(b % depth_)];
    marks.begin = messages_.posted();
    if (b < blocks_)
      for (int step = 1; step < messages_.size(); ++step)
        messages_.receive_whole(slot(b, step), std::size_t(count_of(b)) * size_,
                                messages_.before(step));
    for (int step = 1; step < messages_.size(); ++step) send(b, step);
    marks.end = messages_.posted();
  }

  void send(index_t b, int step) {
    const int peer = messages_.after(step);
    const ConstView theirs = piece_(peer);
    const index_t part = block_of(theirs);
    const index_t count = std::min(part, theirs.size() - b * part);
    if (count <= 0) return;
    std::byte* const packed = send_slots_ + place(b, step) * send_slot_bytes_;
    if (!theirs.contiguous()) pack_range(theirs, b * part, count, packed);
    messages_.send_whole(
        theirs.contiguous() ? static_cast<const std::byte*>(element_at(theirs, b * part)) : packed,
        std::size_t(count) * size_, peer);
  }

  void sum(index_t b) {
    const index_t begin = b * block_, count = count_of(b);
    const Shape extents(std::array<index_t, 1>{count});
    for (int step = 1; step < messages_.size(); ++step)
      addends_[std::size_t(messages_.before(step))] =
          ConstView::dense(slot(b, step), type_, extents);
    if (!own_.contiguous()) pack_range(own_, begin, count, packed_);
    addends_[std::size_t(messages_.rank())] =
        ConstView::dense(own_.contiguous() ? element_at(own_, begin) : packed_, type_, extents);
    if (result_.contiguous())
      return reduce_range(op_, addends_, View::dense(element_at(result_, begin), type_, extents), 0,
                          count);
    reduce_range(op_, addends_, View::dense(packed_, type_, extents), 0, count);
    unpack_range(packed_, result_, begin, count);
  }

  MpiMessages& messages_;
  ReduceOp op_;
  PieceOf piece_;
  View result_;
  ConstView own_;
  DType type_ = result_.dtype;
  std::size_t size_ = size_of(type_);
  index_t block_ = 1;   ///< elements of a message to this rank
  index_t blocks_ = 0;  ///< of this rank's piece
  index_t rounds_ = 0;  ///< of the longest piece
  index_t depth_ = 2;   ///< blocks in flight from each rank
  std::size_t slot_bytes_ = 0, send_slot_bytes_ = 0;
  std::byte* slots_ = nullptr;
  std::byte* send_slots_ = nullptr;
  std::byte* packed_ = nullptr;
  std::vector<Marks> marks_;
  std::vector<ConstView> addends_ = std::vector<ConstView>(std::size_t(messages_.size()));
};

}  // namespace cleave::detail
