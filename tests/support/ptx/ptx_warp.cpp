// Barriers, and exchanges between the threads of a warp (sections 9.7.9.6, 9.7.13).
//
// All threads of the mask stop at such an instruction; then it is executed for all of them.
#include <array>
#include <bit>

#include "ptx_decode.hpp"
#include "ptx_grid.hpp"

namespace ptx {
namespace {

enum Mode : std::uint8_t {
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  shuffle_index,
  synchronize,
  vote_all,
  vote_any,
  vote_equal,
  vote_ballot,
  match_any,
  match_all
};
/// Of a barrier.
enum Reduction : std::uint8_t { reduce_none, reduce_count, reduce_and, reduce_or };

const Instruction& pending(const Thread& t) { return t.next[-1]; }

std::uint32_t operand(const Thread& t, int k) { return t.get<std::uint32_t>(pending(t).slot[k]); }

/// The operand of the mask is the last one: `count` operands.
std::uint32_t mask_of(const Thread& t) { return operand(t, pending(t).count - 1); }

struct Lane {
  Thread* thread;
  std::uint64_t value;
};

void shuffle(Thread& t, std::uint32_t lane, std::span<const Lane> lanes, Mode mode) {
  const Instruction& i = pending(t);
  const int from = i.count == 6 ? 2 : 1;  // after d, or d and p
  const std::uint32_t b = operand(t, from + 1) & 31, c = operand(t, from + 2);
  const std::uint32_t segment = c >> 8 & 31;
  const std::uint32_t most = (lane & segment) | (c & 31 & ~segment), least = lane & segment;
  std::uint32_t source = mode == shuffle_up     ? lane - b
                         : mode == shuffle_down ? lane + b
                         : mode == shuffle_xor  ? lane ^ b
                                                : least | (b & ~segment);
  const bool inside =
      mode == shuffle_up ? std::int32_t(source) >= std::int32_t(most) : source <= most;
  if (!inside) source = lane;
  if (source >= lanes.size() || lanes[source].thread == nullptr)
    throw Fault("a shuffle reads lane " + std::to_string(source) + ", which is not in the mask");
  t.set(i.slot[0], std::uint32_t(lanes[source].value));
  if (i.count == 6) t.slots[i.slot[1]] = inside ? 1 : 0;
}

/// Votes and matches: what the values of all lanes of the mask are.
void compare(Thread& t, std::uint64_t own, std::span<const Lane> lanes, Mode mode) {
  std::uint32_t mask = 0, set = 0, equal = 0;
  for (std::size_t k = 0; k < lanes.size(); ++k) {
    if (lanes[k].thread == nullptr) continue;
    const std::uint32_t bit = 1u << k;
    mask |= bit;
    if ((lanes[k].value & 1) != 0) set |= bit;
    if (lanes[k].value == own) equal |= bit;
  }
  const Instruction& i = pending(t);
  const auto answer = [&] {
    switch (mode) {
      case vote_all: return std::uint32_t(set == mask);
      case vote_any: return std::uint32_t(set != 0);
      case vote_equal: return std::uint32_t(set == mask || set == 0);
      case vote_ballot: return set;
      case match_any: return equal;
      default: return equal == mask ? mask : 0;
    }
  };
  t.set(i.slot[0], answer());
  if (i.count == 4) t.slots[i.slot[1]] = equal == mask ? 1 : 0;
}

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

const std::unordered_map<std::string, Mode>& modes() {
  static const std::unordered_map<std::string, Mode> names = {
      {"shfl.sync.up.b32", shuffle_up},      {"shfl.sync.down.b32", shuffle_down},
      {"shfl.sync.bfly.b32", shuffle_xor},   {"shfl.sync.idx.b32", shuffle_index},
      {"bar.warp.sync", synchronize},        {"vote.sync.all.pred", vote_all},
      {"vote.sync.any.pred", vote_any},      {"vote.sync.uni.pred", vote_equal},
      {"vote.sync.ballot.b32", vote_ballot}, {"vote.ballot.sync.b32", vote_ballot},
      {"match.any.sync.b32", match_any},     {"match.any.sync.b64", match_any},
      {"match.all.sync.b32", match_all},     {"match.all.sync.b64", match_all},
  };
  return names;
}

}  // namespace

void wait_at_barrier(Thread& t, const Instruction&) { t.state = State::at_barrier; }
void wait_at_warp(Thread& t, const Instruction&) { t.state = State::at_warp; }

void exchange(std::span<Thread> warp) {
  for (const Thread& first : warp) {
    if (first.state != State::at_warp || !complete(warp, first)) continue;
    const Mode mode = Mode(pending(first).mode);
    const std::uint32_t mask = mask_of(first);
    // After d, or d and p.
    const int count = pending(first).count, from = count == (mode <= shuffle_index ? 6 : 4) ? 2 : 1;
    const auto value = [&](const Thread& t) {
      return mode == synchronize ? 0 : t.slots[pending(t).slot[from]];
    };
    std::array<Lane, 32> of_warp{};
    const std::span<Lane> lanes(of_warp.data(), warp.size());
    for (std::size_t k = 0; k < warp.size(); ++k)
      if ((mask >> k & 1) != 0) lanes[k] = {&warp[k], value(warp[k])};
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      Thread* const thread = lanes[k].thread;
      if (thread == nullptr) continue;
      if (mode <= shuffle_index) shuffle(*thread, std::uint32_t(k), lanes, mode);
      else if (mode != synchronize) compare(*thread, lanes[k].value, lanes, mode);
    }
    if (mode == synchronize && std::popcount(mask) == int(warp.size()))
      ++first.block->warp_epochs[first.number / 32];
    for (const Lane& lane : lanes)
      if (lane.thread != nullptr) lane.thread->state = State::running;
    return;
  }
  throw Fault("not all threads of the mask reach this instruction of a warp");
}

