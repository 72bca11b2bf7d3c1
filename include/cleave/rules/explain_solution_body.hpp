// Rules and solutions as text.
#pragma once

#include <string>

#include <cleave/placement/placement.hpp>
#include <cleave/rules/explain_solution.hpp>
#include <cleave/rules/extents.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/rules/solver.hpp>

namespace cleave::inline v0 {

namespace detail {

CLEAVE_INLINE std::string letters_of(const Rule& rule, const Rule::Operand& operand) {
  std::string text;
  for (int d = 0; d < operand.dims; ++d) {
    const auto dim = std::size_t(d);
    if (operand.is_group(d)) text += '(';
    text += rule.letter[std::size_t(operand.factor[dim])];
    for (int f = 0; f < rule.factors; ++f)
      if (operand.inner[dim] >> f & 1u) text += rule.letter[std::size_t(f)];
    if (operand.is_group(d)) text += ')';
  }
  return text;
}

}  // namespace detail

CLEAVE_INLINE std::string to_string(const Rule& rule) {
  std::string text;
  for (int i = 0; i < rule.operands; ++i)
    text.append(i > 0 ? "," : "").append(detail::letters_of(rule, rule.operand[std::size_t(i)]));
  text += "->";
  for (int k = 0; k < rule.results; ++k)
    text.append(k > 0 ? "," : "").append(detail::letters_of(rule, rule.result[std::size_t(k)]));
  return text;
}

namespace detail {

CLEAVE_INLINE std::string extents_error(const ExtentsConflict& conflict, const Rule& rule,
                                        index_t extent) {
  const Rule::Operand& operand = rule.operand[std::size_t(conflict.operand)];
  const int factor = operand.factor[std::size_t(conflict.dim)];
  return std::string("the extents of '") + rule.letter[std::size_t(factor)] + "' in " +
         to_string(rule) + " differ: operand " + std::to_string(conflict.operand) + " has " +
         std::to_string(extent) + ", preceding operands have " + std::to_string(conflict.expected);
}

}  // namespace detail

CLEAVE_INLINE std::string explain(const Rule& rule, const OperandLayouts& operands,
                                  const Solution& solution) {
  std::string text;
  for (int i = 0; i < rule.operands; ++i) {
    const Layout& from = operands[std::size_t(i)];
    const Layout& to = solution.required[std::size_t(i)];
    text += detail::letters_of(rule, rule.operand[std::size_t(i)]) + " " + to_string(from);
    if (!(from == to)) text += " -> " + to_string(to);
    text += '\n';
  }
  for (int k = 0; k < rule.results; ++k) {
    const Layout &computed = solution.computed[std::size_t(k)],
                 &result = solution.result[std::size_t(k)];
    text.append(k > 0 ? "\n" : "").append(detail::letters_of(rule, rule.result[std::size_t(k)]));
    text += " = " + to_string(computed);
    if (!(computed == result)) text += " -> " + to_string(result);
  }
  return text;
}

}  // namespace cleave::inline v0
