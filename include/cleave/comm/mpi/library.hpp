// Collectives of the MPI library, on views: arrays that are contiguous are passed in place, others
// through scratch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/mpi/header.hpp>
#include <cleave/comm/mpi/scratch.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/core/require_reduction.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// The MPI datatype and operation of a reduction.
struct MpiReduction {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  int numbers = 1;  ///< per element

  /// Integers wrap as unsigned; complex numbers are summed as pairs.
  /// @pre library_reduces(type, op)
  static MpiReduction of(DType type, ReduceOp op) {
    const bool order = op == ReduceOp::max || op == ReduceOp::min;
    MpiReduction result;
    switch (type) {
      case DType::int8: result.type = order ? MPI_INT8_T : MPI_UINT8_T; break;
      case DType::uint8: result.type = MPI_UINT8_T; break;
      case DType::int16: result.type = order ? MPI_INT16_T : MPI_UINT16_T; break;
      case DType::uint16: result.type = MPI_UINT16_T; break;
      case DType::int32: result.type = order ? MPI_INT32_T : MPI_UINT32_T; break;
      case DType::uint32: result.type = MPI_UINT32_T; break;
      case DType::int64: result.type = order ? MPI_INT64_T : MPI_UINT64_T; break;
      case DType::uint64: result.type = MPI_UINT64_T; break;
      case DType::float32:
      case DType::complex64: result.type = MPI_FLOAT; break;
      case DType::float64:
      case DType::complex128: result.type = MPI_DOUBLE; break;
      default: break;
    }
    result.numbers = is_complex_dtype(type) ? 2 : 1;
    switch (op) {
      case ReduceOp::sum: result.op = MPI_SUM; break;
      case ReduceOp::product: result.op = MPI_PROD; break;
      case ReduceOp::max: result.op = MPI_MAX; break;
      case ReduceOp::min: result.op = MPI_MIN; break;
      case ReduceOp::band: result.op = MPI_BAND; break;
      case ReduceOp::bor: result.op = MPI_BOR; break;
      case ReduceOp::bxor: result.op = MPI_BXOR; break;
      case ReduceOp::avg: break;
    }
    return result;
  }
};

class MpiLibrary {
 public:
  /// @param context  must outlive this
  explicit MpiLibrary(const MpiOpContext& context) : context_(context) {}

  /// @pre a barrier, broadcast, all_gather, reduce_scatter, all_reduce or all_to_all whose counts
  ///      fit ints; a reduction that MPI has (library_reduces)
  void run(const Collective& c) {
    switch (c.kind) {
      case CollectiveKind::barrier: return call("MPI_Barrier", MPI_Barrier, MPI_Ibarrier);
      case CollectiveKind::broadcast: return broadcast(c);
      case CollectiveKind::all_gather: return all_gather(c);
      case CollectiveKind::reduce_scatter: return reduce_scatter(c);
      case CollectiveKind::all_reduce: return all_reduce(c);
      default: return all_to_all(c);
    }
  }

 private:
  /// Where the pieces of the ranks are, in elements: of one array, in which each is contiguous.
  struct Pieces {
    std::vector<int> counts, offsets;
    void* data = nullptr;

    /// For pieces of these lengths, one after the other in scratch.
    explicit Pieces(std::vector<int> lengths) : counts(std::move(lengths)), offsets(counts.size()) {
      for (std::size_t r = 1; r < counts.size(); ++r) offsets[r] = offsets[r - 1] + counts[r - 1];
    }
    std::size_t total() const { return std::size_t(offsets.back()) + std::size_t(counts.back()); }

    /// Places the pieces in an array where they are contiguous.
    /// @param in_order  only if they follow each other there in rank order, without gaps
    /// @return whether it has
    template <class PieceOf>
    bool place_in(const ConstView& array, const PieceOf& piece_of, bool in_order) {
      const auto* const begin = static_cast<const std::byte*>(array.data);
      const auto size = std::ptrdiff_t(size_of(array.dtype));
      std::vector<int> found = offsets;
      for (std::size_t r = 0; r < counts.size(); ++r) {
        if (counts[r] == 0) continue;
        const ConstView view = piece_of(int(r));
        const std::ptrdiff_t at = (static_cast<const std::byte*>(view.data) - begin) / size;
        if (!view.contiguous() || at < 0 || at > std::numeric_limits<int>::max()) return false;
        if (in_order && at != offsets[r]) return false;
        found[r] = int(at);
      }
      offsets = std::move(found);
      data = const_cast<void*>(array.data);
      return true;
    }
    bool equal() const {
      return std::ranges::all_of(counts, [&](int count) { return count == counts[0]; });
    }
  };

