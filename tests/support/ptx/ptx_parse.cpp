// The body of a function: names become slots.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ptx_decode.hpp"
#include "ptx_module.hpp"
#include "ptx_tokens.hpp"

namespace ptx {
namespace {

constexpr std::uint64_t never_written = 0xa5a5'a5a5'a5a5'a5a5;

const std::unordered_map<std::string_view, Special>& special_registers() {
  static const std::unordered_map<std::string_view, Special> names = {
      {"%tid.x", Special::tid_x},
      {"%tid.y", Special::tid_y},
      {"%tid.z", Special::tid_z},
      {"%ntid.x", Special::ntid_x},
      {"%ntid.y", Special::ntid_y},
      {"%ntid.z", Special::ntid_z},
      {"%ctaid.x", Special::ctaid_x},
      {"%ctaid.y", Special::ctaid_y},
      {"%ctaid.z", Special::ctaid_z},
      {"%nctaid.x", Special::nctaid_x},
      {"%nctaid.y", Special::nctaid_y},
      {"%nctaid.z", Special::nctaid_z},
      {"%laneid", Special::laneid},
      {"%lanemask_eq", Special::lanemask_eq},
      {"%lanemask_lt", Special::lanemask_lt},
      {"%lanemask_le", Special::lanemask_le},
      {"%lanemask_gt", Special::lanemask_gt},
      {"%lanemask_ge", Special::lanemask_ge},
      {"%warpid", Special::warpid},
  };
  return names;
}

class Parser {
 public:
  Parser(Program& program, const Module::Text& text, Function& function)
      : program_(program), tokens_(text.text, text.line), function_(function) {}

  void run() {
    header();
    body();
    for (const auto& [index, label] : jumps_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) tokens_.fail("there is no label " + label);
      function_.code[index].offset = found->second;
    }
  }

 private:
  using Names = std::unordered_map<std::string_view, std::uint32_t>;
  struct Scope {
    Names registers{};
    std::unordered_map<std::string_view, FrameBytes> variables{};
  };

  std::uint32_t add_slots(std::size_t count, std::uint64_t value) {
    const std::size_t first = function_.image.size();
    function_.image.resize(first + count, value);
    return std::uint32_t(first);
  }
  FrameBytes add_bytes(std::uint32_t bytes, std::uint32_t align) {
    if (align > 8)
      add_slots(function_.image.size() % 2, never_written);  // frames begin at 16 bytes
    return {add_slots((bytes + 7) / 8, never_written), bytes};
  }
  std::uint32_t constant(std::uint64_t value) {
    const auto [found, fresh] = constants_.try_emplace(value, 0);
    if (fresh) found->second = add_slots(1, value);
    return found->second;
  }

  void header();
  void body();
  void declare_registers();
  void declare_variable();
  void instruction();
  void call_instruction(Instruction& instruction);
  void operands(Written& written, Instruction& instruction);
  std::uint32_t value();
  std::uint32_t name_slot(std::string_view name);
  std::uint32_t address_of(std::string_view name);
  const FrameBytes* variable(std::string_view name) const;
  const FrameBytes& known_variable(std::string_view name) const {
    const FrameBytes* found = variable(name);
    if (found == nullptr) tokens_.fail("there is no parameter " + std::string(name));
    return *found;
  }

