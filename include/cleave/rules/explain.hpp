// Solutions as text: what an operation does with its operands, for people.
#pragma once

#include <string>

#include <cleave/placement/placement.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/rules/solver.hpp>

namespace cleave {

/// "ik,kj->ij"
inline std::string to_string(const Rule& rule) {
  std::string text;
  const auto letters = [&](const Rule::Operand& operand) {
    for (int d = 0; d < operand.dims; ++d)
      text += rule.letter[std::size_t(operand.factor[std::size_t(d)])];
  };
  for (int i = 0; i < rule.operands; ++i) {
    if (i > 0) text += ',';
    letters(rule.operand[std::size_t(i)]);
  }
  text += "->";
  for (int k = 0; k < rule.results; ++k) {
    if (k > 0) text += ',';
    letters(rule.result[std::size_t(k)]);
  }
  return text;
}

/// One line per operand and one per result:
///
///     ik (Shard(0), Replicate)
///     kj (Replicate, Shard(0)) -> (Replicate, Shard(1))
///     ij = (Shard(0), Shard(1))
inline std::string explain(const Rule& rule, const OperandLayouts& operands,
                           const Solution& solution) {
  const auto letters = [&](const Rule::Operand& operand) {
    std::string text;
    for (int d = 0; d < operand.dims; ++d)
      text += rule.letter[std::size_t(operand.factor[std::size_t(d)])];
    return text;
  };
  std::string text;
  for (int i = 0; i < rule.operands; ++i) {
    const Layout& from = operands[std::size_t(i)];
    const Layout& to = solution.required[std::size_t(i)];
    text += letters(rule.operand[std::size_t(i)]) + " " + to_string(from);
    if (!(from == to)) text += " -> " + to_string(to);
    text += '\n';
  }
  for (int k = 0; k < rule.results; ++k) {
    const Layout &computed = solution.computed[std::size_t(k)],
                 &result = solution.result[std::size_t(k)];
    text += (k > 0 ? "\n" : "") + letters(rule.result[std::size_t(k)]) + " = " +
            to_string(computed);
    if (!(computed == result)) text += " -> " + to_string(result);
  }
  return text;
}

}  // namespace cleave
