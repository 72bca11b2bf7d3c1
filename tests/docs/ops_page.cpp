// Prints docs/ops.md: the list of operations as a table, with the solver's results.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/grad/tracked.hpp>
#include <cleave/rules/explain_solution.hpp>
#include <cleave/rules/solver.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "../verify/list/operations.hpp"

using namespace cleave;

namespace {

const char* const opening = R"(# Operations

Every operation is a struct: its name, its factors, its kernel, its gradient. From it follow the call on a `Tensor`, on a
`DTensor` and in a traced program, its gradient, its test and its row here. This page is written by a program that reads
the same structs; [rules.md](rules.md) explains how the placements follow, [own_operations.md](own_operations.md) how to
write an operation of your own.

- **factors**: a letter per dimension; those with one letter are sharded together. Operands of elementwise operations may
  have fewer dimensions, or extents of 1: these repeat.
- **as it lies**: placements, on one mesh axis, that need no communication, not even a slice. `R` is replicated, `S0` a shard
  of dimension 0, `sum` a `Partial<Sum>` that such a call leaves. On a mesh, each axis takes one of them. `S0⇢S0`: ranks receive
  elements of other shards that their part of the result reads, and no more.
- **partials kept**: calls that run on what ranks hold of a pending reduction, in double precision. What is not named here
  is reduced first.
- **types**: elements that it is verified with; *real* float and double, *complex* `std::complex<double>`, *whole*
  `std::int64_t`. Others of a kind work, too.

All run on the host; on GPUs (`Cuda`) all but exact products and linear algebra do. [Variants](#variants) differ by
dimensions, options or extents.

| operation | factors | as it lies | partials kept | types | gradient |
|---|---|---|---|---|---|
)";

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

std::string short_name(const Placement& p) {
  if (p.shards()) return "S" + std::to_string(int(p.dim));
  return p.is_partial() ? name_of(p.op) : "R";
}

/// The result of a program on one axis with given placements of its inputs.
struct Outcome {
  Placement result{};
  bool is_free = true;  ///< no data is moved, except what is read of other shards
  bool reads = false;
};
Outcome outcome_of(const spmd::Graph& graph, const OperandLayouts& inputs) {
  const spmd::Program program = spmd::expand(graph, std::span(inputs).first(graph.inputs.size()),
                                             {.partial_outputs = true, .by_extents = false});
  if (program.fault) return {.is_free = false};
  Outcome outcome{program.values[std::size_t(program.outputs[0].value)].layout[0]};
  for (const spmd::Instruction& instruction : program.code) {
    OperandLayouts from{};
    for (int i = 0; i < instruction.operands; ++i)
      from[std::size_t(i)] =
          program.values[std::size_t(instruction.operand[std::size_t(i)])].layout;
    if (instruction.kind == spmd::InstructionKind::move)
      outcome.is_free =
          outcome.is_free && from[0] == program.values[std::size_t(instruction.first)].layout;
    else if (instruction.kind == spmd::InstructionKind::compute)
      outcome.reads =
          outcome.reads || solve(*instruction.op->rule, from).cost.count(Move::read) > 0;
  }
  return outcome;
}

/// The placements of all operands on one axis for which no data is moved, with or without partials.
std::string free_of_cost(const spmd::Graph& graph, bool partials) {
  std::vector<std::string> found;
  OperandLayouts layouts{};
  for (Layout& layout : layouts) layout.axes = 1;
  const int operands = int(graph.inputs.size());
  const auto walk = [&](auto& self, int operand, bool has_partial) -> void {
    if (operand == operands) {
      const Outcome outcome = outcome_of(graph, layouts);
      if (has_partial != partials || !outcome.is_free) return;
      std::string text;
      for (int i = 0; i < operands; ++i)
        text += (i > 0 ? "," : "") + short_name(layouts[std::size_t(i)][0]);
      found.push_back(text + (outcome.reads ? "⇢" : "→") + short_name(outcome.result));
      return;
    }
    Placement& here = layouts[std::size_t(operand)][0];
    here = Placement::replicate();
    self(self, operand + 1, has_partial);
    const int value = graph.inputs[std::size_t(operand)].value;
    for (int d = 0; d < graph.values[std::size_t(value)].shape.dims; ++d) {
      here = Placement::shard(d);
      self(self, operand + 1, has_partial);
    }
    for (int op = 0; partials && op <= int(ReduceOp::product); ++op) {
      here = Placement::partial(ReduceOp(op));
      self(self, operand + 1, true);
    }
  };
  walk(walk, 0, false);
  return joined(found, ", ");
}

template <class... Row>
std::string types_of(ops::TypeRows<Row...>) {
  bool is_real = false, is_complex_type = false, is_whole = false, is_bool = false;
  const auto look = [&]<class... T>(Types<T...>) {
    const bool complex = (is_complex<T> || ...), real = (std::is_floating_point_v<T> || ...);
    const bool whole = ((std::is_integral_v<T> && !std::is_same_v<T, bool>) || ...);
    is_complex_type = is_complex_type || complex;
    is_real = is_real || (real && !complex);
    is_whole = is_whole || (whole && !real && !complex);
    is_bool = is_bool || !(whole || real || complex);
  };
  (look(Row{}), ...);
  std::vector<std::string> kinds;
  if (is_real) kinds.push_back("real");
  if (is_complex_type) kinds.push_back("complex");
  if (is_whole) kinds.push_back("whole");
  if (is_bool) kinds.push_back("bool");
  return joined(kinds, ", ");
}

template <bool Tracks, class X>
using LeafIf = std::conditional_t<Tracks, Tracked<X>, X>;

/// Whether the operations that a composite consists of have a gradient in operand I.
template <int I, class Op, class... T, int... Dims>
constexpr bool tracks_by_parts(Types<T...>, std::integer_sequence<int, Dims...>) {
  if constexpr (!is_composite<Op>) return false;
  else
    return []<std::size_t... K>(std::index_sequence<K...>) {
      return tape::is_tracked<decltype(call_op(
          std::declval<const Op&>(),
          std::declval<
              const LeafIf<int(K) == I && !std::is_integral_v<T>, Traced<T, Dims>>&>()...))>;
    }(std::index_sequence_for<T...>{});
}

/// The operands for which an operation on these types has a gradient.
template <class Op, class... T, int... Dims>
std::string gradient_of(Types<T...>, std::integer_sequence<int, Dims...>, const char* constant) {
  using Y = decltype(call_op(std::declval<const Op&>(), std::declval<const Traced<T, Dims>&>()...));
  std::vector<std::string> with;
  const auto look = [&]<int I>(std::integral_constant<int, I>) {
    if constexpr (requires(const Op& op, const Y& y, const Traced<T, Dims>&... x) {
                    op.gradient(wrt<I>{}, y, y, x...);
                  })
      with.push_back(std::to_string(I));
    else if constexpr (tracks_by_parts<I, Op>(Types<T...>{}, std::integer_sequence<int, Dims...>{}))
      with.push_back(std::to_string(I));
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (look(std::integral_constant<int, int(I)>{}), ...);
  }(std::index_sequence_for<T...>{});
  if (with.size() == sizeof...(T)) return "yes";
  const std::string reason = constant;
  return with.empty() ? "no: " + reason : "in operand " + joined(with, " and ") + "; " + reason;
}

/// The first `Count` of a list of types and of a list of numbers of dimensions.
template <int Count, class... T, int... D, class F>
void with_first(Types<T...>, std::integer_sequence<int, D...>, const F& f) {
  constexpr std::array<int, sizeof...(D)> dims{D...};
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    f(Types<std::tuple_element_t<I, std::tuple<T...>>...>{},
      std::integer_sequence<int, dims[I]...>{});
  }(std::make_index_sequence<std::size_t(Count)>{});
}

