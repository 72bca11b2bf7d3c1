// Flow of control, addresses, moves of several registers, and the table of all operations.
#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "ptx_decode.hpp"
#include "ptx_frames.hpp"
#include "ptx_grid.hpp"

namespace ptx {
namespace {

using I = const Instruction&;

void leave(Thread& t, I) { leave_function(t); }
void end(Thread& t, I) { t.state = State::ended; }
void nothing(Thread&, I) {}
void trap(Thread&, I) { throw Fault("the kernel trapped"); }

std::uint64_t shared_window(const Thread& t) {
  return reinterpret_cast<std::uintptr_t>(t.block->shared_begin());
}
void copy(Thread& t, I i) { t.slots[i.slot[0]] = t.slots[i.slot[1]]; }
void from_shared(Thread& t, I i) { t.slots[i.slot[0]] = t.slots[i.slot[1]] + shared_window(t); }
void to_shared(Thread& t, I i) { t.slots[i.slot[0]] = t.slots[i.slot[1]] - shared_window(t); }

// `count` registers of `mode` bytes each.
void pack(Thread& t, I i) {
  std::uint64_t bits = 0;
  for (int k = 0; k < i.count; ++k)
    std::memcpy(reinterpret_cast<char*>(&bits) + k * i.mode, t.slots + i.slot[k + 1], i.mode);
  t.slots[i.slot[0]] = bits;
}
void unpack(Thread& t, I i) {
  const std::uint64_t bits = t.slots[i.slot[i.count]];
  for (int k = 0; k < i.count; ++k) {
    std::uint64_t part = 0;
    std::memcpy(&part, reinterpret_cast<const char*>(&bits) + k * i.mode, i.mode);
    t.slots[i.slot[k]] = part;
  }
}

bool decode_move(const Written& written, Instruction& instruction) {
  const bool packs = written.braced_last != 0;
  const int count = packs ? written.braced_last : written.braced_first;
  const int bytes = written.has("b64") ? 8 : written.has("b32") ? 4 : written.has("b16") ? 2 : 0;
  if (bytes % count != 0 || bytes == 0 || written.operands != count + 1) return false;
  instruction.count = std::uint8_t(count);
  instruction.mode = std::uint8_t(bytes / count);
  instruction.run = packs ? pack : unpack;
  return true;
}

bool decode_address(const Written& written, Instruction& instruction) {
  const bool shared = written.has("shared") || written.has("shared::cta");
  instruction.run = !shared ? copy : written.has("to") ? to_shared : from_shared;
  return true;
}

// Parts of names that do not select the handler: .rn where another rounding could be written, the
// rounding to integers, the combination of a comparison with a predicate.
bool is_mode(std::string_view part, std::string_view name, Instruction& instruction) {
  const auto one_of = [&instruction, part](std::initializer_list<std::string_view> names) {
    const auto* const found = std::find(names.begin(), names.end(), part);
    if (found != names.end()) instruction.mode = std::uint8_t(1 + (found - names.begin()));
    return found != names.end();
  };
  if (name == "cvt") return one_of({"rni", "rzi", "rmi", "rpi"});
  if (name == "setp") return one_of({"and", "or", "xor"});
  if (part != "rn") return false;
  for (const char* each : {"add", "sub", "mul", "mad", "fma", "div", "sqrt", "rcp"})
    if (name == each) return true;
  return false;
}

const Handlers& operations() {
  static const Handlers all = [] {
    Handlers h;
    add_integers(h);
    add_floats(h);
    add_conversions(h);
    add_comparisons(h);
    h["ret"] = leave;
    h["ret.uni"] = leave;
    h["exit"] = end;
    h["trap"] = trap;
    return h;
  }();
  return all;
}

}  // namespace

void outside_subset(Thread& t, I i) {
  throw Fault("the interpreter lacks the instruction " + t.function->unknown[i.slot[0]]);
}

void branch(Thread& t, I i) { t.next = t.function->code.data() + i.offset; }

void call(Thread& t, I i) { enter_function(t, t.function->calls[i.slot[0]]); }

bool decode(const Written& written, Instruction& instruction) {
  const std::string_view name = written.parts[0];
  if (name == "membar" || name == "fence" || name == "nanosleep" || name.starts_with("prefetch")) {
    instruction.run = nothing;
    return true;
  }
  if (name == "cvta") return decode_address(written, instruction);
  if (name == "mov" && written.braced_first + written.braced_last > 0)
    return decode_move(written, instruction);
  if (decode_access(written, instruction) || decode_exchange(written, instruction)) return true;
  std::string key(name);
  for (std::size_t k = 1; k < written.parts.size(); ++k)
    if (!is_mode(written.parts[k], name, instruction)) key += '.' + std::string(written.parts[k]);
  const auto found = operations().find(key);
  if (found == operations().end()) return false;
  instruction.run = found->second;
  if (name == "setp")
    instruction.count = std::uint8_t(written.operands - (instruction.mode ? 3 : 2));
  return true;
}

}  // namespace ptx
