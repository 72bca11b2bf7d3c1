// Programs in sequence: the schemas of a program's outputs, and two programs joined into one.
//
//     const Program step = then(forward, backward);
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/spmd/extent.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/remake.hpp>

namespace cleave::inline v0::spmd {

/// The placements of a program's outputs: schemas for the inputs of another program.
/// @return a std::array for programs that are constants, else a std::vector
template <AnyProgram P>
constexpr auto output_schemas(const P& program) {
  using Outputs = std::remove_cvref_t<decltype(program.outputs)>;
  const auto fill = [&](auto schemas) {
    for (std::size_t k = 0; k < schemas.size(); ++k)
      schemas[k] = program.values[std::size_t(program.outputs[k].value)].layout;
    return schemas;
  };
  if constexpr (requires { std::tuple_size<Outputs>::value; })
    return fill(std::array<Layout, std::tuple_size_v<Outputs>>{});
  else return fill(std::vector<Layout>(program.outputs.size()));
}

namespace detail {

/// Why two programs do not fit. @param k  the output that does not; -1: the programs as a whole
template <AnyProgram A, AnyProgram B>
std::string misfit(const A& first, const B& second, int k) {
  const auto described = [](const PlacedValue& value) {
    return std::string(name_of(value.dtype)) + " " + cleave::to_string(value.shape) + " " +
           cleave::to_string(value.layout);
  };
  if (k < 0)
    return "a program of " + std::to_string(first.outputs.size()) + " outputs on " +
           std::to_string(first.axes) + " mesh axes does not fit one of " +
           std::to_string(second.inputs) + " inputs on " + std::to_string(second.axes);
  const auto at = std::size_t(k);
  return "output " + std::to_string(k) + " of the first program is " +
         described(first.values[std::size_t(first.outputs[at].value)]) + ", input '" +
         second.code[at].name + "' of the second " + described(second.values[at]);
}

/// Appends the code of programs, renumbered.
class Sequence {
 public:
  template <AnyProgram A, AnyProgram B>
  constexpr Sequence(const A& first, const B& second) {
    static_cast<ProgramFacts&>(program_) = first;
    std::vector<int> of_first(first.values.size(), -1), of_second(second.values.size(), -1);
    append(first, InstructionKind::input, 0, of_first);
    const int outputs = int(first.outputs.size());
    for (int i = outputs; i < second.inputs; ++i) append(second, i, 0, of_second);
    program_.inputs = int(program_.code.size());
    append(first, InstructionKind::constant, 0, of_first);
    append(second, InstructionKind::constant, 0, of_second);
    append_rest(first, 0, of_first);
    for (std::size_t k = 0; k < first.outputs.size(); ++k)
      of_second[k] = of_first[std::size_t(first.outputs[k].value)];
    rounds_ = round_count(first);
    append_rest(second, first.draws, of_second);
    program_.draws = first.draws + second.draws;
    for (const Output& output : second.outputs)
      program_.outputs.push_back({of_second[std::size_t(output.value)], output.name});
    find_last_uses(program_);
  }

  constexpr Program take() { return static_cast<Program&&>(program_); }

 private:
  template <AnyProgram P>
  constexpr void append(const P& from, int at, std::uint64_t draws, std::vector<int>& renamed) {
    Instruction instruction = from.code[std::size_t(at)];
    instruction.draws += draws;
    if (instruction.round >= 0) instruction.round += rounds_;
    for (int i = 0; i < instruction.operands; ++i)
      instruction.operand[std::size_t(i)] =
          renamed[std::size_t(instruction.operand[std::size_t(i)])];
    const int old = instruction.first;
    instruction.first = int(program_.values.size());
    for (int k = 0; k < instruction.results; ++k) {
      renamed[std::size_t(old + k)] = int(program_.values.size());
      program_.values.push_back(from.values[std::size_t(old + k)]);
    }
    program_.code.push_back(instruction);
  }
  template <AnyProgram P>
  constexpr void append(const P& from, InstructionKind kind, std::uint64_t draws,
                        std::vector<int>& renamed) {
    for (std::size_t i = 0; i < from.code.size(); ++i)
      if (from.code[i].kind == kind) append(from, int(i), draws, renamed);
  }
  template <AnyProgram P>
  constexpr void append_rest(const P& from, std::uint64_t draws, std::vector<int>& renamed) {
    for (std::size_t i = 0; i < from.code.size(); ++i)
      if (from.code[i].kind != InstructionKind::input &&
          from.code[i].kind != InstructionKind::constant)
        append(from, int(i), draws, renamed);
  }