  void broadcast(const Collective& c) {
    const bool root = context_.rank == c.root;
    const ConstView& array = root ? c.source : ConstView(c.destination);
    void* data = const_cast<void*>(array.data);
    if (!array.contiguous()) data = scratch(array.bytes());
    if (root && !array.contiguous()) pack_view(array, data);
    if (array.size() > 0)
      call("MPI_Bcast", MPI_Bcast, MPI_Ibcast, data, int(array.size()), word(array.dtype), c.root);
    if (!root && !array.contiguous()) unpack_view(data, c.destination);
  }

  void all_gather(const Collective& c) {
    const auto piece = [&](int r) { return c.destination[c.pieces[std::size_t(r)]]; };
    Pieces pieces(volumes(c.pieces));
    const bool in_place = pieces.place_in(c.destination, piece, pieces.equal());
    if (!in_place) pieces.data = scratch(c.destination.bytes());
    const auto own = std::size_t(context_.rank);
    void* const mine = address(pieces, own, c.destination.dtype);
    if (c.source.size() > 0 && c.source.data != mine) pack_view(c.source, mine);
    MPI_Datatype type = word(c.destination.dtype);
    if (pieces.equal())
      call("MPI_Allgather", MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, type, pieces.data,
           pieces.counts[0], type);
    else
      call("MPI_Allgatherv", MPI_Allgatherv, MPI_Iallgatherv, MPI_IN_PLACE, 0, type, pieces.data,
           pieces.counts.data(), pieces.offsets.data(), type);
    for (int r = 0; r < context_.size && !in_place; ++r)
      if (pieces.counts[std::size_t(r)] > 0)
        unpack_view(address(pieces, std::size_t(r), c.destination.dtype), piece(r));
  }

  void reduce_scatter(const Collective& c) {
    const MpiReduction reduction = MpiReduction::of(c.source.dtype, c.op);
    const auto piece = [&](int r) { return c.source[c.pieces[std::size_t(r)]]; };
    Pieces pieces(volumes(c.pieces));
    const std::size_t total = pieces.total();
    if (!pieces.place_in(c.source, piece, true)) {
      pieces.data = scratch(index_t(total * size_of(c.source.dtype)));
      for (int r = 0; r < context_.size; ++r)
        if (pieces.counts[std::size_t(r)] > 0)
          pack_view(piece(r), address(pieces, std::size_t(r), c.source.dtype));
    }
    const bool direct = c.destination.contiguous();
    void* const to = direct ? c.destination.data : scratch(c.destination.bytes());
    for (int& count : pieces.counts) count *= reduction.numbers;
    if (pieces.equal())
      call("MPI_Reduce_scatter_block", MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block,
           pieces.data, to, pieces.counts[0], reduction.type, reduction.op);
    else
      call("MPI_Reduce_scatter", MPI_Reduce_scatter, MPI_Ireduce_scatter, pieces.data, to,
           pieces.counts.data(), reduction.type, reduction.op);
    if (!direct) unpack_view(to, c.destination);
  }

  void all_reduce(const Collective& c) {
    if (c.source.size() == 0) return;
    const MpiReduction reduction = MpiReduction::of(c.source.dtype, c.op);
    const bool direct = c.destination.contiguous();
    void* const to = direct ? c.destination.data : scratch(c.destination.bytes());
    const bool in_place = c.source.data == to || !c.source.contiguous();
    if (!c.source.contiguous()) pack_view(c.source, to);
    call("MPI_Allreduce", MPI_Allreduce, MPI_Iallreduce, in_place ? MPI_IN_PLACE : c.source.data,
         to, int(c.source.size()) * reduction.numbers, reduction.type, reduction.op);
    if (!direct) unpack_view(to, c.destination);
  }

