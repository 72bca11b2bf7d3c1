// Small tensors that are redistributed together, as one collective over all their elements: what
// moves is one exchange of bytes, reductions of one type and operation are one collective.
//
// Which elements go where is computed once per list of layouts, extents and types, and kept with
// the mesh; a later call with such a list copies rows of bytes to and from one buffer.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/redistribute/all_gather.hpp>
#include <cleave/redistribute/exchange.hpp>
#include <cleave/redistribute/keyed_cache.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/redistribute/run_plan.hpp>
#include <cleave/tensor/host_memory.hpp>

namespace cleave::inline v0::redistribution {

/// Rows of equal length in the dense elements of an entry, one after the other in a buffer; in
/// bytes.
struct PackedRows {
  std::size_t entry, at, packed, rows, bytes, step;

  /// Calls move(address in the entry, address in the buffer, bytes) for every row.
  template <class Move>
  void each(std::byte* elements, std::byte* buffer, const Move& move) const {
    elements += at, buffer += packed;
    for (std::size_t i = 0; i < rows; ++i, elements += step, buffer += bytes)
      move(elements, buffer, bytes);
  }
};

/// One collective over the elements of several entries, for this rank.
struct PackedCall {
  CollectiveKind kind{};
  ReduceOp op{};
  AxisMask axes = 0;
  DType dtype = DType::uint8;  ///< bytes, unless it reduces
  index_t global_count = 0;
  index_t source_size = 0, result_size = 0;
  std::vector<Box> pieces{};
  std::shared_ptr<const Transfers> transfers{};
  std::vector<PackedRows> packs{}, unpacks{};
};

/// How a list of entries is redistributed.
struct PackedList {
  /// One entry. Those that are not packed are redistributed one by one.
  struct Member {
    bool is_packed = false;
    Shape before{}, after{};  ///< extents of this rank's elements
  };
  std::vector<Member> members{};
  std::vector<PackedCall> calls{};
  std::uint64_t detail = 0;  ///< on which ranks must agree

  std::size_t weight() const {
    std::size_t rows = members.size();
    for (const PackedCall& call : calls)
      rows += call.pieces.size() + call.packs.size() + call.unpacks.size();
    return rows;
  }
};

/// Packs the entries of one collective.
/// @tparam Mesh  MeshState: compiled where it is called
template <std::same_as<MeshState> Mesh>
class PackedCallBuilder {
 public:
  PackedCallBuilder(const Step& first, DType dtype, const Mesh& mesh)
      : mesh_(mesh), size_(int(mesh.size(first.axes))), rank_(mesh.group(first.axes)->rank()) {
    call_.op = first.op;
    call_.axes = first.axes;
    call_.kind = kind_of(first.kind);
    if (reduces()) call_.dtype = dtype;
  }

  /// Whether a step can join. What moves elements moves bytes: an exchange does that for gathers.
  bool takes(const Step& step, DType dtype) const {
    const CollectiveKind kind = kind_of(step.kind);
    if (step.axes != call_.axes) return false;
    if (!reduces()) return kind == CollectiveKind::all_gather || kind == CollectiveKind::exchange;
    return kind == call_.kind && step.op == call_.op && dtype == call_.dtype;
  }

  void add(std::size_t index, const Step& step, const ListEntry& entry) {
    if (!reduces() && kind_of(step.kind) == CollectiveKind::exchange)
      call_.kind = CollectiveKind::exchange;
    members_.push_back({index, step, entry});
  }
  std::size_t members() const { return members_.size(); }

