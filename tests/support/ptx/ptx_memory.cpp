// Loads, stores and atomic operations (sections 9.7.9, 9.7.13).
#include <algorithm>
#include <cstdio>
#include <type_traits>

#include "ptx_decode.hpp"
#include "ptx_grid.hpp"

namespace ptx {
namespace {

using I = const Instruction&;
enum class Use { read, write, atomic };

std::string hexadecimal(std::uint64_t address) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

[[noreturn]] void refuse(std::size_t bytes, std::uint64_t address, const char* why) {
  throw Fault("an access of " + std::to_string(bytes) + " bytes at " + hexadecimal(address) + ' ' +
              why);
}

void note(const Thread& t, std::size_t at, std::size_t bytes, Use use) {
  Block& block = *t.block;
  const auto me = std::uint16_t(t.number), my_warp = std::uint16_t(me / 32 | Access::of_warp);
  const Epoch now{block.epoch, block.warp_epochs[me / 32]};
  const auto same_warp = [&](std::uint16_t other) {
    return other == my_warp || (other < Access::of_warp && other / 32 == me / 32);
  };
  // Whether an access may be concurrent.
  const auto races = [&](std::uint16_t other, const Epoch& then) {
    return other != me && then.of_block == now.of_block &&
           !(same_warp(other) && then.of_warp != now.of_warp);
  };
  const auto race = [&](const char* what, std::uint16_t other) {
    throw Fault("a race in shared memory: byte " + std::to_string(at) + " was " + what + " by " +
                (other >= Access::of_warp ? "other threads" : "thread " + std::to_string(other)) +
                " since the last barrier");
  };
  for (Access* a = &block.accesses[at]; bytes > 0; ++a, ++at, --bytes) {
    if (races(a->writer, a->written_in) && !(a->atomic && use == Use::atomic))
      race("written", a->writer);
    if (use == Use::read) {
      const bool first = a->read_in.of_block != now.of_block;
      a->reader = first || a->reader == me ? me : same_warp(a->reader) ? my_warp : Access::several;
      a->read_in = now;
    } else {
      if (races(a->reader, a->read_in)) race("read", a->reader);
      a->writer = me;
      a->written_in = now;
      a->atomic = use == Use::atomic;
    }
  }
}

std::byte* in_shared(Thread& t, std::uint64_t at, std::size_t bytes, Use use) {
  Block& block = *t.block;
  if (at > block.shared_bytes() || bytes > block.shared_bytes() - at)
    refuse(bytes, at, "is beyond the shared memory of the block");
  note(t, at, bytes, use);
  return block.shared_begin() + at;
}

bool in_global(Block& block, std::uint64_t address, std::size_t bytes) {
  for (const Range& range : block.known)
    if (range.holds(address, bytes)) return true;
  const Range found = block.launch.memory(address);
  if (!found.holds(address, bytes)) return false;
  block.known[block.next_known++ % block.known.size()] = found;
  return true;
}

/// The host's address of the operand, which has been checked.
std::byte* locate(Thread& t, I i, std::size_t bytes, Use use) {
  std::uint64_t address = t.slots[i.slot[address_slot]] + std::uint64_t(i.offset);
  if (i.space == Space::shared) address = std::uint32_t(address);
  if (address % bytes != 0) refuse(bytes, address, "is not aligned to its size");
  Block& block = *t.block;
  if (i.space == Space::shared) return in_shared(t, address, bytes, use);
  const auto frame = reinterpret_cast<std::uintptr_t>(t.slots);
  const Range in_frame{frame, frame + block.launch.kernel->frame_bytes};
  const bool found = (i.space != Space::global && in_frame.holds(address, bytes)) ||
                     (i.space != Space::frame && in_global(block, address, bytes));
  if (!found)
    refuse(bytes, address,
           i.space == Space::frame ? "is not within the parameters and local memory"
                                   : "is not within usable device memory");
  return reinterpret_cast<std::byte*>(address);
}

template <class T>
void load(Thread& t, I i) {
  const std::byte* from = locate(t, i, sizeof(T) * i.elements, Use::read);
  for (int k = 0; k < i.elements; ++k) {
    T value;
    std::memcpy(&value, from + sizeof(T) * std::size_t(k), sizeof(T));
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      t.set(i.slot[k], std::int64_t(value));
    else t.set(i.slot[k], value);
  }
}

template <class T>
void store(Thread& t, I i) {
  std::byte* to = locate(t, i, sizeof(T) * i.elements, Use::write);
  for (int k = 0; k < i.elements; ++k)
    std::memcpy(to + sizeof(T) * std::size_t(k), t.slots + i.slot[k], sizeof(T));
}

// Operands: old value, value[, second value].
template <auto F, class T>
void atomic(Thread& t, I i) {
  std::byte* at = locate(t, i, sizeof(T), Use::atomic);
  T old;
  std::memcpy(&old, at, sizeof(T));
  const T fresh = T(F(old, t.get<T>(i.slot[1]), t.get<T>(i.slot[2])));
  std::memcpy(at, &fresh, sizeof(T));
  t.set(i.slot[0], old);
}
constexpr auto added = [](auto old, auto x, auto) { return old + x; };
constexpr auto disjunction = [](auto old, auto x, auto) { return old | x; };
constexpr auto exchanged_if_equal = [](auto old, auto x, auto y) { return old == x ? y : old; };

}  // namespace

void add_accesses(Operations& all) {
  const auto add = [&]<class T>() {
    all["ld" + suffix<T>()] = {load<T>};
    all["st" + suffix<T>()] = {store<T>};
  };
  for_each(Bytes{}, add);
  for_each(Integers{}, add);
  for_each(Floats{}, add);
  for_each(Types<std::uint32_t, std::uint64_t>{}, [&]<class T>() {
    all["atom.add" + suffix<T>()] = {atomic<added, T>};
    all["atom.or" + suffix<T>()] = {atomic<disjunction, T>};
    all["atom.cas" + suffix<T>()] = {atomic<exchanged_if_equal, T>};
  });
  for_each(Floats{}, [&]<class T>() { all["atom.add" + suffix<T>()] = {atomic<added, T>}; });
}

}  // namespace ptx