void reduce_at_barrier(std::span<Thread> block) {
  std::uint32_t set = 0;
  for (const Thread& t : block) set += t.predicate(pending(t).slot[pending(t).count - 1]);
  for (Thread& t : block) {
    const Instruction& i = pending(t);
    t.set(i.slot[0], i.mode == reduce_count ? set
                     : i.mode == reduce_and ? std::uint32_t(set == block.size())
                                            : std::uint32_t(set != 0));
  }
}

bool decode_exchange(const Written& written, Instruction& instruction) {
  std::string key(written.parts[0]);
  for (std::size_t k = 1; k < written.parts.size(); ++k) key += '.' + std::string(written.parts[k]);
  for (const char* barrier : {"bar", "bar.cta", "barrier", "barrier.cta"}) {
    const std::string name = barrier + std::string(".red.");
    if (!key.starts_with(name)) continue;
    key.erase(0, name.size());
    if (key.starts_with("aligned.")) key.erase(0, 8);
    instruction.run = wait_at_barrier;
    instruction.count = std::uint8_t(written.operands);
    instruction.mode = key == "popc.u32"   ? reduce_count
                       : key == "and.pred" ? reduce_and
                       : key == "or.pred"  ? reduce_or
                                           : reduce_none;
    return instruction.mode != reduce_none && written.operands == 3;
  }
  if (key == "bar.sync" || key == "barrier.sync" || key == "barrier.sync.aligned" ||
      key == "bar.cta.sync" || key == "barrier.cta.sync" || key == "barrier.cta.sync.aligned") {
    instruction.run = wait_at_barrier;
    return written.operands == 1;
  }
  const auto found = modes().find(key);
  if (found == modes().end()) return false;
  instruction.run = wait_at_warp;
  instruction.mode = found->second;
  instruction.count = std::uint8_t(written.operands);
  return true;
}

}  // namespace ptx
