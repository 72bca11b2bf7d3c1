#include "ptx_module.hpp"

#include <algorithm>
#include <charconv>

#include "ptx_tokens.hpp"

namespace ptx {
namespace {

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%' || c == '.';
}

}  // namespace

void Tokens::advance() {
  const auto at = [this](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  for (;;) {
    const char c = at(at_);
    if (c == '\n') ++line_;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (c == '/' && at(at_ + 1) == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '/' && at(at_ + 1) == '*') {
      for (at_ += 2; at_ < text_.size() && !(at(at_) == '*' && at(at_ + 1) == '/'); ++at_)
        line_ += text_[at_] == '\n';
      at_ += 2;
    } else {
      break;
    }
  }
  word_line_ = line_;
  const std::size_t begin = at_;
  if (begin >= text_.size()) {
    word_ = {};
    return;
  }
  if (text_[begin] == '"') {
    for (++at_; at_ < text_.size() && text_[at_] != '"';) ++at_;
    ++at_;
  } else if (in_name(text_[begin])) {
    while (at_ < text_.size() && (in_name(text_[at_]) || (at(at_) == ':' && at(at_ + 1) == ':')))
      at_ += at(at_) == ':' ? 2 : 1;
  } else {
    ++at_;
    if (text_[begin] == '-')
      while (at_ < text_.size() && in_name(text_[at_])) ++at_;
  }
  word_ = text_.substr(begin, at_ - begin);
}

void Tokens::jump(std::size_t position) {
  line_ += std::uint32_t(std::count(text_.begin() + std::ptrdiff_t(at_),
                                    text_.begin() + std::ptrdiff_t(position), '\n'));
  at_ = position;
  advance();
}

void Tokens::skip_line() {
  while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  advance();
}

std::uint64_t Tokens::integer() {
  if (!is_number(word_)) fail("expected a number, found '" + std::string(word_) + "'");
  return literal(take());
}

std::uint64_t literal(std::string_view word) {
  const bool negative = word.front() == '-';
  if (negative) word.remove_prefix(1);
  int base = 10;
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) base = 16;
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'f' || word[1] == 'd')) base = 16;
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'F' || word[1] == 'D')) base = 16;
  if (base == 16) word.remove_prefix(2);
  if (!word.empty() && word.back() == 'U') word.remove_suffix(1);
  std::uint64_t value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size())
    throw Fault("'" + std::string(word) + "' is not a number");
  return negative ? ~value + 1 : value;
}

std::uint32_t type_bytes(std::string_view type) {
  if (type == ".pred") return 1;
  if (type.size() < 3) return 0;
  const std::string_view bits = type.substr(type.starts_with(".bf") ? 3 : 2);
  if (bits == "8") return 1;
  if (bits == "16") return 2;
  if (bits == "32" || bits == "16x2") return 4;
  return bits == "64" ? 8 : 0;
}

Module::Module(std::string text) : text_(std::move(text)) { scan(); }

// Declarations at the top level: variables end with a semicolon, functions with a block. The
// directives before them (.version, .target, .visible, ..) need no reading.
void Module::scan() {
  Tokens tokens(text_);
  if (tokens.peek() != ".version")
    tokens.fail("this is not PTX: it begins with '" + std::string(tokens.peek().substr(0, 20)) +
                "'");
  while (!tokens.done()) {
    const std::string_view word = tokens.peek();
    if (word == ".global" || word == ".const" || word == ".shared") {
      Variable variable;
      const std::string name = read_variable(tokens, variable);
      variables_[name] = std::move(variable);
    } else if (word == ".target") {
      tokens.take();
      const std::string_view name = tokens.take();  // sm_80, sm_90a
      std::from_chars(name.data() + std::min<std::size_t>(3, name.size()),
                      name.data() + name.size(), target_);
    } else if (word == ".entry" || word == ".func") {
      const std::size_t begin = tokens.begin();
      const std::uint32_t line = tokens.line();
      tokens.take();
      if (tokens.accept("("))
        while (!tokens.accept(")")) tokens.take();
      const std::string name(tokens.take());
      while (!tokens.done() && tokens.peek() != "{" && tokens.peek() != ";") tokens.take();
      if (tokens.peek() == ";") continue;  // a declaration
      // Function bodies are long: look only for the braces.
      int depth = 0;
      std::size_t end = tokens.begin();
      do {
        end = text_.find_first_of("{}", end);
        if (end == std::string::npos) tokens.fail("the body of " + name + " does not end");
        depth += text_[end++] == '{' ? 1 : -1;
      } while (depth > 0);
      texts_[name] = {std::string_view(text_).substr(begin, end - begin), line};
      tokens.jump(end);
    } else {
      tokens.take();
    }
  }
}

