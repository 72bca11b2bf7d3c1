// Plans of products of arrays, and their text.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include <cleave/ops/products/contraction_plan.hpp>
#include <cleave/ops/products/contraction_search.hpp>

namespace cleave::inline v0 {

CLEAVE_INLINE ContractionPlan plan_contractions(const ContractionCall& call,
                                                const ErrorContext& context) {
  detail::ContractionSearch search(call);
  if (search.found()) return search.plan();
  ContractionCall unlimited = call;
  unlimited.memory_limit = std::numeric_limits<index_t>::max();
  detail::ContractionSearch other(unlimited);
  if (!other.found())
    throw Error("einsum",
                "every order of products has arrays of more than " + std::to_string(max_dims) +
                    " dimensions",
                context);
  throw Error(
      "einsum",
      "no order of products holds at most " + std::to_string(call.memory_limit) +
          " bytes per rank for each product; the one that receives the fewest bytes holds " +
          std::to_string(other.plan().memory),
      context);
}

CLEAVE_INLINE std::string ContractionPlan::text() const {
  std::string text;
  for (const ContractionStep& step : steps) {
    std::size_t from = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t to = step.factors.find_first_of(",-", from);
      text += step.factors.substr(from, to - from) + " " + to_string(step.from[i]);
      if (!(step.from[i] == step.to[i])) text += " -> " + to_string(step.to[i]);
      text += i == 0 ? " * " : " = ";
      from = to + (i == 0 ? 1 : 2);
    }
    text += step.factors.substr(from) + " " + to_string(step.result) + ": " +
            std::to_string(step.bytes) + " bytes received, " +
            std::to_string(step.multiplications) + " multiplications, " +
            std::to_string(step.memory) + " bytes held";
    if (step.panel > 0)
      text += std::string(", ") + step.letter + " in panels of " + std::to_string(step.panel);
    text += '\n';
  }
  if (!steps.empty() && !(steps.back().result == result))
    text += to_string(steps.back().result) + " -> " + to_string(result) + ": " +
            std::to_string(result_bytes) + " bytes received\n";
  return text + "in all " + std::to_string(bytes) + " bytes received, " +
         std::to_string(multiplications) + " multiplications per rank";
}

}  // namespace cleave::inline v0
