// Whether a program keeps the order that its instructions promise.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <cleave/spmd/program.hpp>

namespace cleave::testing {

/// What is wrong with a program, or "": operands are made before they are used, results of started
/// steps after the wait for their round, which is waited for once; steps of a round are adjacent,
/// over the same axes, and do not need each other; nothing follows writes.
inline std::string flaw_of(const spmd::Program& program) {
  using spmd::InstructionKind;
  const int rounds = round_count(program);
  std::vector<char> made(program.values.size(), 0);
  std::vector<int> begin(std::size_t(rounds), -1), waited(std::size_t(rounds), 0);
  std::vector<int> maker(program.values.size(), -1);
  const auto at = [&](std::size_t n) { return " at instruction " + std::to_string(n); };
  for (std::size_t n = 0; n < program.code.size(); ++n) {
    const spmd::Instruction& i = program.code[n];
    if (n > 0 && program.code[n - 1].kind == InstructionKind::write &&
        i.kind != InstructionKind::write)
      return "something follows a write" + at(n);
    for (int k = 0; k < i.operands; ++k) {
      const auto v = std::size_t(i.operand[std::size_t(k)]);
      if (!made[v]) return "value " + std::to_string(v) + " is used too early" + at(n);
      if (i.round >= 0 && maker[v] >= 0 && program.code[std::size_t(maker[v])].round == i.round)
        return "steps of one round need each other" + at(n);
    }
    if (i.kind == InstructionKind::wait) {
      const auto r = std::size_t(i.round);
      if (begin[r] < 0) return "a round is waited for before it starts" + at(n);
      if (waited[r]++ > 0) return "a round is waited for twice" + at(n);
      for (std::size_t m = std::size_t(begin[r]); m < n && program.code[m].round == i.round; ++m)
        made[std::size_t(program.code[m].first)] = 1;
      continue;
    }
    if (i.round >= 0) {
      int& first = begin[std::size_t(i.round)];
      if (first < 0) first = int(n);
      else if (program.code[n - 1].round != i.round) return "a round is torn apart" + at(n);
      const spmd::Instruction& other = program.code[std::size_t(first)];
      if (other.axes != i.axes || other.step != i.step || other.is_started != i.is_started)
        return "steps of one round differ" + at(n);
    }
    if (i.is_started && i.round < 0) return "a started step is in no round" + at(n);
    for (int k = 0; k < i.results; ++k) {
      const auto v = std::size_t(i.first + k);
      if (maker[v] >= 0) return "a value is made twice" + at(n);
      maker[v] = int(n);
      made[v] = char(!i.is_started);
    }
  }
  for (std::size_t r = 0; r < waited.size(); ++r)
    if (begin[r] >= 0 && program.code[std::size_t(begin[r])].is_started && waited[r] != 1)
      return "a started round is not waited for";
  for (const spmd::Output& output : program.outputs)
    if (!made[std::size_t(output.value)]) return "an output is not made";
  return "";
}

}  // namespace cleave::testing
