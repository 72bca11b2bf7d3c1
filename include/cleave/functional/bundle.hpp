// Views of one element type that are communicated as one: packed into a buffer on their device, and
// unpacked from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/pieces.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// A tensor, its result, and the dimension that is gathered or scattered.
struct Operand {
  ConstView source{};
  View result{};
  int dim = 0;
  std::uint64_t detail = 0;  ///< of the collective: the dimension, or those of a bundle's members
};

/// Operands of one element type as one contiguous operand.
///
/// Scattered or gathered elements are ordered by rank: the pieces of all members for rank 0, then
/// those for rank 1, ..
template <class Device>
class Bundle {
 public:
  Bundle(CollectiveKind kind, int ranks, std::vector<Operand> members)
      : source_pieces_(kind == CollectiveKind::reduce_scatter ? ranks : 1),
        result_pieces_(kind == CollectiveKind::all_gather ? ranks : 1),
        members_(std::move(members)) {
    index_t sources = 0, results = 0;
    for (const Operand& member : members_) {
      sources += member.source.size();
      results += member.result.size();
    }
    source_ = allocate(sources);
    result_ = kind == CollectiveKind::all_reduce ? source_ : allocate(results);
    visit(
        source_pieces_, source_.view, [](const Operand& member) { return member.source; },
        [](const ConstView& piece, const View& packed) { strided_copy(Device{}, piece, packed); });
  }

  Operand operand() const {
    std::vector<int> dims;
    for (const Operand& member : members_) dims.push_back(member.dim);
    return {source_.view, result_.view, 0, packed_detail(dims)};
  }

  /// Unpacks the result to the members.
  void unpack() const {
    visit(
        result_pieces_, result_.view, [](const Operand& member) { return member.result; },
        [](const View& piece, const View& packed) { strided_copy(Device{}, packed, piece); });
  }

 private:
  struct Buffer {
    std::shared_ptr<void> storage{};
    View view{};
  };

  Buffer allocate(index_t elements) const {
    const DType type = members_[0].source.dtype;
    Buffer buffer;
    buffer.storage = allocate_bytes(Device{}, std::size_t(elements) * size_of(type));
    buffer.view = View::dense(buffer.storage.get(), type, Shape::filled(1, elements));
    return buffer;
  }

  /// Calls move(piece of a member, its place in the buffer) for all pieces of all members.
  template <class ViewOf, class Move>
  void visit(int pieces, const View& buffer, ViewOf view_of, Move move) const {
    auto* at = static_cast<std::byte*>(buffer.data);
    for (int r = 0; r < pieces; ++r)
      for (const Operand& member : members_) {
        const auto whole = view_of(member);
        const auto piece =
            pieces == 1 ? whole : whole[piece_of(whole.extents, member.dim, r, pieces)];
        if (piece.size() == 0) continue;
        move(piece, View::dense(at, piece.dtype, piece.extents));
        at += piece.bytes();
      }
  }

  int source_pieces_;
  int result_pieces_;
  std::vector<Operand> members_;
  Buffer source_{};
  Buffer result_{};
};

}  // namespace cleave::inline v0::detail
