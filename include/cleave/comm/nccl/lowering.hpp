// Lowers a collective to NCCL calls. The result is a plan, made without calling NCCL: copies that
// pack operands, the calls, then copies that unpack and reductions.
//
// Equal counts become one native call; pieces whose layout the call does not support are packed
// into one buffer first. Unequal counts become grouped sends and receives of exactly the needed
// elements. An uneven reduce-scatter is padded to the longest piece, which its first rank receives
// anyway, and an uneven all-gather if that adds little. Products of complex numbers, which NCCL
// cannot reduce, are gathered and reduced here, in rank order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/nccl/types.hpp>
#include <cleave/comm/schedule/schedule.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// The functions of NCCL, into several of which a collective may be lowered.
enum class NcclFunction : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  gather,
  scatter,
  send,
  receive,
};

constexpr const char* name_of(NcclFunction function) {
  switch (function) {
    case NcclFunction::all_reduce: return "ncclAllReduce";
    case NcclFunction::reduce_scatter: return "ncclReduceScatter";
    case NcclFunction::all_gather: return "ncclAllGather";
    case NcclFunction::broadcast: return "ncclBroadcast";
    case NcclFunction::all_to_all: return "ncclAlltoAll";
    case NcclFunction::gather: return "ncclGather";
    case NcclFunction::scatter: return "ncclScatter";
    case NcclFunction::send: return "ncclSend";
    case NcclFunction::receive: return "ncclRecv";
  }
  return "unknown";
}

/// One NCCL call. `count` is in elements of `type`.
struct NcclCall {
  NcclFunction function{};
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t op = ncclSum;
  int peer = 0;  ///< the root, or the peer of a send or receive
};

/// Everything that a rank enqueues for one collective, in this order. The calls of collectives that
/// run together are issued together.
struct NcclPlan {
  std::vector<ScheduleStep> before{};  ///< copies that pack operands
  std::vector<NcclCall> calls{};
  std::vector<ScheduleStep> after{};  ///< copies that unpack, and reductions
};

/// An uneven all-gather is padded if that adds less than this fraction of its elements.
inline constexpr double nccl_most_padding = 0.25;

/// From this version on, NCCL fuses the broadcasts of a group (`src/device/all_gather_v.h`).
inline constexpr int nccl_fuses_broadcasts = NCCL_VERSION(2, 29, 0);

/// Lowers one collective of one rank.
///
/// @param version    of the NCCL library, the same on all ranks
/// @tparam Allocate  `void*(std::size_t bytes)`: temporary device memory, aligned to 256 bytes,
///                   that lives until the calls have run
template <class Allocate>
class NcclLowering {
 public:
  NcclLowering(const Collective& c, int rank, int size, int version, Allocate allocate)
      : c_(c),
        rank_(rank),
        size_(size),
        version_(version),
        allocate_(allocate),
        type_(nccl_type(c.dtype())) {
    switch (c.kind) {
      case CollectiveKind::barrier: break;
      case CollectiveKind::broadcast: broadcast(); break;
      case CollectiveKind::scatter: scatter(); break;
      case CollectiveKind::gather: gather(); break;
      case CollectiveKind::all_gather: all_gather(); break;
      case CollectiveKind::reduce_scatter: reduce_scatter(); break;
      case CollectiveKind::all_reduce: all_reduce(); break;
      case CollectiveKind::all_to_all:
        if (c.even) all_to_all();
        else exchange();
        break;
      case CollectiveKind::exchange: exchange(); break;
    }
  }

  /// The plan of the collective.
  NcclPlan take() { return std::move(plan_); }

 private:
  static std::byte* at(void* base, index_t bytes) { return static_cast<std::byte*>(base) + bytes; }
  static const std::byte* at(const void* base, index_t bytes) {
    return static_cast<const std::byte*>(base) + bytes;
  }

  DType dtype() const { return c_.dtype(); }
  index_t bytes(index_t elements) const { return elements * index_t(size_of(dtype())); }
  void* temporary(index_t elements) { return allocate_(std::size_t(bytes(elements))); }
  View dense(void* data, const Shape& extents) const { return View::dense(data, dtype(), extents); }

  /// The elements inside a box, which may be empty.
  template <class V>
  static V piece_in(const V& whole, const Box& box) {
    V result = whole[box];
    if (box.empty()) result.extents = Shape::filled(box.dims(), 0);
    return result;
  }

  void call(NcclFunction function, const void* send, void* receive, index_t elements,
            int peer = 0) {
    plan_.calls.push_back({function, send, receive, std::size_t(elements) * type_.numbers,
                           type_.type, nccl_op(dtype(), c_.op), peer});
  }

