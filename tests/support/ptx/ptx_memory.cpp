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
  Range found = block.launch.memory(address);
  for (const auto& [name, variable] : block.launch.program->module->variables()) {
    const auto begin = reinterpret_cast<std::uintptr_t>(variable.contents.get());
    if (begin != 0 && address - begin < variable.bytes) found = {begin, begin + variable.bytes};
  }
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
  if (i.space == Space::global || i.space == Space::constant) {
    if (!in_global(block, address, bytes))
      refuse(bytes, address, "is not within usable device memory");
    return reinterpret_cast<std::byte*>(address);
  }
  const auto stack = reinterpret_cast<std::uintptr_t>(t.stack.get());
  const auto parameters = reinterpret_cast<std::uintptr_t>(block.launch.parameters.data());
  const Range frames{stack, reinterpret_cast<std::uintptr_t>(t.slots + t.function->image.size())};
  const Range of_kernel{parameters, parameters + block.launch.parameters.size()};
  if (frames.holds(address, bytes)) return reinterpret_cast<std::byte*>(address);
  if (i.space != Space::local && use == Use::read && of_kernel.holds(address, bytes))
    return reinterpret_cast<std::byte*>(address);
  if (i.space == Space::generic) {
    const std::uint64_t at = address - reinterpret_cast<std::uintptr_t>(block.shared_begin());
    if (at < block.shared_bytes()) return in_shared(t, at, bytes, use);
    if (in_global(block, address, bytes)) return reinterpret_cast<std::byte*>(address);
    refuse(bytes, address, "is not within usable memory");
  }
  refuse(bytes, address,
         i.space == Space::local ? "is not within local memory" : "is not within the parameters");
}

template <class T>
void load(Thread& t, I i) {
  const std::byte* from = locate(t, i, sizeof(T) * i.count, Use::read);
  for (int k = 0; k < i.count; ++k) {
    T value;
    std::memcpy(&value, from + sizeof(T) * std::size_t(k), sizeof(T));
    if constexpr (std::is_signed_v<T>) t.set(i.slot[k], std::int64_t(value));
    else t.set(i.slot[k], std::uint64_t(value));
  }
}

template <class T>
void store(Thread& t, I i) {
  std::byte* to = locate(t, i, sizeof(T) * i.count, Use::write);
  for (int k = 0; k < i.count; ++k)
    std::memcpy(to + sizeof(T) * std::size_t(k), t.slots + i.slot[k], sizeof(T));
}

// Operands: [old value,] value[, second value]; `mode` is 1 if the old value is kept.
template <class T, auto F>
void atomic(Thread& t, I i) {
  std::byte* at = locate(t, i, sizeof(T), Use::atomic);
  T old;
  std::memcpy(&old, at, sizeof(T));
  const T fresh = T(F(old, t.get<T>(i.slot[i.mode]), t.get<T>(i.slot[i.mode + 1])));
  std::memcpy(at, &fresh, sizeof(T));
  if (i.mode == 1) t.set(i.slot[0], old);
}

constexpr auto sum = []<class T>(T old, T x, T) {
  if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(old) + std::make_unsigned_t<T>(x));
  else return old + x;
};
constexpr auto exchanged = [](auto, auto x, auto) { return x; };
constexpr auto compared = [](auto old, auto x, auto y) { return old == x ? y : old; };
constexpr auto least = [](auto old, auto x, auto) { return x < old ? x : old; };
constexpr auto most = [](auto old, auto x, auto) { return x > old ? x : old; };
constexpr auto conjunction = [](auto old, auto x, auto) { return old & x; };
constexpr auto disjunction = [](auto old, auto x, auto) { return old | x; };
constexpr auto difference_of_bits = [](auto old, auto x, auto) { return old ^ x; };
template <class T>
void add_bitwise(Handlers& h, const std::string& type) {
  h["exch" + type] = atomic<T, exchanged>;
  h["cas" + type] = atomic<T, compared>;
  h["and" + type] = atomic<T, conjunction>;
  h["or" + type] = atomic<T, disjunction>;
  h["xor" + type] = atomic<T, difference_of_bits>;
}
template <class T>
void add_numeric(Handlers& h, const std::string& type) {
  h["add" + type] = atomic<T, sum>;
  h["min" + type] = atomic<T, least>;
  h["max" + type] = atomic<T, most>;
}

const Handlers& atomics() {
  static const Handlers all = [] {
    Handlers h;
    add_bitwise<std::uint32_t>(h, ".b32");
    add_bitwise<std::uint64_t>(h, ".b64");
    add_numeric<std::int32_t>(h, ".s32");
    add_numeric<std::uint32_t>(h, ".u32");
    add_numeric<std::int64_t>(h, ".s64");
    add_numeric<std::uint64_t>(h, ".u64");
    h["add.f32"] = atomic<float, sum>;
    h["add.f64"] = atomic<double, sum>;
    return h;
  }();
  return all;
}

const Handlers& loads_and_stores() {
  static const Handlers all = [] {
    Handlers h;
    const auto add = [&h](const char* types, Handler loads, Handler stores) {
      for (std::string_view rest = types; !rest.empty();) {
        const std::string type(rest.substr(0, rest.find(' ')));
        h["ld." + type] = loads;
        h["st." + type] = stores;
        rest.remove_prefix(std::min(rest.size(), type.size() + 1));
      }
    };
    add("b8 u8", load<std::uint8_t>, store<std::uint8_t>);
    add("b16 u16 f16 bf16", load<std::uint16_t>, store<std::uint16_t>);
    add("b32 u32 f32", load<std::uint32_t>, store<std::uint32_t>);
    add("b64 u64 f64", load<std::uint64_t>, store<std::uint64_t>);
    add("s8", load<std::int8_t>, store<std::int8_t>);
    add("s16", load<std::int16_t>, store<std::int16_t>);
    add("s32", load<std::int32_t>, store<std::int32_t>);
    add("s64", load<std::int64_t>, store<std::int64_t>);
    return h;
  }();
  return all;
}

// Of caches and of the memory model: one thread runs at a time.
bool has_no_effect(std::string_view part) {
  for (const char* name : {"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "volatile", "weak",
                           "relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys"})
    if (part == name) return true;
  return part.find("::") != std::string_view::npos;
}

}  // namespace

bool decode_access(const Written& written, Instruction& instruction) {
  const std::string_view name = written.parts[0];
  if (name != "ld" && name != "st" && name != "atom" && name != "red" && name != "ldu")
    return false;
  std::string key = name == "ld" || name == "ldu" ? "ld" : name == "st" ? "st" : "";
  for (std::size_t k = 1; k < written.parts.size(); ++k) {
    const std::string_view part = written.parts[k];
    if (part == "global") instruction.space = Space::global;
    else if (part.starts_with("shared")) instruction.space = Space::shared;
    else if (part == "local") instruction.space = Space::local;
    else if (part.starts_with("param")) instruction.space = Space::param;
    else if (part == "const") instruction.space = Space::constant;
    else if (part == "v2") instruction.count = 2;
    else if (part == "v4") instruction.count = 4;
    else if (!has_no_effect(part)) key += (key.empty() ? "" : ".") + std::string(part);
  }
  const bool plain = key.starts_with("ld.") || key.starts_with("st.");
  const Handlers& handlers = plain ? loads_and_stores() : atomics();
  const auto found = handlers.find(key);
  if (found == handlers.end() || (!plain && instruction.count != 1)) return false;
  if (plain && written.operands != instruction.count) return false;
  instruction.mode = name == "atom" ? 1 : 0;
  instruction.run = found->second;
  return true;
}

}  // namespace ptx