  Program program_{};
  int rounds_ = 0;  ///< of the programs that have been appended
};

}  // namespace detail

namespace detail {

/// Gives a joined program the symbols of its parts.
/// @throws Error if its inputs do not determine every symbol
template <AnyProgram A, AnyProgram B>
constexpr void join_symbols(const A& first, const B& second, Program& joined) {
  copy_symbols(first, joined);
  std::array<int, std::size_t(max_symbols)> renamed{};
  for (int i = 0; i < second.symbols.count; ++i)
    renamed[std::size_t(i)] = joined.symbols.add(second.symbols.of[std::size_t(i)]);
  const int outputs = int(first.outputs.size());
  for (const SymbolicExtent& e : second.symbolic) {
    if (e.input < outputs) continue;
    SymbolicExtent own{first.inputs + e.input - outputs, e.dim, {e.extent.constant, {}}};
    for (int i = 0; i < second.symbols.count; ++i)
      own.extent.factor[std::size_t(renamed[std::size_t(i)])] = e.extent.factor[std::size_t(i)];
    joined.symbolic.push_back(own);
  }
  require_determined("spmd::then", joined.symbols, joined.symbolic);
}

template <AnyProgram A, AnyProgram B>
constexpr Program join(const A& first, const B& second) {
  if (first.fault)
    throw Error("spmd::then", "the first program could not be expanded: " + to_string(first.fault));
  if (second.fault)
    throw Error("spmd::then",
                "the second program could not be expanded: " + to_string(second.fault));
  if (first.axes != second.axes || int(first.outputs.size()) > second.inputs ||
      !(first.mesh == second.mesh) ||
      std::string_view(first.device) != std::string_view(second.device))
    throw Error("spmd::then", misfit(first, second, -1));
  for (std::size_t k = 0; k < first.outputs.size(); ++k) {
    const PlacedValue& made = first.values[std::size_t(first.outputs[k].value)];
    const PlacedValue& taken = second.values[k];
    if (made.dtype != taken.dtype || !(made.shape == taken.shape) || !(made.layout == taken.layout))
      throw Error("spmd::then", misfit(first, second, int(k)));
  }
  Program joined = Sequence(first, second).take();
  join_symbols(first, second, joined);
  return joined;
}

/// The same at run time for programs with symbols, whose conditions may differ.
template <AnyProgram A, AnyProgram B>
Program join_symbolic(const A& first, const B& second) {
  const auto again = [first = remaking(first), second = remaking(second)] {
    return join(first(), second());
  };
  if (BoundSymbols::innermost() != nullptr) return again();
  Program symbols;
  join_symbols(first, second, symbols);
  Program joined = with_bound(symbols.symbols, symbols.symbols.samples(), again);
  copy_symbols(symbols, joined);
  joined.remake = Remake<Program>(again);
  return joined;
}

}  // namespace detail

/// Joins two programs: the outputs of the first are the first inputs of the second, in order. The
/// result takes the inputs of the first, then the other inputs of the second, and returns the
/// outputs of the second. Values between them are freed after their last use.
///
/// @throws Error if the second takes other element types, extents or placements than the first
///               returns, one of them could not be expanded, or the inputs of the result do not
///               determine all symbols; a compile error in constant expressions
template <AnyProgram A, AnyProgram B>
constexpr Program then(const A& first, const B& second) {
  if constexpr (detail::may_be_symbolic<A> || detail::may_be_symbolic<B>)
    if (!std::is_constant_evaluated() && (is_symbolic(first) || is_symbolic(second)))
      return detail::join_symbolic(first, second);
  return detail::join(first, second);
}

}  // namespace cleave::inline v0::spmd