  PackedCall finish(std::vector<PackedList::Member>& list) {
    index_t width = 0;  // the most bytes from one rank to another in an exchange
    for (const auto& [index, step, entry] : members_) {
      const Shape& shape = entry.context.shape;
      list[index] = {true, own_box(step.from, entry.context).extents(),
                     own_box(step.to, entry.context).extents()};
      const bool gathers = kind_of(step.kind) == CollectiveKind::all_gather;
      call_.global_count +=
          index_t(unit_of(entry)) * (call_.kind == CollectiveKind::exchange ? shape.product()
                                     : gathers ? list[index].after.product()
                                               : list[index].before.product());
      width += std::min(longest_extents(step.from, shape, mesh_.extents()).product(),
                        longest_extents(step.to, shape, mesh_.extents()).product()) *
               index_t(unit_of(entry));
      add_moves(index, step, entry, list[index]);
    }
    const bool exchanges = call_.kind == CollectiveKind::exchange;
    const std::vector<Box> sent = lay_out(sends_, exchanges ? width : 0, call_.packs),
                           received = lay_out(receives_, exchanges ? width : 0, call_.unpacks);
    call_.source_size = sent.back().end[0];
    call_.result_size = received.back().end[0];
    if (call_.kind == CollectiveKind::reduce_scatter) call_.pieces = sent;
    if (call_.kind == CollectiveKind::all_gather) call_.pieces = received;
    if (!exchanges) return std::move(call_);
    call_.source_size = call_.result_size = width * size_;
    Transfers transfers;
    const auto row = [&](int of, const Box& like) {
      return Box{Shape::filled(1, of * width), Shape::filled(1, of * width + like.extent(0))};
    };
    for (int r = 0; r < size_; ++r) {
      const Box &to = sent[std::size_t(r)], &from = received[std::size_t(r)];
      if (!to.empty()) transfers.sends.push_back({r, to, row(rank_, to)});
      if (!from.empty()) transfers.receives.push_back({r, row(rank_, from), from});
    }
    call_.transfers = std::make_shared<const Transfers>(std::move(transfers));
    return std::move(call_);
  }

 private:
  struct Member {
    std::size_t index;
    const Step& step;
    const ListEntry& entry;
  };
  /// Elements of an entry that go to, or come from, a rank of the group.
  struct Move {
    int peer;
    std::size_t index;
    Box box;
    Shape extents;
    std::size_t element;
  };

  static CollectiveKind kind_of(StepKind kind) {
    return kind == StepKind::all_to_all ? CollectiveKind::exchange : collective_of(kind);
  }
  bool reduces() const {
    return call_.kind == CollectiveKind::all_reduce || call_.kind == CollectiveKind::reduce_scatter;
  }
  /// The units of the call's type in an element of an entry.
  std::size_t unit_of(const ListEntry& entry) const {
    return size_of(entry.block.view.dtype) / size_of(call_.dtype);
  }

  void add_moves(std::size_t index, const Step& step, const ListEntry& entry,
                 const PackedList::Member& member) {
    const std::size_t element = size_of(entry.block.view.dtype);
    const auto send = [&](int peer, const Box& box) {
      sends_.push_back({peer, index, box, member.before, element});
    };
    const auto receive = [&](int peer, const Box& box) {
      receives_.push_back({peer, index, box, member.after, element});
    };
    const Box before = Box::of(member.before), after = Box::of(member.after);
    const auto each_piece = [&](const StepLayout& of, const Box& within, const auto& f) {
      const auto boxes = boxes_of_members(of, entry.context, step.axes, within.begin);
      for (int r = 0; r < size_; ++r) f(r, boxes[std::size_t(r)]);
    };
    switch (kind_of(step.kind)) {
      case CollectiveKind::all_gather:
        for (int r = 0; r < (call_.kind == CollectiveKind::exchange ? size_ : 1); ++r)
          send(r, before);
        return each_piece(step.from, own_box(step.to, entry.context), receive);
      case CollectiveKind::reduce_scatter:
        receive(0, after);
        return each_piece(step.to, own_box(step.from, entry.context), send);
      case CollectiveKind::all_reduce: return send(0, before), receive(0, after);
      default: {
        const Transfers transfers =
            exchange_transfers(step, entry.context.shape, mesh_.extents(), mesh_.coordinate());
        for (const Transfer& t : transfers.sends) send(t.peer, t.source);
        for (const Transfer& t : transfers.receives) receive(t.peer, t.destination);
      }
    }
  }

  /// Places moves in a buffer, rank by rank.
  /// @param width  of the place of each rank; 0: as much as it needs
  /// @return       by rank: its place
  std::vector<Box> lay_out(std::vector<Move>& moves, index_t width, std::vector<PackedRows>& rows) {
    std::stable_sort(moves.begin(), moves.end(),
                     [](const Move& a, const Move& b) { return a.peer < b.peer; });
    const std::size_t unit = size_of(call_.dtype);
    std::vector<Box> places;
    std::size_t at = 0;
    auto move = moves.begin();
    for (int r = 0; r < size_; ++r) {
      if (width > 0) at = std::size_t(r * width) * unit;
      const auto begin = index_t(at / unit);
      for (; move != moves.end() && move->peer == r; ++move) append(*move, at, rows);
      places.push_back({Shape::filled(1, begin), Shape::filled(1, index_t(at / unit))});
    }
    return places;
  }