namespace {

void read_initializer(Tokens& tokens, std::uint32_t element, Variable& variable) {
  auto* const bytes = reinterpret_cast<unsigned char*>(variable.contents.get());
  const bool list = tokens.accept("{");
  std::uint32_t at = 0;
  do {
    const std::uint64_t value = tokens.integer();
    if (at + element > variable.bytes) tokens.fail("too many initial values");
    std::memcpy(bytes + at, &value, element);
    at += element;
  } while (list && tokens.accept(","));
}

}  // namespace

std::string read_variable(Tokens& tokens, Variable& variable) {
  const std::string_view space = tokens.take();
  variable.space = space == ".shared"  ? Space::shared
                   : space == ".const" ? Space::constant
                   : space == ".local" ? Space::local
                   : space == ".param" ? Space::param
                                       : Space::global;
  std::uint32_t element = 0;
  while (tokens.peek().starts_with('.')) {
    const std::string_view word = tokens.take();
    if (word == ".align") {
      variable.align = std::uint32_t(tokens.integer());
    } else if (type_bytes(word) != 0) {
      element = type_bytes(word);
    } else if (variable.space != Space::param) {  // parameters say what they point to
      tokens.fail("'" + std::string(word) +
                  "' of a variable is outside the interpreted subset of PTX");
    }
  }
  const std::string name(tokens.take());
  std::uint64_t count = 1;
  while (tokens.accept("[")) {
    count *= tokens.peek() == "]" ? 0 : tokens.integer();  // extern arrays have no extent
    tokens.expect("]");
  }
  variable.bytes = std::uint32_t(count * element);
  variable.align = std::max(variable.align, element);
  if (variable.space == Space::global || variable.space == Space::constant) {
    variable.contents = std::make_unique<std::uint64_t[]>(variable.bytes / 8 + 2);
    if (tokens.accept("=")) read_initializer(tokens, element, variable);
  }
  return name;
}

const Variable* Module::variable(std::string_view name) const {
  const auto found = variables_.find(std::string(name));
  return found == variables_.end() ? nullptr : &found->second;
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : texts_)
    if (text.text.starts_with(".entry")) names.push_back(name);
  return names;
}

const Module::Text& Module::text(std::string_view function) const {
  const auto found = texts_.find(std::string(function));
  if (found == texts_.end()) throw Fault("the PTX has no function " + std::string(function));
  return found->second;
}

const Program& Module::program(std::string_view kernel) {
  auto& program = programs_[std::string(kernel)];
  if (program != nullptr) return *program;
  auto fresh = std::make_unique<Program>();
  fresh->module = this;
  fresh->kernel = &fresh->function(kernel);
  program = std::move(fresh);
  return *program;
}

const Function& Program::function(std::string_view name) {
  auto& found = functions[std::string(name)];
  if (found == nullptr) {
    found = std::make_unique<Function>();
    Function& decoded = *found;  // other functions may be inserted meanwhile
    parse_function(*this, module->text(name), decoded);
    return decoded;
  }
  return *found;
}

std::uint32_t Program::shared_offset(std::string_view name, const Variable& variable) {
  const auto [found, fresh] = shared_offsets.try_emplace(std::string(name), 0);
  if (fresh) {
    shared_bytes = (shared_bytes + variable.align - 1) / variable.align * variable.align;
    found->second = shared_bytes;
    shared_bytes += variable.bytes;
  }
  return found->second;
}

}  // namespace ptx
