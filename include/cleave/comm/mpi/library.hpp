// Collectives by the MPI library's own algorithms, which may suit the network better: non-blocking
// calls, waited for like messages.
//
// MPI cannot cancel such a call. So it is given copies only, in memory that is kept until the
// program exits if the call does not complete, and long arrays are passed in parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/linear_range.hpp>
#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/mpi/handle.hpp>
#include <cleave/comm/reduce.hpp>
#include <cleave/comm/require_reduction.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

/// Maximum bytes that a rank sends, and that it receives, in one call of the library; the same on
/// all ranks. Small in tests.
inline std::size_t max_library_bytes = std::size_t(4) << 20;

/// The MPI datatype and operation of a reduction.
struct MpiReduction {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;  ///< null: MPI has no equivalent
  int parts = 1;            ///< numbers per element

  /// MPI has no floating-point maximum or minimum that propagates NaNs; integers wrap as unsigned;
  /// complex numbers are summed as pairs.
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
        if (!order) result.type = MPI_FLOAT;
        break;
      case DType::float64:
        if (!order) result.type = MPI_DOUBLE;
        break;
      case DType::complex64:
        if (op == ReduceOp::sum) result.type = MPI_FLOAT;
        break;
      case DType::complex128:
        if (op == ReduceOp::sum) result.type = MPI_DOUBLE;
        break;
      default: break;
    }
    if (result.type == MPI_DATATYPE_NULL) return result;
    result.parts = is_complex_dtype(type) ? 2 : 1;
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
  /// Whether the library has an equivalent call.
  static bool has(const Collective& c) {
    switch (c.kind) {
      case CollectiveKind::all_gather: return true;
      case CollectiveKind::all_to_all: return c.even && c.global_count > 0;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_reduce: return MpiReduction::of(c.dtype(), c.op).op != MPI_OP_NULL;
      default: return false;
    }
  }

  /// @throws Error if a rank is known to have failed
  explicit MpiLibrary(const MpiOpContext& context) : context_(context) {
    context_.detector->verify(context_.operation);
    for (const int r : context_.world_ranks)
      if (r != context_.detector->rank()) others_.push_back(r);
    std::sort(others_.begin(), others_.end());
  }

  /// @pre has(c)
  void run(const Collective& c) {
    switch (c.kind) {
      case CollectiveKind::all_gather: return all_gather(c);
      case CollectiveKind::reduce_scatter: return reduce_scatter(c);
      case CollectiveKind::all_reduce: return all_reduce(c);
      default: return all_to_all(c);
    }
  }

 private:
  using Memory = std::shared_ptr<void>;

  static std::byte* at(const Memory& memory, std::size_t bytes) {
    return static_cast<std::byte*>(memory.get()) + bytes;
  }
  static Memory take(std::size_t bytes) {
    return allocate_bytes(Host{}, std::max<std::size_t>(bytes, 1));
  }

  /// Passes pieces in rounds: part [round] of every piece at a time.
  struct Rounds {
    std::size_t size = 1;
    index_t each = 1;   ///< elements of a piece in one round
    index_t count = 0;  ///< number of rounds

    Rounds(index_t longest, std::size_t bytes, std::size_t pieces)
        : size(bytes),
          each(std::max<index_t>(1, index_t(max_library_bytes / (bytes * pieces)))),
          count((longest + each - 1) / each) {}
    index_t begin(index_t round) const { return round * each; }
    index_t part(index_t elements, index_t round) const {
      return std::clamp<index_t>(elements - begin(round), 0, each);
    }
  };

  static index_t longest(std::span<const Box> pieces) {
    index_t most = 0;
    for (const Box& piece : pieces) most = std::max(most, piece.volume());
    return most;
  }

  void all_reduce(const Collective& c) {
    const MpiReduction reduction = MpiReduction::of(c.source.dtype, c.op);
    const index_t elements = c.source.size();
    const Rounds rounds(elements, size_of(c.source.dtype), 1);
    const Memory memory = take(std::size_t(std::min(elements, rounds.each)) * rounds.size);
    for (index_t i = 0; i < rounds.count; ++i) {
      const index_t count = rounds.part(elements, i);
      pack_range(c.source, rounds.begin(i), count, memory.get());
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(MPI_IN_PLACE, memory.get(), int(count) * reduction.parts, reduction.type,
                           reduction.op, context_.comm, &request),
            "MPI_Iallreduce");
      wait(request, {memory});
      unpack_range(memory.get(), c.destination, rounds.begin(i), count);
    }
  }

  void reduce_scatter(const Collective& c) {
    const MpiReduction reduction = MpiReduction::of(c.source.dtype, c.op);
    const std::size_t n = c.pieces.size();
    const Rounds rounds(longest(c.pieces), size_of(c.source.dtype), n);
    const Memory from = take(n * std::size_t(rounds.each) * rounds.size);
    const Memory to = take(std::size_t(rounds.each) * rounds.size);
    const Memory list = take(n * sizeof(int));
    auto* const counts = static_cast<int*>(list.get());
    for (index_t i = 0; i < rounds.count; ++i) {
      std::size_t bytes = 0;
      for (std::size_t r = 0; r < n; ++r) {
        const index_t count = rounds.part(c.pieces[r].volume(), i);
        if (count > 0) pack_range(c.source[c.pieces[r]], rounds.begin(i), count, at(from, bytes));
        counts[r] = int(count) * reduction.parts;
        bytes += std::size_t(count) * rounds.size;
      }
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ireduce_scatter(from.get(), to.get(), counts, reduction.type, reduction.op,
                                context_.comm, &request),
            "MPI_Ireduce_scatter");
      wait(request, {from, to, list});
      const index_t mine = rounds.part(c.destination.size(), i);
      if (mine > 0) unpack_range(to.get(), c.destination, rounds.begin(i), mine);
    }
  }

  void all_gather(const Collective& c) {
    const std::size_t n = c.pieces.size();
    const Rounds rounds(longest(c.pieces), size_of(c.destination.dtype), n);
    const Memory all = take(n * std::size_t(rounds.each) * rounds.size);
    const Memory list = take(2 * n * sizeof(int));
    auto* const counts = static_cast<int*>(list.get());
    int* const offsets = counts + n;
    for (index_t i = 0; i < rounds.count; ++i) {
      int bytes = 0;
      for (std::size_t r = 0; r < n; ++r) {
        offsets[r] = bytes;
        counts[r] = int(rounds.part(c.pieces[r].volume(), i)) * int(rounds.size);
        bytes += counts[r];
      }
      const index_t mine = rounds.part(c.source.size(), i);
      const auto self = std::size_t(context_.rank);
      if (mine > 0)
        pack_range(c.source, rounds.begin(i), mine, at(all, std::size_t(offsets[self])));
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, all.get(), counts, offsets, MPI_BYTE,
                            context_.comm, &request),
            "MPI_Iallgatherv");
      wait(request, {all, list});
      for (std::size_t r = 0; r < n; ++r) {
        const index_t count = rounds.part(c.pieces[r].volume(), i);
        if (count > 0)
          unpack_range(at(all, std::size_t(offsets[r])), c.destination[c.pieces[r]],
                       rounds.begin(i), count);
      }
    }
  }

  /// @pre every rank sends the same number of elements to every rank
  void all_to_all(const Collective& c) {
    const auto n = std::size_t(context_.size);
    const index_t elements = c.global_count / index_t(n * n);
    const Rounds rounds(elements, size_of(c.source.dtype), n);
    const Memory from = take(n * std::size_t(rounds.each) * rounds.size);
    const Memory to = take(n * std::size_t(rounds.each) * rounds.size);
    for (index_t i = 0; i < rounds.count; ++i) {
      const index_t count = rounds.part(elements, i);
      const std::size_t bytes = std::size_t(count) * rounds.size;
      for (const Transfer& t : c.sends)
        pack_range(c.source[t.source], rounds.begin(i), count,
                   at(from, std::size_t(t.peer) * bytes));
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ialltoall(from.get(), int(bytes), MPI_BYTE, to.get(), int(bytes), MPI_BYTE,
                          context_.comm, &request),
            "MPI_Ialltoall");
      wait(request, {from, to});
      for (const Transfer& t : c.receives)
        unpack_range(at(to, std::size_t(t.peer) * bytes), c.destination[t.destination],
                     rounds.begin(i), count);
    }
  }

  /// @param memory  all memory that the call may access
  /// @throws Error if a rank has failed, or the call does not complete in time
  void wait(MPI_Request& request, std::initializer_list<Memory> memory) {
    MpiBackoff backoff(context_, MpiBackoff::For::library);
    try {
      for (;;) {
        int done = 0;
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done != 0) return;
        backoff.rest([&] { return others_; });
      }
    } catch (...) {
      for (const Memory& block : memory) keep_until_exit(block);
      throw;
    }
  }

  void check(int code, const char* call) const {
    if (code != MPI_SUCCESS) context_.fail(std::string(call) + ": " + mpi_error_text(code));
  }

  MpiOpContext context_;
  std::vector<int> others_;  ///< world ranks, ascending
};

}  // namespace cleave::detail
