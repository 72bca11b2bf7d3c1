// A program placed on a mesh: the result of expanding a graph. Instructions and the values that
// they produce, as untyped plain data, the same at compile time and at run time.
//
// A program depends on placements and global extents, not on the number of ranks of an axis: it
// runs on every mesh with the same number of axes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <cleave/core/reduce_op.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/redistribute/plan.hpp>
#include <cleave/spmd/graph.hpp>

namespace cleave::inline v0::spmd {

enum class InstructionKind : std::uint8_t {
  input,     ///< an argument of the program
  constant,  ///< a number
  move,      ///< a value under other placements; as which steps depends on the mesh
  step,      ///< one step of a plan: a collective, or a local one. @see split_moves
  wait,      ///< until the steps of a round that has been started are complete
  compute,   ///< the kernel of an operation, on this rank
  write,     ///< the elements of an input (operand 0) become those of a value (operand 1)
};

/// An instruction of a program. Inputs come first, in their order; then constants; then the rest,
/// writes last.
struct Instruction {
  InstructionKind kind = InstructionKind::input;
  bool unalias = false;    ///< of a move or step: the user requested it: it shares no elements
  bool is_number = false;  ///< of a constant: kernels take it by value, not as a tensor
  int node = -1;           ///< of the graph: that computes, or that needs the move; -1: none
  const cleave::detail::OpInfo* op = nullptr;            ///< of a compute
  const char* name = "";                                 ///< for error messages
  std::array<int, std::size_t(max_operands)> operand{};  ///< values of the program
  int operands = 0;
  int first = 0;  ///< the value of the first result
  int results = 1;
  Attributes attributes{};             ///< of a compute: the operation; of a constant: the number
  std::uint64_t draws = 0;             ///< of a compute: added to the offset of its random state
  StepKind step = StepKind::slice;     ///< of a step; its layouts are those of its values
  ReduceOp reduction = ReduceOp::sum;  ///< of a step that reduces, or makes a partial
  AxisMask axes = 0;                   ///< of a step that communicates
  /// Of steps that communicate together: consecutive ones, over the same axes. -1: alone. Of a
  /// wait: the round that it waits for.
  int round = -1;
  bool is_started = false;  ///< of a step: it runs meanwhile, until the wait for its round

  friend constexpr bool operator==(const Instruction& a, const Instruction& b) {
    for (int i = 0; i < a.operands && i < b.operands; ++i)
      if (a.operand[std::size_t(i)] != b.operand[std::size_t(i)]) return false;
    return a.kind == b.kind && a.unalias == b.unalias && a.is_number == b.is_number &&
           a.node == b.node && a.op == b.op && a.operands == b.operands && a.first == b.first &&
           a.results == b.results && a.draws == b.draws && a.step == b.step &&
           a.reduction == b.reduction && a.axes == b.axes && a.round == b.round &&
           a.is_started == b.is_started && a.attributes.bytes == b.attributes.bytes;
  }
};

/// A value of a program: a global array under placements.
struct PlacedValue {
  /// The value of `last_use` for outputs.
  static constexpr int kept = std::numeric_limits<int>::max();

  DType dtype{};
  Shape shape{};  ///< global extents
  Layout layout{};
  int last_use = 0;  ///< the instruction after which the value is freed
  /// In which order the axes shard: that of the mesh, except between two steps of a move.
  decltype(StepLayout::order) order = StepLayout{}.order;

  constexpr StepLayout step_layout() const { return {layout, order}; }

