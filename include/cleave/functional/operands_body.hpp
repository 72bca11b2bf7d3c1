// How operands of one round are packed together and run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/functional/operands.hpp>
#include <cleave/functional/run_functional.hpp>

namespace cleave::inline v0::functional::detail {

/// Latency dominates the cost of an operand whose source and result have at most this many bytes.
inline constexpr index_t small_bytes = 64 << 10;

/// The operands that are communicated in place, and those that are bundled.
template <class Device>
struct Round {
  std::vector<Operand> operands{};  ///< including those of the bundles
  std::vector<cleave::detail::Bundle<Device>> bundles{};

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
    Collective& call = calls.emplace_back(Collective{
        .kind = kind, .op = op, .source = operand.source, .destination = operand.result});
    const Shape& whole =
        kind == CollectiveKind::all_gather ? operand.result.extents : operand.source.extents;
    if (kind != CollectiveKind::all_reduce) {
      for (int r = 0; r < ranks; ++r) pieces.push_back(piece_of(whole, operand.dim, r, ranks));
      call.detail = operand.detail;
      call.pieces = {&pieces.back() + 1 - ranks, std::size_t(ranks)};
    }
    call.global_count = whole.product();
  }
  channel.run(calls);
  for (const auto& bundle : round.bundles) bundle.unpack();
}

}  // namespace cleave::inline v0::functional::detail