  /// The contiguous elements of a view: in place, or packed into a buffer.
  const void* packed(const ConstView& view) {
    if (view.contiguous()) return view.data;
    for (const ScheduleStep& done : plan_.before) {  // the same source for several peers
      const ConstView& from = done.operands[0];
      if (from.data == view.data && from.extents == view.extents && from.strides == view.strides &&
          done.result.contiguous())
        return done.result.data;
    }
    void* buffer = temporary(view.size());
    pack(view, buffer);
    return buffer;
  }
  void pack(const ConstView& view, void* to) { copy(view, dense(to, view.extents)); }

  /// Where to receive the elements of a view: in place, or in a buffer that is unpacked later.
  void* landing(const View& view) {
    if (view.contiguous()) return view.data;
    void* buffer = temporary(view.size());
    unpack(buffer, view);
    return buffer;
  }
  void unpack(const void* from, const View& view) {
    if (view.size() > 0)
      plan_.after.push_back(
          ScheduleStep::copy(ConstView::dense(from, view.dtype, view.extents), view));
  }

  static index_t longest_of(std::span<const Box> pieces) {
    index_t longest = 0;
    for (const Box& piece : pieces) longest = std::max(longest, piece.volume());
    return longest;
  }
  static index_t total_of(std::span<const Box> pieces) {
    index_t total = 0;
    for (const Box& piece : pieces) total += piece.volume();
    return total;
  }

  /// Whether the piece of each rank r is in memory from the element r * count of a view on.
  bool consecutive(std::span<const Box> pieces, const ConstView& whole, index_t count) const {
    if (!whole.contiguous()) return false;
    for (int r = 0; r < size_; ++r) {
      const Box& piece = pieces[std::size_t(r)];
      if (piece.empty()) continue;
      const ConstView inside = whole[piece];
      if (!inside.contiguous() || inside.data != at(whole.data, bytes(count * r))) return false;
    }
    return true;
  }

  /// The pieces of the source, `count` elements each, in one contiguous buffer: in place, or
  /// packed.
  const void* packed(std::span<const Box> pieces, index_t count) {
    if (consecutive(pieces, c_.source, count)) return c_.source.data;
    void* buffer = temporary(count * size_);
    for (int r = 0; r < size_; ++r)
      pack(piece_in(c_.source, pieces[std::size_t(r)]), at(buffer, bytes(count * r)));
    return buffer;
  }
  /// A call that receives `count` elements from each rank, which begin with these pieces of the
  /// destination.
  void call_for(std::span<const Box> pieces, NcclFunction function, const void* from,
                index_t count) {
    const index_t total = total_of(pieces);
    const bool in_order = consecutive(pieces, c_.destination, count);
    if (in_order && total == count * size_)
      return call(function, from, c_.destination.data, count, c_.root);
    void* all = temporary(count * size_);
    call(function, from, all, count, c_.root);
    if (in_order && total == c_.destination.size()) return unpack(all, c_.destination);
    for (int r = 0; r < size_; ++r)
      unpack(at(all, bytes(count * r)), piece_in(c_.destination, pieces[std::size_t(r)]));
  }

  const Box& own() const { return c_.pieces[std::size_t(rank_)]; }

  void copy(const ConstView& from, const View& to) {
    if (from.size() > 0 && from.data != to.data)
      plan_.before.push_back(ScheduleStep::copy(from, to));
  }
  void send(const ConstView& from, int peer) {
    if (from.size() > 0) call(NcclFunction::send, packed(from), nullptr, from.size(), peer);
  }
  void receive(const View& to, int peer) {
    if (to.size() > 0) call(NcclFunction::receive, nullptr, landing(to), to.size(), peer);
  }

  // destination = the root's source, which the root passes to NCCL as both buffers
  void broadcast() {
    const bool root = rank_ == c_.root;
    const index_t count = root ? c_.source.size() : c_.destination.size();
    if (count == 0) return;
    void* data = root ? const_cast<void*>(packed(c_.source)) : landing(c_.destination);
    call(NcclFunction::broadcast, data, data, count, c_.root);
  }

  void all_reduce() {
    const index_t count = c_.source.size();
    if (count == 0) return;
    if (!nccl_reduces(dtype(), c_.op)) {
      void* all = temporary(count * size_);
      call(NcclFunction::all_gather, packed(c_.source), all, count);
      return reduce(all, count, c_.destination);
    }
    const void* from = packed(c_.source);
    call(NcclFunction::all_reduce, from, landing(c_.destination), count);
  }

