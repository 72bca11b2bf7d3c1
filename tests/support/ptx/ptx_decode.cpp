// Names of instructions, and flow of control.
#include "ptx_decode.hpp"

#include <algorithm>

namespace ptx {
namespace {

void end(Thread& t, const Instruction&) { t.state = State::ended; }
void nothing(Thread&, const Instruction&) {}

const Operations& operations() {
  static const Operations all = [] {
    Operations added;
    add_arithmetic(added);
    add_accesses(added);
    add_exchanges(added);
    added["ret"] = added["exit"] = {end};
    added["membar.cta"] = {nothing};
    return added;
  }();
  return all;
}

/// The state space and the number of elements; "volatile", because one thread runs at a time.
bool decode_part_of_access(std::string_view part, Instruction& instruction) {
  if (part == "global") instruction.space = Space::global;
  else if (part == "shared") instruction.space = Space::shared;
  else if (part == "local" || part == "param") instruction.space = Space::frame;
  else if (part == "v2") instruction.elements = 2;
  else if (part == "v4") instruction.elements = 4;
  else return part == "volatile";
  return true;
}

}  // namespace

void branch(Thread& t, const Instruction& i) { t.next += i.offset; }

bool decode(std::string_view name, Instruction& instruction) {
  const bool access =
      name.starts_with("ld.") || name.starts_with("st.") || name.starts_with("atom.");
  std::string key;
  for (std::string_view rest = name, part; !rest.empty();
       rest.remove_prefix(std::min(rest.size(), part.size() + 1))) {
    part = rest.substr(0, rest.find('.'));
    if (part == "rn" || part == "sync") continue;  // the default rounding; of every exchange
    if (access && decode_part_of_access(part, instruction)) continue;
    key += (key.empty() ? "" : ".") + std::string(part);
  }
  const std::size_t type = key.rfind('.') + 1;
  if (type != 0 && key[type] == 'b') key[type] = 'u';
  const auto found = operations().find(key);
  if (found == operations().end()) return false;
  instruction.run = found->second.run;
  instruction.mode = found->second.mode;
  return true;
}

}  // namespace ptx
