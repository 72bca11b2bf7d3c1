// Decoding a kernel: names become slots.
#include "ptx_module.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <vector>

#include "ptx_decode.hpp"
#include "ptx_tokens.hpp"

namespace ptx {
namespace {

class Parser {
 public:
  /// @param position  of ".entry" in the text of the module
  Parser(std::string_view text, std::size_t position, Kernel& kernel)
      : text_(text), tokens_(text, position), kernel_(kernel) {}

  void run() {
    kernel_.text = text_;
    header();
    body();
    for (const auto& [index, label] : jumps_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) tokens_.fail("there is no label " + std::string(label));
      kernel_.code[index].offset = std::int64_t(found->second) - std::int64_t(index + 1);
    }
  }

 private:
  using Names = std::unordered_map<std::string_view, std::uint32_t>;

  std::uint32_t add_slots(std::size_t count, std::uint64_t value) {
    const std::size_t first = kernel_.image.size();
    kernel_.image.resize(first + count, value);
    return std::uint32_t(first);
  }
  std::uint32_t constant(std::uint64_t value) {
    const auto [found, fresh] = constants_.try_emplace(value, 0);
    if (fresh) found->second = add_slots(1, value);
    return found->second;
  }

  void header();
  void body();
  void declare_registers();
  void declare_variable(Tokens& tokens);
  void declare_variable_of_module(std::string_view name);
  void instruction();
  int operands(Instruction& instruction);
  std::uint32_t value();
  std::uint32_t slot_of(std::string_view name);

  std::string_view text_;
  Tokens tokens_;
  Kernel& kernel_;
  std::vector<std::unordered_map<std::string, std::uint32_t>> scopes_;  ///< slots of names
  std::unordered_map<std::uint64_t, std::uint32_t> constants_;
  Names in_frame_;   ///< offsets of parameters and local variables
  Names in_shared_;  ///< offsets of variables in shared memory
  Names labels_;
  std::vector<std::pair<std::size_t, std::string_view>> jumps_;
};

void Parser::header() {
  tokens_.expect(".entry");
  kernel_.name = std::string(tokens_.take());
  tokens_.expect("(");
  while (!tokens_.accept(")")) {
    declare_variable(tokens_);
    tokens_.accept(",");
  }
  kernel_.parameter_bytes = kernel_.frame_bytes;
}

void Parser::body() {
  while (!tokens_.accept("{")) tokens_.take();  // .maxntid and the like
  scopes_.emplace_back();
  while (!scopes_.empty()) {
    if (tokens_.accept("{")) {
      scopes_.emplace_back();
    } else if (tokens_.accept("}")) {
      scopes_.pop_back();
    } else if (tokens_.accept(".reg")) {
      declare_registers();
    } else if (tokens_.peek() == ".local" || tokens_.peek() == ".shared") {
      declare_variable(tokens_);
      tokens_.expect(";");
    } else if (tokens_.accept(".pragma")) {
      while (!tokens_.accept(";")) tokens_.take();
    } else {
      instruction();
    }
  }
}

void Parser::declare_registers() {
  tokens_.take();  // the type
  do {
    const std::string name(tokens_.take());
    if (!tokens_.accept("<")) {
      scopes_.back()[name] = add_slots(1, never_written);
      continue;
    }
    const std::uint64_t count = tokens_.number();
    tokens_.expect(">");
    const std::uint32_t first = add_slots(count, never_written);
    for (std::uint32_t i = 0; i < count; ++i) scopes_.back()[name + std::to_string(i)] = first + i;
  } while (tokens_.accept(","));
  tokens_.expect(";");
}

void Parser::declare_variable(Tokens& tokens) {
  const std::string_view space = tokens.take();
  const bool shared = space == ".shared";
  if (!shared && space != ".param" && space != ".local") tokens.refuse(space);
  std::uint32_t align = 1, bits = 0;
  while (tokens.peek().starts_with('.')) {
    const std::string_view word = tokens.take();
    if (word == ".align") align = std::uint32_t(tokens.number());
    else if (bits = bits_of(word); bits == 0) tokens.refuse(word);
  }
  const std::string_view name = tokens.take();
  std::uint32_t bytes = bits / 8;
  align = std::max(align, bytes);
  while (tokens.accept("[")) {
    bytes *= std::uint32_t(tokens.number());
    tokens.expect("]");
  }
  std::uint32_t& used = shared ? kernel_.shared_bytes : kernel_.frame_bytes;
  const std::uint32_t offset = (used + align - 1) / align * align;
  used = offset + bytes;
  if (shared) {
    in_shared_[name] = offset;
    return;
  }
  in_frame_[name] = offset;
  if (space == ".param") kernel_.parameters.push_back({offset, bytes});
  if (kernel_.image.size() > (offset + 7) / 8) tokens.refuse("a local variable after registers");
  kernel_.image.resize((used + 7) / 8, never_written);
}

/// Its declaration is the first line that contains its name.
void Parser::declare_variable_of_module(std::string_view name) {
  const std::size_t found = text_.find(' ' + std::string(name));
  Tokens declaration(text_, found == std::string_view::npos ? found : text_.rfind('\n', found) + 1);
  if (!declaration.done()) declare_variable(declaration);
  if (in_shared_.count(name) == 0) tokens_.fail("there is no " + std::string(name));
}

std::uint32_t Parser::slot_of(std::string_view name) {
  const std::string key(name);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(key); found != scope->end()) return found->second;
  std::uint32_t& slot = scopes_.front()[key];
  const auto special = std::find(special_registers.begin(), special_registers.end(), name);
  if (special != special_registers.end()) {
    slot = add_slots(1, 0);
    kernel_.specials.push_back({slot, std::size_t(special - special_registers.begin())});
  } else if (name.starts_with('%')) {
    tokens_.refuse(name);
  } else if (const auto found = in_frame_.find(name); found != in_frame_.end()) {
    slot = add_slots(1, 0);
    kernel_.addresses.push_back({slot, found->second});
  } else {
    if (in_shared_.count(name) == 0) declare_variable_of_module(name);
    slot = constant(in_shared_.at(name));
  }
  return slot;
}