  /// result = the reduction of the ranks' elements: `count` of each rank at `all`, in rank order.
  void reduce(const void* all, index_t count, const View& result) {
    if (result.size() == 0) return;
    std::vector<ConstView> operands;
    for (int r = 0; r < size_; ++r)
      operands.push_back(ConstView::dense(at(all, bytes(count * r)), dtype(), result.extents));
    plan_.after.push_back(ScheduleStep::reduction(c_.op, std::move(operands), result));
  }

  void reduce_scatter() {
    const index_t longest = longest_of(c_.pieces);
    if (longest == 0) return;
    if (nccl_reduces(dtype(), c_.op) && total_of(c_.pieces) == longest * size_ &&
        consecutive(c_.pieces, c_.source, longest))
      return call(NcclFunction::reduce_scatter, c_.source.data, landing(c_.destination), longest);
    void* pieces = temporary(longest * size_);
    for (int r = 0; r < size_; ++r)
      pack(piece_in(c_.source, c_.pieces[std::size_t(r)]), at(pieces, bytes(longest * r)));
    if (!nccl_reduces(dtype(), c_.op)) {
      void* all = temporary(longest * size_);
      call(NcclFunction::all_to_all, pieces, all, longest);
      return reduce(all, longest, c_.destination);
    }
    const bool whole = own().volume() == longest && c_.destination.contiguous();
    void* result = whole ? c_.destination.data : temporary(longest);
    call(NcclFunction::reduce_scatter, pieces, result, longest);
    if (!whole) unpack(result, c_.destination);
  }

  // Which branch is taken depends on the pieces and the version alone: equal on all ranks.
  void all_gather() {
    const index_t longest = longest_of(c_.pieces), total = total_of(c_.pieces);
    if (longest == 0) return;
    if (double(longest * size_ - total) < nccl_most_padding * double(total)) {
      if (own().volume() == longest)
        return call_for(c_.pieces, NcclFunction::all_gather, packed(c_.source), longest);
      void* padded = temporary(longest);  // what follows the piece is sent and not unpacked
      pack(c_.source, padded);
      return call_for(c_.pieces, NcclFunction::all_gather, padded, longest);
    }
    if (version_ >= nccl_fuses_broadcasts) {
      for (int r = 0; r < size_; ++r) {
        const Box& piece = c_.pieces[std::size_t(r)];
        if (piece.empty()) continue;
        void* to = landing(c_.destination[piece]);
        call(NcclFunction::broadcast, r == rank_ ? packed(c_.source) : to, to, piece.volume(), r);
      }
      return;
    }
    exchange();
  }

  void scatter() {
    const bool root = rank_ == c_.root;
    if (c_.even) {
      const index_t count = c_.destination.size();
      if (count == 0) return;
      const void* pieces = root ? packed(c_.pieces, count) : nullptr;
      return call(NcclFunction::scatter, pieces, landing(c_.destination), count, c_.root);
    }
    exchange();
  }

  void gather() {
    const bool root = rank_ == c_.root;
    if (c_.even) {
      const index_t count = c_.source.size();
      if (count == 0) return;
      const void* from = packed(c_.source);
      if (!root) return call(NcclFunction::gather, from, nullptr, count, c_.root);
      return call_for(c_.pieces, NcclFunction::gather, from, count);
    }
    exchange();
  }

  /// Equal pieces for all ranks, including this one, sent and received in rank order.
  void all_to_all() {
    const index_t count = c_.sends.empty() ? 0 : c_.sends[0].source.volume();
    if (count == 0) return;
    std::vector<Box> out(static_cast<std::size_t>(size_)), in(out.size());
    for (const Transfer& t : c_.sends) out[std::size_t(t.peer)] = t.source;
    for (const Transfer& t : c_.receives) in[std::size_t(t.peer)] = t.destination;
    call_for(in, NcclFunction::all_to_all, packed(out, count), count);
  }

  /// Sends and receives by rank distance: all ranks start with different peers, and wherever the
  /// sequence of calls is split, both sides of a transfer come before it or after it.
  void exchange() {
    const Transfers all(c_, rank_, size_);
    for (const Transfer& t : all.sends)
      if (t.peer == rank_)
        copy(piece_in(c_.source, t.source), piece_in(c_.destination, t.destination));
    for (int k = 1; k < size_; ++k) {
      const int to = (rank_ + k) % size_, of = (rank_ + size_ - k) % size_;
      for (const Transfer& t : all.sends)
        if (t.peer == to) send(piece_in(c_.source, t.source), to);
      for (const Transfer& t : all.receives)
        if (t.peer == of) receive(piece_in(c_.destination, t.destination), of);
    }
  }

  const Collective& c_;
  int rank_;
  int size_;
  int version_;
  Allocate allocate_;
  NcclType type_;
  NcclPlan plan_;
};

}  // namespace cleave::inline v0::detail
