// docs/nccl.md contains the table of calls that the plans issue.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/placement/placement.hpp>

#include "plan_calls.hpp"

using namespace cleave;
using cleave::testing::nccl_calls;

namespace {

using Placements = std::vector<Placement>;

Layout layout(const Placements& placements) {
  Layout result;
  for (const Placement& p : placements) result[result.axes++] = p;
  return result;
}

const Placement R = Placement::replicate(), S0 = Placement::shard(0), S1 = Placement::shard(1),
                P = Placement::partial(ReduceOp::sum);

std::string row(const Placements& from, const Placements& to, const Shape& extents) {
  const Shape even(std::array<index_t, 2>{8, 8}), uneven(std::array<index_t, 2>{7, 5});
  const auto short_text = [](const Placements& placements) {
    std::string text;
    for (const Placement& p : placements)
      text += (text.empty() ? "" : ",") + std::string(p == R    ? "R"
                                                      : p == S0 ? "S0"
                                                      : p == S1 ? "S1"
                                                                : "P");
    return "[" + text + "]";
  };
  return "| `" + short_text(from) + " -> " + short_text(to) + "` | " +
         nccl_calls(layout(from), layout(to), even, extents, 1) + " | " +
         nccl_calls(layout(from), layout(to), uneven, extents, 1) + " |\n";
}

std::string table() {
  const std::string head = "|---|---|---|\n";
  std::string text = "| 4 ranks | `[8, 8]` | `[7, 5]` |\n" + head;
  const Shape four(std::array<index_t, 1>{4});
  for (const Placement& from : {R, S0, S1, P})
    for (const Placement& to : {R, S0, S1})
      if (!(from == to)) text += row({from}, {to}, four);
  text += "\n| 2 x 2 ranks | `[8, 8]` | `[7, 5]` |\n" + head;
  const Shape square(std::array<index_t, 2>{2, 2});
  const std::vector<std::pair<Placements, Placements>> pairs{
      {{S0, S1}, {R, R}}, {{S0, S0}, {R, R}}, {{S0, R}, {R, S0}},  {{S0, S1}, {S1, S0}},
      {{S0, R}, {S1, R}}, {{R, R}, {S0, S1}}, {{P, R}, {R, R}},    {{P, P}, {R, R}},
      {{P, S0}, {R, S0}}, {{P, P}, {S0, S1}}, {{P, S1}, {S0, S1}}, {{P, S0}, {S1, R}},
  };
  for (const auto& [from, to] : pairs) text += row(from, to, square);
  return text;
}

}  // namespace

TEST_CASE("the table of docs/nccl.md matches the calls that plans lower to") {
  std::ifstream file("docs/nccl.md");
  std::stringstream page;
  page << file.rdbuf();
  const bool found = page.str().find(table()) != std::string::npos;
  CHECK_MESSAGE(found, "docs/nccl.md should contain:\n", table());
}