  static void append(const Move& move, std::size_t& at, std::vector<PackedRows>& rows) {
    if (move.box.empty()) return;
    const Shape strides = row_major_strides(move.extents);
    kernels::detail::DimLoops loops;
    for (int d = 0; d < move.extents.dims; ++d) loops.push(move.box.extent(d), {strides[d]});
    kernels::detail::DimLoops::Loop row, lines = loops.pop();
    if (lines.stride == 1) row = lines, lines = loops.pop();
    const index_t start = cleave::detail::offset_of(move.box.begin, strides);
    const std::size_t bytes = std::size_t(row.extent) * move.element;
    loops.each([&](index_t offset) {
      rows.push_back({move.index, std::size_t(start + offset) * move.element, at,
                      std::size_t(lines.extent), bytes, std::size_t(lines.stride) * move.element});
      at += std::size_t(lines.extent) * bytes;
    });
  }

  const Mesh& mesh_;
  int size_, rank_;
  PackedCall call_{};
  std::vector<Member> members_{};
  std::vector<Move> sends_{}, receives_{};
};

/// The lists of one mesh, kept for later calls.
class PackedLists {
 public:
  /// @tparam Parts  a span of ListEntry: compiled where it is called
  template <class Parts>
  std::shared_ptr<const PackedList> list(const Parts& entries) {
    Key key;
    key.words.reserve(6 * entries.size());
    for (const ListEntry& entry : entries) {
      const Shape& shape = entry.context.shape;
      key.words.insert(key.words.end(),
                       {entry.source.packed(), entry.target.packed(),
                        std::uint64_t(entry.block.view.dtype) << 8 | std::uint64_t(shape.dims)});
      for (const Layout* side : {&entry.source, &entry.target})
        if (const auto codes = side->codes(); !side->packs())
          key.words.insert(key.words.end(), codes.begin(), codes.end());
      for (const index_t extent : shape) key.words.push_back(std::uint64_t(extent));
      if (!entry.is_exact) continue;
      for (const Step& step : *entry.fixed) {
        key.words.push_back(std::uint64_t(step.kind) << 40 | std::uint64_t(step.op) << 32 |
                            step.axes);
        for (const StepLayout* side : {&step.from, &step.to}) {
          std::uint64_t order = side->layout.packed();
          for (int a = 0; a < side->layout.axes; ++a)
            order = order * 31 + std::uint64_t(side->order[std::size_t(a)]);
          key.words.push_back(order);
        }
      }
    }
    if (const auto* known = lists_.find(key)) return *known;
    PackedList list = make(entries);
    std::uint64_t sum = key.checksum();
    if (has_points(entries)) {  // the numbers of cut points depend on the process
      cleave::detail::Checksum points;
      for (const ListEntry& entry : entries)
        for (const std::uint64_t number :
             {entry.source.checksum(), entry.target.checksum(),
              std::uint64_t(entry.block.view.dtype), cleave::detail::checksum(entry.context.shape)})
          points.add(number);
      sum = points.sum;
    }
    list.detail = checksum_detail(sum);
    const std::size_t weight = std::max(list.weight(), min_weight);
    auto made = std::make_shared<const PackedList>(std::move(list));
    return weight > max_rows ? made : lists_.add(key, std::move(made), weight);
  }

 private:
  static constexpr std::size_t max_rows = 65536;  ///< in all lists: 5 MB
  static constexpr std::size_t min_weight = 64;   ///< at most 1024 lists
  /// Larger arrays are not worth two more copies; sums are, their synchronisation costs more.
  static constexpr index_t small_bytes = 16 << 10, small_sum_bytes = 256 << 10;

  struct Key {
    std::vector<std::uint64_t> words{};

    friend bool operator==(const Key&, const Key&) = default;
    std::uint64_t checksum() const { return cleave::detail::checksum(words); }
  };