template <class Row, class... Rest>
Row first_row(ops::TypeRows<Row, Rest...>);

/// Arbitrary extents.
template <int Rank>
std::array<index_t, std::size_t(Rank)> filled() {
  std::array<index_t, std::size_t(Rank)> extents{};
  extents.fill(8);
  return extents;
}

/// What the page says of an entry of the list.
struct Row {
  std::string call, note;
  std::array<std::string, 5> cells;
};
constexpr std::array<const char*, 5> headings{"factors", "as it lies", "partials kept", "types",
                                              "gradient"};

template <class Entry>
Row row_of(const Entry& entry) {
  using Op = typename Entry::op;
  using Rows = typename Entry::rows;
  Row row;
  with_first<Entry::operands>(
      decltype(first_row(Rows{})){}, typename Entry::dims{},
      [&]<class... T, int... D>(Types<T...> types, std::integer_sequence<int, D...> dims) {
        std::string factors = "made of others";
        if constexpr (!is_composite<Op>)
          factors = "`" + to_string(rule_for<Op, Types<T...>, D...>) + "`";
        else if constexpr (requires { typename Op::combines; })
          factors = "`" + to_string(rule_for<typename Op::combines, Types<T...>, D...>) + "`";
        const auto alone = [](const auto&... x) { return call_op(Op{}, x...); };
        const spmd::Graph graph = spmd::trace(alone, spmd::Arg<T, D, Host>{"x", filled<D>()}...);
        const std::string usage = entry.usage;
        const std::size_t end = usage.find("; ");
        row.call = "`" + usage.substr(0, end) + "`";
        if (end != usage.npos) row.note = ", " + usage.substr(end + 2);
        row.cells = {factors, free_of_cost(graph, false), free_of_cost(graph, true),
                     types_of(Rows{}), gradient_of<Op>(types, dims, entry.constant)};
      });
  return row;
}

