// Calls on operands whose blocks or cut points are chosen at run time: what the types leave open is
// filled in before the call runs.
//
// On each axis the first operand that the solution cuts in an open kind says how; operands of the
// same kind that are cut otherwise are redistributed to it, as those of other kinds are. A request
// for the placements of a value says how the first result is cut.
#pragma once

#include <cstddef>
#include <string>

#include <cleave/ops/engine/run_op.hpp>

namespace cleave::inline v0::detail {

/// A PlacedCall with the actual blocks and cut points. Refers to itself.
struct OpenCall {
  PlacedCall call;
  Solution solution;
  RedistributionSpec result_spec{};

  /// @param asked        the placements that are requested of the first result, or null
  /// @param is_explicit  no operand may be redistributed
  /// @throws Error if one would have to be
  OpenCall(const PlacedCall& fixed, const OperandRef* in, const Layout* asked, bool is_explicit)
      : call(fixed), solution(*fixed.solution) {
    const Rule& rule = *fixed.info->rule;
    Layout numbers = Layout::replicated(solution.computed[0].axes);
    for (int a = 0; a < numbers.axes; ++a) {
      for (int i = 0; i < rule.operands && numbers[a].number == 0; ++i)
        if (const Placement& required = solution.required[std::size_t(i)][a];
            in[i].layout != nullptr && required.is_open() &&
            (*in[i].layout)[a].kind == required.kind && (*in[i].layout)[a].dim == required.dim)
          numbers[a] = (*in[i].layout)[a];
      if (numbers[a].number == 0 && asked != nullptr) numbers[a] = (*asked)[a];
    }
    for (int k = 0; k < rule.results; ++k) {
      Layout& result = solution.result[std::size_t(k)];
      Layout& computed = solution.computed[std::size_t(k)];
      computed = computed.with_numbers_of(numbers);
      result = result.with_numbers_of(k == 0 && asked != nullptr ? *asked : numbers);
    }
    for (int i = 0; i < rule.operands; ++i) {
      Layout& required = solution.required[std::size_t(i)];
      required = required.with_numbers_of(numbers);
      if (in[i].layout == nullptr || required == *in[i].layout) continue;
      if (is_explicit && (call.moves >> i & 1u) == 0) throw_other_cuts(in, i, required);
      call.moves |= 1u << i;
    }
    call.solution = &solution;
    call.result_moves = !(solution.computed[0] == solution.result[0]);
    result_spec = {solution.computed[0], solution.result[0]};
    call.result_spec = &result_spec;
  }
  OpenCall(const OpenCall&) = delete;

 private:
  [[noreturn]] void throw_other_cuts(const OperandRef* in, int i, const Layout& required) const {
    throw Error(call.info->name,
                "explicit_communication: operand " + std::to_string(i) +
                    " would be redistributed from " + to_string(*in[i].layout) + " to " +
                    to_string(required) + "; call redistribute before the operation",
                context_of(in, call.info->rule->operands));
  }
};

}  // namespace cleave::inline v0::detail