  friend constexpr bool operator==(const PlacedValue&, const PlacedValue&) = default;
};

/// Why a graph cannot be expanded.
enum class FaultKind : std::uint8_t {
  none,
  schema_count,      ///< there are more or fewer schemas than inputs
  schema_axes,       ///< a schema and the first one have different numbers of placements
  mesh_axes,         ///< the mesh has more or fewer axes than the schemas
  schema_shard,      ///< a schema shards a dimension that the input does not have
  schema_partial,    ///< a schema is Partial by a reduction that the input's elements do not have
  asked_axes,        ///< a node's request and the schemas have different numbers of placements
  asked_shard,       ///< a node's request shards a dimension that its result does not have
  asked_partial,     ///< a node's request contains Partial
  repeats_sharded,   ///< an operand repeats a dimension of extent 1 that it shards
  updates_partial,   ///< an input that is Partial is changed in place
  not_explicit,      ///< explicit_communication: an operand would be redistributed
  collective_axis,   ///< a functional collective names an axis that the mesh does not have
  collective_taken,  ///< its operand has another placement on that axis than it takes
};

constexpr const char* text_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::none: return "no fault";
    case FaultKind::schema_count: return "there are more or fewer schemas than inputs";
    case FaultKind::schema_axes:
      return "its schema has another number of placements than the first one";
    case FaultKind::mesh_axes: return "the schemas and the mesh have different numbers of axes";
    case FaultKind::schema_shard: return "its schema shards a dimension that it does not have";
    case FaultKind::schema_partial:
      return "its schema is Partial by a reduction that is not defined for its elements";
    case FaultKind::asked_axes:
      return "its request and the schemas have different numbers of placements";
    case FaultKind::asked_shard:
      return "its request shards a dimension that its result does not have";
    case FaultKind::asked_partial: return "Partial cannot be requested; only operations produce it";
    case FaultKind::repeats_sharded:
      return "an operand repeats a dimension of extent 1 that is sharded; redistribute it to "
             "Replicate first";
    case FaultKind::updates_partial:
      return "it is Partial and changed in place; redistribute it before, or declare another "
             "schema";
    case FaultKind::not_explicit:
      return "explicit_communication: an operand would be redistributed; call redistribute before "
             "the operation";
    case FaultKind::collective_axis: return "the mesh does not have that axis";
    case FaultKind::collective_taken:
      return "its operand has another placement on that axis: all_reduce and reduce_scatter take "
             "Partial of their reduction, all_gather a shard of its dimension, all_to_all one of "
             "the dimension that it concatenates; redistribute it to that, or call redistribute "
             "instead";
  }
  return "";
}

/// The reason why a graph cannot be expanded with some schemas, and where.
struct Fault {
  FaultKind kind = FaultKind::none;
  int node = -1;          ///< of the graph; -1: the fault is in an input's schema
  int place = -1;         ///< which operand, or which input
  const char* name = "";  ///< of the node or of the input

  constexpr explicit operator bool() const { return kind != FaultKind::none; }
  friend constexpr bool operator==(const Fault& a, const Fault& b) {
    return a.kind == b.kind && a.node == b.node && a.place == b.place;
  }
};

/// "node 3 (matmul): .."
inline std::string to_string(const Fault& fault) {
  std::string text;
  if (fault.node >= 0) text = "node " + std::to_string(fault.node) + " (" + fault.name + "): ";
  else if (fault.place >= 0) text = std::string("input '") + fault.name + "': ";
  return text + text_of(fault.kind);
}

/// The members of a program other than its lists.
struct ProgramFacts {
  int inputs = 0;           ///< input i is value i, made by instruction i
  int axes = 0;             ///< of the mesh
  const char* device = "";  ///< whose kernels the program calls
  std::uint64_t draws = 0;  ///< the number of random draws per run
  Symbols symbols{};        ///< in extents of inputs; values then have extents of a sample
  Shape mesh{};             ///< the only extents that it runs on, if expanded for them
  Fault fault{};            ///< if set, the program has no code
};

struct Program;

/// A program without heap memory, for constants. @see frozen
template <int Values, int Instructions, int Outputs, int Extents>
struct FixedProgram : ProgramFacts {
  std::array<PlacedValue, std::size_t(Values)> values{};
  std::array<Instruction, std::size_t(Instructions)> code{};
  std::array<Output, std::size_t(Outputs)> outputs{};
  std::array<SymbolicExtent, std::size_t(Extents)> symbolic{};
  Program (*remake)() = nullptr;  ///< @see Program
};