  void all_to_all(const Collective& c) {
    const auto source = [&](const Transfer& t) { return c.source[t.source]; };
    const auto destination = [&](const Transfer& t) { return c.destination[t.destination]; };
    Pieces out = pieces_of(c.sends, c.source, source, c.even);
    Pieces in = pieces_of(c.receives, c.destination, destination, c.even);
    const bool sends_in_place = out.data != nullptr, receives_in_place = in.data != nullptr;
    if (!sends_in_place) {
      out.data = scratch(index_t(out.total() * size_of(c.dtype())));
      each_packed(c.sends, out, source,
                  [](std::byte* at, const ConstView& view) { pack_view(view, at); });
    }
    if (!receives_in_place) in.data = scratch(index_t(in.total() * size_of(c.dtype())));
    MPI_Datatype type = word(c.dtype());
    if (c.even)
      call("MPI_Alltoall", MPI_Alltoall, MPI_Ialltoall, out.data, out.counts[0], type, in.data,
           in.counts[0], type);
    else
      call("MPI_Alltoallv", MPI_Alltoallv, MPI_Ialltoallv, out.data, out.counts.data(),
           out.offsets.data(), type, in.data, in.counts.data(), in.offsets.data(), type);
    if (!receives_in_place)
      each_packed(c.receives, in, destination,
                  [](const std::byte* at, const View& view) { unpack_view(at, view); });
  }

  /// The pieces that are sent to, or received from, each rank; in place if there is one for each
  /// rank at most, and all are contiguous.
  template <class ViewOf>
  Pieces pieces_of(std::span<const Transfer> transfers, const ConstView& array, const ViewOf& view,
                   bool in_order) {
    std::vector<int> counts(std::size_t(context_.size), 0);
    std::vector<const Transfer*> of(counts.size(), nullptr);
    bool single = true;
    for (const Transfer& t : transfers) {
      const index_t count = view(t).size();
      if (count == 0) continue;
      single = single && of[std::size_t(t.peer)] == nullptr;
      of[std::size_t(t.peer)] = &t;
      counts[std::size_t(t.peer)] += int(count);
    }
    Pieces pieces(std::move(counts));
    if (single)
      pieces.place_in(array, [&](int r) { return ConstView(view(*of[std::size_t(r)])); }, in_order);
    return pieces;
  }

  /// Calls f(memory, view) for the views that are not empty: those of one peer follow each other.
  template <class ViewOf, class F>
  static void each_packed(std::span<const Transfer> transfers, const Pieces& pieces,
                          const ViewOf& view_of, const F& f) {
    std::vector<int> at = pieces.offsets;
    for (const Transfer& t : transfers) {
      const auto view = view_of(t);
      if (view.size() == 0) continue;
      int& offset = at[std::size_t(t.peer)];
      f(static_cast<std::byte*>(pieces.data) + std::size_t(offset) * size_of(view.dtype), view);
      offset += int(view.size());
    }
  }

  static std::vector<int> volumes(std::span<const Box> pieces) {
    std::vector<int> counts;
    for (const Box& piece : pieces) counts.push_back(int(piece.volume()));
    return counts;
  }
  static void* address(const Pieces& pieces, std::size_t r, DType type) {
    return static_cast<std::byte*>(pieces.data) + std::size_t(pieces.offsets[r]) * size_of(type);
  }

  std::byte* scratch(index_t bytes) { return scratch_.take(std::size_t(bytes)); }

  /// An MPI datatype of the same size, for calls that only move elements.
  static MPI_Datatype word(DType type) {
    switch (size_of(type)) {
      case 1: return MPI_BYTE;
      case 2: return MPI_UINT16_T;
      case 4: return MPI_UINT32_T;
      case 8: return MPI_UINT64_T;
      default: return MPI_C_DOUBLE_COMPLEX;
    }
  }

  /// Calls MPI; a worker thread starts the call and leaves the core to its rank while it waits.
  /// @throws Error if MPI refuses it. If it does not end in time, the job ends.
  template <class Blocking, class Start, class... Arguments>
  void call(const char* name, Blocking blocking, Start start, Arguments... arguments) {
    const MpiBlockingCall listed(context_);
    if (!is_worker_thread()) return check(blocking(arguments..., context_.comm), name);
    MPI_Request request = MPI_REQUEST_NULL;
    check(start(arguments..., context_.comm, &request), name);
    MpiBackoff backoff(context_);
    for (int done = 0;; backoff.pause()) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), name);
      if (done != 0) return;
    }
  }

  void check(int code, const char* name) const {
    if (code != MPI_SUCCESS)
      context_.fail(std::string(name) + ": " + mpi_error_string(code) + " in " + context_.place());
  }

  const MpiOpContext& context_;
  MpiScratch& scratch_ = *context_.scratch;
};

}  // namespace cleave::inline v0::detail
