// S(i) -> S(j) and every other move: each rank receives the elements that it lacks.
//
// The source boxes of a group partition the indices into chunks; a chunk may have several owners
// (replicas). Every receiver takes each index from exactly one owner, from itself if it is one: it
// receives |destination box - source box| elements, the lower bound. Receivers are spread over the
// replicas.
#pragma once

#include <concepts>

#include <cleave/redistribute/exchange_side.hpp>
#include <cleave/redistribute/step_call.hpp>

namespace cleave::inline v0::redistribution {

/// The ranks of a group.
struct GroupNumbers {
  virtual ~GroupNumbers() = default;
  virtual int owner(const Shape& at) const = 0;     ///< the number of a rank of the source mesh
  virtual int receiver(const Shape& at) const = 0;  ///< of one of the target mesh
  /// Whether that one owns the same chunk of the source as this rank.
  virtual bool owns_chunk(const Shape& at) const = 0;
};

/// The numbers in the group of a step.
struct StepNumbers final : GroupNumbers {
  const ExchangeSide& before;
  AxisMask axes;

  StepNumbers(const ExchangeSide& side, AxisMask group) : before(side), axes(group) {}
  int owner(const Shape& at) const override { return int(linear_index(before.mesh, at, axes)); }
  int receiver(const Shape& at) const override { return owner(at); }
  bool owns_chunk(const Shape& at) const override { return before.is_own_chunk(at); }
};

/// The transfers of this rank between two layouts of boxes, sorted by peer; one with itself is a
/// copy.
///
/// @cost O(p log p) for p peers, whatever the number of ranks
template <std::same_as<ExchangeSide> Side>  // compiled where it is called
Transfers plan_transfers(const Side& before, const Side& after, const GroupNumbers& numbers) {
  Transfers transfers;
  if (after.self != nullptr) {
    const Box wanted = after.box(*after.self);
    before.each_chunk_within(wanted, [&](const Shape& chunk, const Box& box) {
      const Shape owner = owner_of(before, after, chunk);
      transfers.receives.push_back({numbers.owner(owner), box.relative_to(before.box(owner).begin),
                                    box.relative_to(wanted.begin)});
    });
  }
  if (before.self != nullptr) {
    const Box had = before.box(*before.self);
    after.each_chunk_within(had, [&](const Shape& chunk, const Box& box) {
      const Transfer send{0, box.relative_to(had.begin), box.relative_to(after.box(chunk).begin)};
      each_reader(before, after, chunk, numbers, [&](const Shape& reader) {
        transfers.sends.push_back({numbers.receiver(reader), send.source, send.destination});
      });
    });
  }
  transfers.sort();
  return transfers;
}

/// The same of the rank at `coordinate` with its group over `step.axes`; pure arithmetic.
template <std::same_as<Step> S>  // compiled where it is called, not wherever this is included
Transfers exchange_transfers(const S& step, const Shape& shape, const Shape& mesh,
                             const Shape& coordinate) {
  const ExchangeSide before(step.from, shape, mesh, &coordinate, step.axes);
  const ExchangeSide after(step.to, shape, mesh, &coordinate, step.axes);
  return plan_transfers(before, after, StepNumbers(before, step.axes));
}

}  // namespace cleave::inline v0::redistribution