  Program& program_;
  Tokens tokens_;
  Function& function_;
  std::vector<Scope> scopes_{1};
  std::map<std::string, std::int64_t, std::less<>> labels_;
  std::vector<std::pair<std::size_t, std::string>> jumps_;
  std::unordered_map<std::uint64_t, std::uint32_t> constants_;
  Names addresses_;
  std::set<std::string, std::less<>> names_;  ///< that the text does not spell out
  std::unordered_map<std::string_view, std::uint32_t> kernel_parameters_;
};

void Parser::header() {
  function_.kernel = tokens_.take() == ".entry";
  const auto declared = [this] {
    Variable variable;
    const std::string_view name = *names_.insert(read_variable(tokens_, variable)).first;
    return std::pair(name, std::move(variable));
  };
  if (tokens_.accept("(")) {
    const auto [name, variable] = declared();
    function_.result = add_bytes(variable.bytes, variable.align);
    scopes_.back().variables[name] = function_.result;
    tokens_.expect(")");
  }
  function_.name = std::string(tokens_.take());
  if (!tokens_.accept("(")) return;
  std::uint32_t end = 0;
  while (!tokens_.accept(")")) {
    const auto [name, variable] = declared();
    if (function_.kernel) {
      end = (end + variable.align - 1) / variable.align * variable.align;
      kernel_parameters_[name] = end;
      function_.kernel_parameters.push_back({end, variable.bytes});
      end += variable.bytes;
    } else {
      function_.parameters.push_back(add_bytes(variable.bytes, variable.align));
      scopes_.back().variables[name] = function_.parameters.back();
    }
    tokens_.accept(",");
  }
}

void Parser::body() {
  while (tokens_.peek() != "{") tokens_.take();  // .maxntid and the like
  tokens_.take();
  for (int depth = 1; depth > 0;) {
    const std::string_view word = tokens_.peek();
    if (word.empty()) tokens_.fail("the body of " + function_.name + " does not end");
    if (word == "{") {
      tokens_.take();
      scopes_.emplace_back();
      ++depth;
    } else if (word == "}") {
      tokens_.take();
      scopes_.pop_back();
      --depth;
    } else if (word == ".reg") {
      declare_registers();
    } else if (word == ".local" || word == ".param" || word == ".shared") {
      declare_variable();
    } else if (word == ".loc") {
      tokens_.skip_line();
    } else if (word == ".pragma") {
      while (!tokens_.accept(";")) tokens_.take();
    } else if (word.starts_with('.')) {
      tokens_.fail("'" + std::string(word) + "' is outside the interpreted subset of PTX");
    } else {
      instruction();
    }
  }
  Instruction end;  // falling off the end returns
  decode({.parts = {"ret"}}, end);
  function_.code.push_back(end);
}

void Parser::declare_registers() {
  tokens_.take();
  if (type_bytes(tokens_.take()) == 0)
    tokens_.fail("this type of register is outside the interpreted subset of PTX");
  do {
    const std::string_view name = tokens_.take();
    if (!tokens_.accept("<")) {
      scopes_.back().registers[name] = add_slots(1, never_written);
      continue;
    }
    const std::uint64_t count = tokens_.integer();
    tokens_.expect(">");
    const std::uint32_t first = add_slots(count, never_written);
    for (std::uint64_t i = 0; i < count; ++i)
      scopes_.back().registers[*names_.insert(std::string(name) + std::to_string(i)).first] =
          first + std::uint32_t(i);
  } while (tokens_.accept(","));
  tokens_.expect(";");
}

void Parser::declare_variable() {
  Variable variable;
  const std::string_view name = *names_.insert(read_variable(tokens_, variable)).first;
  tokens_.expect(";");
  if (variable.space == Space::shared) {
    addresses_[name] =
        constant(program_.shared_offset(function_.name + ' ' + std::string(name), variable));
    return;
  }
  scopes_.back().variables[name] = add_bytes(variable.bytes, variable.align);
}

const FrameBytes* Parser::variable(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->variables.find(name); found != scope->variables.end())
      return &found->second;
  return nullptr;
}

std::uint32_t Parser::address_of(std::string_view name) {
  if (const FrameBytes* bytes = variable(name)) {
    for (const FrameAddress& known : function_.frame_addresses)
      if (known.of_slot == bytes->slot) return known.slot;
    const std::uint32_t slot = add_slots(1, 0);
    function_.frame_addresses.push_back({slot, bytes->slot});
    return slot;
  }
  if (const auto known = addresses_.find(name); known != addresses_.end()) return known->second;
  std::uint32_t slot = 0;
  if (const auto found = kernel_parameters_.find(name); found != kernel_parameters_.end()) {
    slot = add_slots(1, 0);
    function_.parameter_addresses.push_back({slot, found->second});
  } else if (const Variable* global = program_.module->variable(name)) {
    slot = constant(global->space == Space::shared
                        ? program_.shared_offset(name, *global)
                        : reinterpret_cast<std::uintptr_t>(global->contents.get()));
  } else {
    tokens_.fail("there is no " + std::string(name));
  }
  return addresses_[name] = slot;
}

