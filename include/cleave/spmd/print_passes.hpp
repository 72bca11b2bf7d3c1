// What passes do, as text: a program before and after one, fused runs, memory plans.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cleave/spmd/passes/fuse_elementwise.hpp>
#include <cleave/spmd/passes/memory_plan.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// A line of text, and the same without the numbers of values, which passes change.
struct ComparedLine {
  std::string_view text{};
  std::string compared{};
};

inline std::vector<ComparedLine> compared_lines(std::string_view text) {
  std::vector<ComparedLine> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    ComparedLine& line = lines.emplace_back(ComparedLine{text.substr(0, end + 1), {}});
    text.remove_prefix(end + 1);
    bool is_number = false;
    for (const char c : line.text) {
      is_number = c == '%' || (is_number && c >= '0' && c <= '9');
      if (!is_number || c == '%') line.compared += c;
    }
  }
  return lines;
}

}  // namespace detail

/// The lines of a program before and after a pass: "- " before those that it removes, "+ " before
/// those that it adds, both texts as by `to_string`. Numbers of values are not compared.
///
///     const std::string before = to_string(program, mesh);
///     remove_unused(program);
///     std::puts(difference(before, to_string(program, mesh)).c_str());
///
/// @cost the product of the numbers of lines (a longest common subsequence)
inline std::string difference(std::string_view before, std::string_view after) {
  const std::vector<detail::ComparedLine> a = detail::compared_lines(before);
  const std::vector<detail::ComparedLine> b = detail::compared_lines(after);
  const std::size_t width = b.size() + 1;
  std::vector<int> common((a.size() + 1) * width, 0);  // of the lines from i and from j on
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      common[i * width + j] = a[i].compared == b[j].compared ? 1 + common[(i + 1) * width + j + 1]
                                                             : std::max(common[(i + 1) * width + j],
                                                                        common[i * width + j + 1]);
  std::string text;
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i].compared == b[j].compared) {
      text += "  " + std::string(b[j++].text);
      ++i;
    } else if (i < a.size() &&
               (j == b.size() || common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      text += "- " + std::string(a[i++].text);
    } else {
      text += "+ " + std::string(b[j++].text);
    }
  }
  return text;
}

/// One line per run: "%5..%8: mul, relu, add, tanh".
template <AnyProgram P>
std::string to_string(std::span<const FusedRun> runs, const P& program) {
  std::string text;
  for (const FusedRun& run : runs) {
    text += "%" + std::to_string(program.code[std::size_t(run.begin)].first) + "..%" +
            std::to_string(program.code[std::size_t(run.end) - 1].first);
    for (int i = run.begin; i < run.end; ++i)
      text += (i == run.begin ? ": " : ", ") + std::string(program.code[std::size_t(i)].name);
    text += "\n";
  }
  return text;
}

/// One line per value in the block: "%5: 4096 bytes at 8192"; then the sizes of all memory.
inline std::string to_string(const MemoryPlan& plan) {
  std::string text;
  for (std::size_t v = 0; v < plan.offset.size(); ++v)
    if (plan.offset[v] != MemoryPlan::elsewhere)
      text += "%" + std::to_string(v) + ": " + std::to_string(plan.bytes[v]) + " bytes at " +
              std::to_string(plan.offset[v]) + "\n";
  return text + "block of " + std::to_string(plan.block) + " bytes, at most " +
         std::to_string(plan.outside) + " bytes elsewhere\n";
}

}  // namespace cleave::inline v0::spmd
