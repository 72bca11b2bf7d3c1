// How operands of one round are packed together and run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/functional/entry.hpp>
#include <cleave/comm/functional/operands.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::functional::detail {

/// Latency is all that an operand costs which neither takes nor gives more bytes than this.
inline constexpr index_t small_bytes = 64 << 10;

/// Operands of one element type as one dense operand.
///
/// What is scattered, or gathered, lies rank by rank: the parts of all members for rank 0, then
/// those for rank 1, ..
template <class Device>
class Bundle {
 public:
  Bundle(CollectiveKind kind, int ranks, std::vector<Operand> members)
      : source_parts_(kind == CollectiveKind::reduce_scatter ? ranks : 1),
        result_parts_(kind == CollectiveKind::all_gather ? ranks : 1),
        members_(std::move(members)) {
    index_t sources = 0, results = 0;
    for (const Operand& member : members_) {
      sources += member.source.size();
      results += member.result.size();
    }
    source_ = allocate(sources);
    result_ = kind == CollectiveKind::all_reduce ? source_ : allocate(results);
    visit(
        source_parts_, source_.view, [](const Operand& member) { return member.source; },
        [](const ConstView& part, const View& packed) { strided_copy(Device{}, part, packed); });
  }

  Operand operand() const {
    std::vector<int> dims;
    for (const Operand& member : members_) dims.push_back(member.dim);
    return {source_.view, result_.view, 0, packed_detail(dims)};
  }

  /// Hands the result to the members.
  void unpack() const {
    visit(
        result_parts_, result_.view, [](const Operand& member) { return member.result; },
        [](const View& part, const View& packed) { strided_copy(Device{}, packed, part); });
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

  /// Calls move(part of a member, its place in the buffer) for all parts of all members.
  template <class ViewOf, class Move>
  void visit(int parts, const View& buffer, ViewOf view_of, Move move) const {
    auto* at = static_cast<std::byte*>(buffer.data);
    for (int r = 0; r < parts; ++r)
      for (const Operand& member : members_) {
        const auto whole = view_of(member);
        const auto part = parts == 1 ? whole : whole[part_of(whole.extents, member.dim, r, parts)];
        if (part.size() == 0) continue;
        move(part, View::dense(at, part.dtype, part.extents));
        at += part.bytes();
      }
  }

  int source_parts_;
  int result_parts_;
  std::vector<Operand> members_;
  Buffer source_{};
  Buffer result_{};
};

/// The operands that go as they are, and those that go together.
template <class Device>
struct Round {
  std::vector<Operand> operands{};  ///< those of the bundles included
  std::vector<Bundle<Device>> bundles{};

  Round(CollectiveKind kind, int ranks, std::span<const Operand> all) {
    std::vector<Operand> small;
    for (const Operand& operand : all) {
      const bool is_small = std::max(operand.source.bytes(), operand.result.bytes()) <= small_bytes;
      (is_small ? small : operands).push_back(operand);
    }
    while (!small.empty()) {
      const DType type = small[0].source.dtype;
      std::vector<Operand> members, others;
      for (const Operand& operand : small)
        (operand.source.dtype == type ? members : others).push_back(operand);
      small = std::move(others);
      operands.push_back(members.size() == 1
                             ? members[0]
                             : bundles.emplace_back(kind, ranks, std::move(members)).operand());
    }
  }
};

template <class Device>
void run_operands(const Channel& channel, CollectiveKind kind, ReduceOp op,
                  std::span<const Operand> operands) {
  const int ranks = channel.group().size();
  const Round<Device> round(kind, ranks, operands);
  std::vector<Box> pieces;  // of all operands
  pieces.reserve(round.operands.size() * std::size_t(ranks));
  std::vector<Collective> calls;
  for (const Operand& operand : round.operands) {
    Collective& call = calls.emplace_back();
    call.kind = kind;
    call.op = op;
    call.source = operand.source;
    call.destination = operand.result;
    const Shape& whole =
        kind == CollectiveKind::all_gather ? operand.result.extents : operand.source.extents;
    if (kind != CollectiveKind::all_reduce) {
      for (int r = 0; r < ranks; ++r) pieces.push_back(part_of(whole, operand.dim, r, ranks));
      call.detail = operand.detail;
      call.pieces = {&pieces.back() + 1 - ranks, std::size_t(ranks)};
    }
    call.global_count = whole.product();
  }
  channel.run(calls);
  for (const Bundle<Device>& bundle : round.bundles) bundle.unpack();
}

}  // namespace cleave::functional::detail