std::uint32_t Parser::name_slot(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->registers.find(name); found != scope->registers.end())
      return found->second;
  if (name == "_") return scopes_.front().registers[name] = add_slots(1, 0);
  if (name == "WARP_SZ") return constant(32);
  if (special_registers().count(name) != 0) {
    const std::uint32_t slot = add_slots(1, 0);
    function_.specials.push_back({slot, special_registers().at(name)});
    return scopes_.front().registers[name] = slot;
  }
  if (name.starts_with('%'))
    tokens_.fail(std::string(name) + " is outside the interpreted subset of PTX");
  return address_of(name);
}

std::uint32_t Parser::value() {
  if (is_number(tokens_.peek())) return constant(tokens_.integer());
  if (tokens_.accept("!")) {  // computed before
    Instruction negation;
    decode({.parts = {"not", "pred"}, .operands = 2}, negation);
    negation.slot[0] = add_slots(1, 0);
    negation.slot[1] = name_slot(tokens_.take());
    negation.line = tokens_.line();
    function_.code.push_back(negation);
    return negation.slot[0];
  }
  return name_slot(tokens_.take());
}

void Parser::operands(Written& written, Instruction& instruction) {
  constexpr int most = int(std::size(Instruction{}.slot));
  const auto add = [&](std::uint32_t slot) {
    if (written.operands == most) tokens_.fail("too many operands");
    instruction.slot[written.operands++] = slot;
  };
  std::uint32_t address = 0;
  bool has_address = false;
  for (bool first = true; !tokens_.accept(";"); first = false) {
    if (tokens_.accept("[")) {
      has_address = true;
      address = value();
      if (tokens_.accept("+")) instruction.offset = std::int64_t(tokens_.integer());
      tokens_.expect("]");
    } else if (tokens_.accept("{")) {
      int& braced = first ? written.braced_first : written.braced_last;
      braced = 0;
      for (; !tokens_.accept("}"); ++braced) {
        add(value());
        tokens_.accept(",");
      }
    } else {
      add(value());
    }
    if (!tokens_.accept(",")) tokens_.accept("|");
  }
  if (!has_address) return;
  if (written.operands > address_slot) tokens_.fail("too many operands beside an address");
  instruction.slot[address_slot] = address;
}

void Parser::call_instruction(Instruction& instruction) {
  Call called;
  if (tokens_.accept("(")) {
    called.result = known_variable(tokens_.take());
    tokens_.expect(")");
    tokens_.expect(",");
  }
  called.callee = &program_.function(tokens_.take());
  if (tokens_.accept(",")) {
    tokens_.expect("(");
    while (!tokens_.accept(")")) {
      called.arguments.push_back(known_variable(tokens_.take()));
      tokens_.accept(",");
    }
  }
  tokens_.expect(";");
  instruction.run = call;
  instruction.slot[0] = std::uint32_t(function_.calls.size());
  function_.calls.push_back(std::move(called));
}

void Parser::instruction() {
  Instruction instruction;
  instruction.line = tokens_.line();
  if (tokens_.accept("@")) {
    instruction.negated = tokens_.accept("!");
    instruction.guard = std::int32_t(name_slot(tokens_.take()));
  }
  const std::string_view opcode = tokens_.take();
  if (tokens_.accept(":")) {
    if (!labels_.try_emplace(std::string(opcode), std::int64_t(function_.code.size())).second)
      tokens_.fail("two labels are called " + std::string(opcode));
    return;
  }
  Written written;
  for (std::size_t at = 0; at <= opcode.size();) {
    const std::size_t end = std::min(opcode.find('.', at), opcode.size());
    written.parts.push_back(opcode.substr(at, end - at));
    at = end + 1;
  }
  if (written.parts[0] == "call") {
    call_instruction(instruction);
  } else if (written.parts[0] == "bra") {
    instruction.run = branch;
    const std::string label(tokens_.take());
    tokens_.expect(";");
    jumps_.emplace_back(function_.code.size(), label);
  } else {
    operands(written, instruction);
    if (!decode(written, instruction)) {
      instruction.run = outside_subset;
      instruction.slot[0] = std::uint32_t(function_.unknown.size());
      function_.unknown.emplace_back(opcode);
    }
  }
  if (instruction.run == wait_at_barrier || instruction.run == wait_at_warp) program_.stops = true;
  function_.code.push_back(instruction);
}

}  // namespace

void parse_function(Program& program, const Module::Text& text, Function& function) {
  Parser(program, text, function).run();
}

}  // namespace ptx
