// The memory of programs: planned in advance, without two living values at one place, and as much
// as a run takes.
#include <array>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/spmd.hpp>

#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

constexpr index_t planned_rows = 96;

/// Views of living values, a chain of elementwise operations, and an output that views a value.
struct Planned {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto h = matmul(x, w);
    const auto turned = transpose(h);
    auto y = relu(h);
    for (int i = 0; i < 5; ++i) y = tanh(add(y, x));
    const auto z = exp(matmul(turned, y));
    return std::tuple(transpose(add(z, transpose(z))), sum(mul(y, h)));
  }
};

constexpr auto planned_graph = spmd::frozen([] {
  return spmd::trace(Planned{}, spmd::arg<float>("x", {planned_rows, planned_rows}),
                     spmd::arg<float>("w", {planned_rows, planned_rows}));
});

spmd::Program planned_program() {
  return spmd::expand(planned_graph,
                      std::array{spmd::schema(Shard<0>{}), spmd::schema(Replicate{})});
}

/// The first instruction that reads a value which another one has overwritten, or -1. Every byte of
/// the block is tracked: which value was written there last.
int first_overwritten(const spmd::Program& program, const spmd::MemoryPlan& plan,
                      const Shape& mesh) {
  std::vector<int> last(std::size_t(plan.block), -1);
  std::vector<int> origin(program.values.size());  // of views: the value that they view
  for (std::size_t v = 0; v < origin.size(); ++v) origin[v] = int(v);
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const spmd::Instruction& step = program.code[i];
    const auto is_overwritten = [&](const spmd::Instruction& reader) {
      for (int k = 0; k < reader.operands; ++k) {
        const auto v = std::size_t(origin[std::size_t(reader.operand[std::size_t(k)])]);
        for (index_t b = 0; plan.offset[v] >= 0 && b < plan.bytes[v]; ++b)
          if (last[std::size_t(plan.offset[v] + b)] != int(v)) return true;
      }
      return false;
    };
    if (is_overwritten(step)) return int(i);
    for (const spmd::Instruction& reader : program.code)  // until their round has been waited for
      if (step.kind == spmd::InstructionKind::wait && reader.is_started &&
          reader.round == step.round && is_overwritten(reader))
        return int(i);
    for (int k = 0; k < step.results; ++k) {
      const auto v = std::size_t(step.first + k);
      const bool views = is_redistribution(step)
                             ? plan_of(program, step, mesh).communications() == 0
                             : step.op != nullptr && step.op->is_view;
      if (views) origin[v] = origin[std::size_t(step.operand[0])];
      for (index_t b = 0; plan.offset[v] >= 0 && b < plan.bytes[v]; ++b)
        last[std::size_t(plan.offset[v] + b)] = int(v);
    }
  }
  for (const spmd::Output& output : program.outputs)
    if (plan.offset[std::size_t(origin[std::size_t(output.value)])] >= 0)
      return int(program.code.size());
  return -1;
}

/// The instruction that makes a value.
int instruction_of(const spmd::Program& program, std::size_t value) {
  int i = 0;
  while (program.code[std::size_t(i)].first + program.code[std::size_t(i)].results <= int(value))
    ++i;
  return i;
}

/// The bytes of all values in the block, without sharing.
index_t bytes_unshared(const spmd::MemoryPlan& plan) {
  index_t total = 0;
  for (std::size_t v = 0; v < plan.offset.size(); ++v)
    if (plan.offset[v] >= 0) total += plan.bytes[v];
  return total;
}

// the plan is a constant, too
static_assert([] {
  const spmd::Program program =
      spmd::expand(planned_graph, std::array{spmd::schema(Shard<0>{}), spmd::schema(Replicate{})});
  return spmd::plan_memory(program, std::array<index_t, 1>{2}, std::array<index_t, 1>{0}).block;
}() <= 4 * planned_rows * planned_rows / 2 * index_t(sizeof(float)));

}  // namespace

