// Barriers, and exchanges between the threads of a warp (sections 9.7.9.6, 9.7.13).
//
// All threads of the mask stop at such an instruction; then it is executed for all of them.
#include <array>
#include <bit>

#include "ptx_decode.hpp"
#include "ptx_grid.hpp"

namespace ptx {
namespace {

enum Mode : std::uint8_t { synchronize, ballot, shuffle_up, shuffle_xor, shuffle_index };

const Instruction& pending(const Thread& t) { return t.next[-1]; }

std::uint32_t operand(const Thread& t, int k) { return t.get<std::uint32_t>(pending(t).slot[k]); }

/// The last operand: of shuffles d|p, a, b, c, mask; of votes d, p, mask.
std::uint32_t mask_of(const Thread& t) { return operand(t, pending(t).operands - 1); }

bool complete(std::span<Thread> warp, const Thread& first) {
  const std::uint32_t mask = mask_of(first);
  for (std::size_t k = 0; k < 32; ++k) {
    if ((mask >> k & 1) == 0) continue;
    if (k >= warp.size() || warp[k].state != State::at_warp || warp[k].next != first.next ||
        mask_of(warp[k]) != mask)
      return false;
  }
  return (mask >> (first.number % 32) & 1) != 0;
}

/// @param values  of the lanes of the mask
void shuffle(Thread& t, std::uint32_t mask, const std::array<std::uint32_t, 32>& values) {
  const std::uint32_t lane = t.number % 32, by = operand(t, 3) & 31;
  const std::uint8_t mode = pending(t).mode;
  if (pending(t).operands != 6 || operand(t, 4) != (mode == shuffle_up ? 0 : 31))
    throw Fault("shuffles of a part of a warp are outside the interpreted subset of PTX");
  std::uint32_t source = mode == shuffle_up ? lane - by : mode == shuffle_xor ? lane ^ by : by;
  const bool inside = source < 32;
  if (!inside) source = lane;
  if ((mask >> source & 1) == 0)
    throw Fault("a shuffle reads lane " + std::to_string(source) + ", which is not in the mask");
  t.set(pending(t).slot[0], values[source]);
  t.set(pending(t).slot[1], inside);
}

}  // namespace

void wait_at_barrier(Thread& t, const Instruction& i) {
  const bool reduces = i.mode != 0;
  if (i.operands != (reduces ? 3 : 1) || t.slots[i.slot[reduces]] != 0)
    throw Fault("named barriers are outside the interpreted subset of PTX");
  t.state = State::at_barrier;
}
void wait_at_warp(Thread& t, const Instruction&) { t.state = State::at_warp; }

void exchange(std::span<Thread> warp) {
  for (const Thread& first : warp) {
    if (first.state != State::at_warp || !complete(warp, first)) continue;
    const std::uint8_t mode = pending(first).mode;
    const std::uint32_t mask = mask_of(first);
    std::array<std::uint32_t, 32> values{};
    std::uint32_t set = 0;
    for (Thread& t : warp) {
      const std::uint32_t lane = t.number % 32;
      if ((mask >> lane & 1) == 0 || mode == synchronize) continue;
      values[lane] = operand(t, mode == ballot ? 1 : 2);
      set |= (values[lane] & 1) << lane;
    }
    for (Thread& t : warp) {
      if ((mask >> (t.number % 32) & 1) == 0) continue;
      if (mode == ballot) t.set(pending(t).slot[0], set);
      else if (mode != synchronize) shuffle(t, mask, values);
      t.state = State::running;
    }
    if (mode == synchronize && std::popcount(mask) == int(warp.size()))
      ++first.block->warp_epochs[first.number / 32];
    return;
  }
  throw Fault("not all threads of the mask reach this instruction of a warp");
}

void finish_barrier(std::span<Thread> block) {
  if (pending(block[0]).mode == 0) return;
  bool any = false;
  for (const Thread& t : block) any = any || t.predicate(pending(t).slot[2]);
  for (Thread& t : block) t.set(pending(t).slot[0], any);
}

void add_exchanges(Operations& all) {
  all["bar"] = {wait_at_barrier};
  all["bar.red.or.pred"] = {wait_at_barrier, 1};
  all["bar.warp"] = {wait_at_warp, synchronize};
  all["vote.ballot.u32"] = {wait_at_warp, ballot};
  all["shfl.up.u32"] = {wait_at_warp, shuffle_up};
  all["shfl.bfly.u32"] = {wait_at_warp, shuffle_xor};
  all["shfl.idx.u32"] = {wait_at_warp, shuffle_index};
}

}  // namespace ptx