/// A program for every rank of a mesh.
struct Program : ProgramFacts {
  using Facts = ProgramFacts;
  template <int... Sizes>
  using Fixed = FixedProgram<Sizes...>;

  std::vector<PlacedValue> values{};
  std::vector<Instruction> code{};
  std::vector<Output> outputs{};
  std::vector<SymbolicExtent> symbolic{};
  Remake<Program> remake{};  ///< traces and expands again; empty without symbols
};

/// Any type with the members of a program.
template <class P>
concept AnyProgram = requires(const P& program) {
  program.values[0].layout;
  program.code[0].kind;
  program.outputs[0].name;
  program.fault.kind;
};

/// The lists of a program, in the order of FixedProgram's sizes.
template <AnyProgram P>
constexpr auto lists_of(P& program) {
  return std::tie(program.values, program.code, program.outputs, program.symbolic);
}

namespace detail {

/// Gives a program the symbols of a graph, or of the program that it is made of.
constexpr void copy_symbols(const auto& from, Program& to) {
  to.symbols = from.symbols;
  to.symbolic.assign(from.symbolic.begin(), from.symbolic.end());
}

/// A program with lists of its own; a symbolic one as that of a sample of extents.
template <AnyProgram P>
constexpr Program without_symbols(const P& program) {
  Program plain;
  static_cast<ProgramFacts&>(plain) = program;
  plain.symbols = {};
  plain.values.assign(program.values.begin(), program.values.end());
  plain.code.assign(program.code.begin(), program.code.end());
  plain.outputs.assign(program.outputs.begin(), program.outputs.end());
  return plain;
}

}  // namespace detail

/// Whether an instruction changes placements only.
constexpr bool is_redistribution(const Instruction& i) {
  return i.kind == InstructionKind::move || i.kind == InstructionKind::step;
}

/// The step that an instruction is. @pre i.kind == InstructionKind::step
template <AnyProgram P>
constexpr Step step_of(const P& program, const Instruction& i) {
  return {i.step, i.reduction, i.axes, program.values[std::size_t(i.operand[0])].step_layout(),
          program.values[std::size_t(i.first)].step_layout()};
}

/// The number of rounds.
template <AnyProgram P>
constexpr int round_count(const P& program) {
  int count = 0;
  for (const Instruction& i : program.code)
    if (i.round >= count) count = i.round + 1;
  return count;
}

/// Sets, for each value, the instruction after which it is freed.
constexpr void find_last_uses(Program& program) {
  std::vector<int> wait(std::size_t(round_count(program)), -1);  // by round: its instruction
  for (std::size_t i = 0; i < program.code.size(); ++i)
    if (program.code[i].kind == InstructionKind::wait)
      wait[std::size_t(program.code[i].round)] = int(i);
  for (PlacedValue& value : program.values) value.last_use = 0;
  const auto use = [&](int id, int at) {
    int& last = program.values[std::size_t(id)].last_use;
    if (at > last) last = at;
  };
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& instruction = program.code[i];
    const int until = instruction.is_started ? wait[std::size_t(instruction.round)] : int(i);
    for (int k = 0; k < instruction.results; ++k) use(instruction.first + k, until);
    for (int k = 0; k < instruction.operands; ++k) use(instruction.operand[std::size_t(k)], until);
  }
  for (const Output& output : program.outputs)
    program.values[std::size_t(output.value)].last_use = PlacedValue::kept;
}

/// Whether two programs have equal values, code and outputs.
template <AnyProgram A, AnyProgram B>
constexpr bool same(const A& a, const B& b) {
  const auto equal = [](const auto& x, const auto& y) {
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!(x[i] == y[i])) return false;
    return true;
  };
  return equal(a.values, b.values) && equal(a.code, b.code) && equal(a.outputs, b.outputs) &&
         a.inputs == b.inputs && a.axes == b.axes && a.draws == b.draws && a.fault == b.fault;
}

}  // namespace cleave::inline v0::spmd