TEST_CASE("planned values do not overwrite each other while they live") {
  const spmd::Program program = planned_program();
  for (const index_t ranks : {1, 2, 5, 97})
    for (const index_t rank : {index_t(0), ranks - 1}) {
      const spmd::MemoryPlan plan = spmd::plan_memory(program, std::array{ranks}, std::array{rank});
      CHECK(first_overwritten(program, plan, std::array{ranks}) == -1);
      if (ranks == 1) CHECK(2 * plan.block <= bytes_unshared(plan));
    }
}

TEST_CASE("operands of rounds that run meanwhile are not overwritten") {
  const auto f = [](const auto& x, const auto& w) {
    const auto h = matmul(x, w), g = exp(h);
    const auto sums = resolve(matmul(transpose(x), exp(tanh(matmul(g, w)))));
    const auto others = resolve(matmul(transpose(h), exp(mul(matmul(h, w), 0.5f))));
    return std::tuple(sum(relu(matmul(exp(matmul(h, w)), w))), add(w, add(sums, others)));
  };
  const spmd::Graph graph =
      spmd::trace(f, spmd::arg<float>("x", {32, 16}), spmd::arg<float>("w", {16, 16}));
  const Shape mesh = Shape::filled(1, 2);
  const spmd::ProgramCosts slow{.communication = {50, 1}, .points_per_us = 0.5};
  spmd::Program program = spmd::optimize(
      spmd::expand(graph, std::array{spmd::schema(Shard<0>{}), spmd::schema(Replicate{})}), mesh,
      slow);
  int waits = 0;
  for (const spmd::Instruction& i : program.code) waits += i.kind == spmd::InstructionKind::wait;
  REQUIRE(waits > 0);
  const auto overwritten = [&] {
    return first_overwritten(program, spmd::plan_memory(program, mesh, Shape::filled(1, 0)), mesh);
  };
  CHECK(overwritten() == -1);
  for (std::size_t n = 0; n < program.code.size(); ++n)  // operands that live until the start only
    if (const spmd::Instruction& i = program.code[n]; i.is_started)
      program.values[std::size_t(i.operand[0])].last_use = int(n);
  CHECK(overwritten() >= 0);
}

TEST_CASE("a wrong plan is detected: one value is moved onto another that lives") {
  const spmd::Program program = planned_program();
  const std::array<index_t, 1> mesh{1};
  const spmd::MemoryPlan right = spmd::plan_memory(program, mesh, std::array<index_t, 1>{0});
  int detected = 0;
  for (std::size_t v = 0; v < right.offset.size(); ++v)
    for (std::size_t w = 0; w < v; ++w) {
      if (right.offset[v] < 0 || right.offset[w] < 0 || right.offset[v] == right.offset[w])
        continue;
      if (instruction_of(program, v) >= program.values[w].last_use) continue;
      spmd::MemoryPlan wrong = right;
      wrong.offset[v] = right.offset[w];
      CHECK(first_overwritten(program, wrong, mesh) >= 0);
      ++detected;
    }
  CHECK(detected > 0);
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("a run takes the memory that was planned, and none but outputs in later runs") {
  run_threads(1, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {1});
    const auto x = ones<float>({planned_rows, planned_rows}, mesh, Shard<0>{});
    const auto w = ones<float>({planned_rows, planned_rows}, mesh, Replicate{});
    const std::array inputs{spmd::erased(x), spmd::erased(w)};
    const spmd::Program program = planned_program();
    reset_memory_peak();
    const std::size_t before = memory_stats().allocated;
    spmd::Runner runner(program, mesh);
    static_cast<void>(runner(inputs));
    const std::size_t uncounted = sizeof(float);  // a sum; statistics omit tensors below 4 KiB
    CHECK(memory_stats().peak - before + uncounted == std::size_t(runner.peak_bytes()));
    const std::uint64_t taken = memory_stats().fresh + memory_stats().reused;
    static_cast<void>(runner(inputs));
    CHECK(memory_stats().fresh + memory_stats().reused - taken == 1);  // the large output
  });
}

TEST_SUITE_END();

TEST_CASE("programs whose values share memory have the bits of calls") {
  on_ranks({1, 2, 5}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const std::array<index_t, 2> shape{12, 12};
    check_like_eager(Planned{}, irregular<float, Placements<Shard<0>>>(mesh, shape, 1),
                     irregular<float, Placements<Replicate>>(mesh, shape, 2));
  });
}