/// The name of the function, which variants share; the whole call of an operator.
std::string name_in(const std::string& call) {
  const std::size_t end = call.find_first_of(" (<-");
  return end == call.npos || call[end] == ' ' || call[end] == '-' ? call : call.substr(0, end);
}

/// Entries of one operation: the first that has no template arguments or notes, then the others.
std::vector<Row> ordered(std::vector<Row> rows) {
  std::stable_partition(rows.begin(), rows.end(), [](const Row& row) {
    return row.note.empty() && row.call[name_in(row.call).size()] != '<';
  });
  return rows;
}

void print_variant(const Row& row, const Row& first) {
  std::printf("- %s%s:", row.call.c_str(), row.note.c_str());
  const char* before = " ";
  for (std::size_t i = 0; i < headings.size(); ++i)
    if (row.cells[i] != first.cells[i]) {
      const std::string& cell = row.cells[i];
      std::printf("%s%s %s", before, headings[i], cell.empty() ? "none" : cell.c_str());
      before = "; ";
    }
  std::printf("%s\n", before[0] == ' ' ? " the same" : "");
}

}  // namespace

int main() {
  std::vector<std::vector<Row>> operations;
  ops::each_operation([&](const auto& entry) {
    if (entry.is_helper) return;
    const Row row = row_of(entry);
    for (std::vector<Row>& rows : operations)
      if (name_in(rows.front().call) == name_in(row.call)) return rows.push_back(row);
    operations.push_back({row});
  });
  for (std::vector<Row>& rows : operations) rows = ordered(std::move(rows));
  std::printf("%s", opening);
  for (const std::vector<Row>& rows : operations) {
    const Row& row = rows.front();
    std::printf("| %s%s |", row.call.c_str(), row.note.c_str());
    for (const std::string& cell : row.cells) std::printf(" %s |", cell.c_str());
    std::printf("\n");
  }
  std::printf("\n## Variants\n\nWhat is not said is as in the table.\n\n");
  for (const std::vector<Row>& rows : operations)
    for (std::size_t i = 1; i < rows.size(); ++i) print_variant(rows[i], rows.front());
}