  template <class Parts>
  static bool has_points(const Parts& entries) {
    for (const ListEntry& entry : entries)
      if ((entry.source.axes_with_points() | entry.target.axes_with_points()) != 0) return true;
    return false;
  }

  template <class Parts>
  static PackedList make(const Parts& entries) {
    PackedList list;
    list.members.resize(entries.size());
    std::vector<PackedCallBuilder<MeshState>> calls;
    std::vector<Plan> plans(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const ListEntry& entry = entries[i];
      const DType dtype = entry.block.view.dtype;
      plans[i] = plan_for(entry);
      if (plans[i].count != 1 || !communicates(plans[i][0].kind) || plans[i][0].needs_runs())
        continue;
      const Step& step = plans[i][0];
      const index_t most = step.kind == StepKind::all_reduce ? small_sum_bytes : small_bytes;
      if (entry.context.shape.product() * index_t(size_of(dtype)) > most) continue;
      std::size_t k = 0;
      while (k < calls.size() && !calls[k].takes(step, dtype)) ++k;
      if (k == calls.size()) calls.emplace_back(step, dtype, entry.context.mesh);
      calls[k].add(i, step, entry);
    }
    for (auto& call : calls)
      if (call.members() > 1) list.calls.push_back(call.finish(list.members));
    return list;
  }

  KeyedCache<Key, std::shared_ptr<const PackedList>, max_rows> lists_;
};

/// The packed calls of one call of `run_all`.
template <class Device>
class PackedEntries {
 public:
  explicit PackedEntries(std::span<ListEntry> entries)
      : entries_(entries),
        list_(entries[0].context.mesh.template cache<PackedLists>().list(entries)) {
    for (const PackedCall& packed : list_->calls) {
      const auto buffer = [&](index_t size) {
        return allocate<Device>(packed.dtype, Shape::filled(1, size));
      };
      const Block source = buffer(packed.source_size);
      for (const PackedRows& rows : packed.packs)
        if (Block& block = dense_block(rows.entry); !cleave::detail::is_dry())
          rows.each(bytes_of(block), bytes_of(source),
                    [](auto* from, auto* to, std::size_t n) { std::memcpy(to, from, n); });
      sources_.push_back(source);
      calls_.push_back({packed.kind, packed.op, packed.axes, packed.global_count, source.view,
                        buffer(packed.result_size), packed.pieces, packed.transfers, false,
                        list_->detail});
    }
  }

  bool takes(std::size_t index) const { return list_->members[index].is_packed; }
  /// How many entries it does not take.
  std::size_t untaken() const {
    return std::size_t(std::ranges::count(list_->members, false, &PackedList::Member::is_packed));
  }
  /// To be run before `unpack`.
  std::span<const Call> calls() const { return calls_; }

  /// Sets the blocks of the entries to their results.
  void unpack() {
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (takes(i))
        entries_[i].block = allocate<Device>(entries_[i].block.view.dtype, list_->members[i].after);
    if (cleave::detail::is_dry()) return;
    for (std::size_t k = 0; k < calls_.size(); ++k)
      for (const PackedRows& rows : list_->calls[k].unpacks)
        rows.each(bytes_of(entries_[rows.entry].block), bytes_of(calls_[k].result),
                  [](auto* to, auto* from, std::size_t n) { std::memcpy(to, from, n); });
  }

 private:
  static std::byte* bytes_of(const Block& block) {
    return static_cast<std::byte*>(block.view.data);
  }

  /// The elements of an entry, copied if they are not contiguous.
  Block& dense_block(std::size_t index) {
    Block& block = entries_[index].block;
    if (block.view.extents != list_->members[index].before)
      throw Error(entries_[index].context.operation,
                  "this rank's part does not match its placements",
                  {.shapes = to_string(block.view.extents)});
    if (!block.view.contiguous()) {
      const Block dense = allocate<Device>(block.view.dtype, block.view.extents);
      strided_copy(Device{}, block.view, dense.view);
      block = dense;
    }
    return block;
  }

  std::span<ListEntry> entries_;
  std::shared_ptr<const PackedList> list_;
  std::vector<Block> sources_{};
  std::vector<Call> calls_{};
};

}  // namespace cleave::inline v0::redistribution
