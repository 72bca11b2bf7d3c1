// The calls of regrouped dimensions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <cleave/comm/verify.hpp>
#include <cleave/redistribute/peers.hpp>
#include <cleave/redistribute/regroup.hpp>
#include <cleave/redistribute/transfer_lists.hpp>

namespace cleave::inline v0::redistribution {

/// One of the boxes of each rank's range.
struct RegroupPiece {
  Regroup how;
  int number = 0;

  friend constexpr bool operator==(const RegroupPiece&, const RegroupPiece&) = default;
  constexpr std::uint64_t checksum() const {
    cleave::detail::Checksum sum{how.checksum()};
    sum.add(std::uint64_t(number));
    return sum.sum;
  }

  /// The piece of the rank at a coordinate, in indices of the side that has boxes; empty if it has
  /// fewer pieces.
  Box box(const Shape& mesh, const Shape& at) const {
    const bool of_result = how.result_has_ranges(mesh);
    const Regroup::Side ranges = of_result ? how.to() : how.from();
    const Regroup::Side boxes = of_result ? how.from() : how.to();
    const Box own = owned_box(ranges.layout, ranges.shape, mesh, at);
    Box around = Box::of(Shape::filled(boxes.shape.dims, 0)), found = around;
    if (own.empty()) return found;
    for (int d = 0; d < boxes.shape.dims; ++d) {
      if (d >= boxes.first && d < boxes.end) continue;
      const int e = d < boxes.first ? d : d - boxes.end + ranges.end;
      around.begin[d] = own.begin[e], around.end[d] = own.end[e];
    }
    int i = 0;
    cleave::detail::each_box_of_range(boxes.shape, boxes.first, boxes.end, ranges.range(own),
                                      around, [&](const Box& piece) {
                                        if (i++ == number) found = piece;
                                      });
    return found;
  }
};

/// The transfers of one piece: at most one between two ranks.
struct PieceTransfers : Transfers {
  Box box{};  ///< this rank's piece
};

/// @cost O(p log p) for p peers and ranks that might be
CLEAVE_INLINE PieceTransfers piece_transfers(const RegroupPiece& piece, const Shape& mesh,
                                             const Shape& at) {
  const Regroup& how = piece.how;
  const bool of_result = how.result_has_ranges(mesh);
  const Regroup::Side ranges = of_result ? how.to() : how.from();
  const Regroup::Side boxes = of_result ? how.from() : how.to();
  const AxisMask axes = how.from().axes(mesh) | how.to().axes(mesh);
  const auto number = [&](const Shape& of) { return int(linear_index(mesh, of, axes)); };
  PieceTransfers found;
  found.box = piece.box(mesh, at);
  std::vector<Transfer>& mine = of_result ? found.receives : found.sends;
  std::vector<Transfer>& theirs = of_result ? found.sends : found.receives;
  // the ends of a transfer: `box` belongs to the rank that has boxes, `part` to that of the piece
  const auto transfer = [&](const Shape& peer, const Box& box, const Box& part) {
    return of_result ? Transfer{number(peer), box, part} : Transfer{number(peer), part, box};
  };
  each_box_within(boxes.layout, boxes.shape, mesh, axes, at, found.box,
                  [&](const Shape& peer, const Box& shared) {
                    const Box there = owned_box(boxes.layout, boxes.shape, mesh, peer);
                    mine.push_back(transfer(peer, shared.relative_to(there.begin),
                                            shared.relative_to(found.box.begin)));
                  });
  const Box own = owned_box(boxes.layout, boxes.shape, mesh, at);
  Box window = Box::of(ranges.shape);  // what the peers may have of it
  if (own.empty()) window = Box::of(Shape::filled(ranges.shape.dims, 0));
  else {
    for (int d = 0; d < ranges.shape.dims; ++d) {
      if (d >= ranges.first && d < ranges.end) continue;
      const int e = d < ranges.first ? d : d - ranges.end + boxes.end;
      window.begin[d] = own.begin[e], window.end[d] = own.end[e];
    }
    const int d = ranges.outer();
    const IndexRange range = boxes.range(own);
    window.begin[d] = range.begin / ranges.inner(d);
    window.end[d] = (range.end - 1) / ranges.inner(d) + 1;
  }
  each_box_within(
      ranges.layout, ranges.shape, mesh, axes, at, window, [&](const Shape& peer, const Box&) {
        const Box there = piece.box(mesh, peer), shared = intersect(there, own);
        if (!shared.empty())
          theirs.push_back(
              transfer(peer, shared.relative_to(own.begin), shared.relative_to(there.begin)));
      });
  for (std::vector<Transfer>* list : {&found.sends, &found.receives})
    std::sort(list->begin(), list->end(),
              [](const Transfer& a, const Transfer& b) { return a.peer < b.peer; });
  return found;
}

/// They are kept per mesh.
using PieceCache = TransferLists<RegroupPiece, PieceTransfers>;

/// The elements of a piece within a dense part, in the dimensions of the side that has boxes.
///
/// @param range  the elements of the part
inline View view_of_piece(const View& part, const Regroup::Side& ranges, const Regroup::Side& boxes,
                          const Box& piece, IndexRange range) {
  View view = View::dense(part.data, part.dtype, piece.extents());
  if (piece.empty()) return view;
  const index_t unit = cleave::detail::extent_of(part.extents, ranges.end, part.extents.dims);
  for (int d = 0; d < boxes.shape.dims; ++d)
    view.strides[d] = d < boxes.first ? part.strides[d]
                      : d < boxes.end ? boxes.inner(d) * unit
                                      : part.strides[d - boxes.end + ranges.end];
  view.data = static_cast<std::byte*>(part.data) +
              (boxes.range(piece).begin - range.begin) * unit * index_t(size_of(part.dtype));
  return view;
}

CLEAVE_INLINE void regroup(const char* operation, const Regroup& how, const View& source,
                           const View& destination, const MeshState& mesh) {
  if (!mesh.is_member()) return;
  const Shape& extents = mesh.extents();
  const bool of_result = how.result_has_ranges(extents);
  const Regroup::Side ranges = of_result ? how.to() : how.from();
  const Regroup::Side boxes = of_result ? how.from() : how.to();
  const IndexRange range =
      ranges.range(owned_box(ranges.layout, ranges.shape, extents, mesh.coordinate()));
  const Context context{mesh, {}, operation};
  const AxisMask axes = how.from().axes(extents) | how.to().axes(extents);
  std::vector<Call> calls;
  for (int i = 0; i < how.pieces(extents); ++i) {
    const RegroupPiece piece{how, i};
    const auto transfers = mesh.cache<PieceCache>().get(
        piece, [&] { return piece_transfers(piece, extents, mesh.coordinate()); });
    const View part =
        view_of_piece(of_result ? destination : source, ranges, boxes, transfers->box, range);
    Call call{CollectiveKind::exchange,
              {},
              axes,
              how.result_shape.product(),
              of_result ? source : part,
              {nullptr, of_result ? part : destination}};
    call.transfers = transfers;
    call.detail = checksum_detail(piece.checksum());
    calls.push_back(std::move(call));
  }
  std::vector<Collective> round;
  for (const Call& call : calls) round.push_back(call.collective(context));
  mesh.group(axes)->run_all(round);
}

}  // namespace cleave::inline v0::redistribution