std::uint32_t Parser::value() {
  return tokens_.at_number() ? constant(tokens_.number()) : slot_of(tokens_.take());
}

/// @return the number of operands before those in braces; -1 if there are none
int Parser::operands(Instruction& instruction) {
  int before_brace = -1;
  while (!tokens_.accept(";")) {
    if (tokens_.accept("[")) {
      instruction.slot[address_slot] = value();
      if (tokens_.accept("+")) instruction.offset = std::int64_t(tokens_.number());
      tokens_.expect("]");
    } else if (tokens_.accept("{")) {
      before_brace = instruction.operands;
    } else if (!tokens_.accept("}") && !tokens_.accept(",") && !tokens_.accept("|")) {
      if (instruction.operands == std::size(instruction.slot)) tokens_.fail("too many operands");
      instruction.slot[instruction.operands++] = value();
    }
  }
  return before_brace;
}

void Parser::instruction() {
  Instruction instruction{.position = tokens_.position()};
  if (tokens_.accept("@")) {
    instruction.negated = tokens_.accept("!");
    instruction.guard = std::int32_t(slot_of(tokens_.take()));
  }
  const std::string_view written = tokens_.take();
  if (tokens_.accept(":")) {
    labels_[written] = std::uint32_t(kernel_.code.size());
    return;
  }
  if (written == "bra" || written == "bra.uni") {
    instruction.run = branch;
    jumps_.emplace_back(kernel_.code.size(), tokens_.take());
    tokens_.expect(";");
  } else {
    const auto decode_name = [&](const std::string& name) {
      if (!decode(name, instruction)) Tokens(text_, instruction.position).refuse(written);
    };
    const std::string name(written);
    decode_name(name);
    const int before_brace = operands(instruction);
    if (before_brace >= 0 && name.starts_with("mov."))
      decode_name((before_brace == 0 ? "unpack" : "pack") +
                  std::to_string(instruction.operands - 1) + name.substr(3));
  }
  kernel_.stops =
      kernel_.stops || instruction.run == wait_at_barrier || instruction.run == wait_at_warp;
  kernel_.code.push_back(instruction);
}

}  // namespace

const Kernel& Module::kernel(const std::string& name) {
  std::unique_ptr<Kernel>& known = kernels_[name];
  if (known != nullptr) return *known;
  const std::string entry = ".entry " + name + '(';
  const auto found = std::search(text_.begin(), text_.end(),
                                 std::boyer_moore_horspool_searcher(entry.begin(), entry.end()));
  if (found == text_.end()) throw Fault("the PTX has no kernel " + name);
  auto decoded = std::make_unique<Kernel>();
  Parser(text_, std::size_t(found - text_.begin()), *decoded).run();
  known = std::move(decoded);
  return *known;
}

int Module::target() const {
  constexpr std::string_view before = ".target sm_";
  const std::size_t found = text_.find(before);
  return found == std::string::npos ? 0 : std::atoi(text_.c_str() + found + before.size());
}

}  // namespace ptx
