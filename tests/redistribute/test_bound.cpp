// Plans compared with the minimum that can be received, found by exhaustive search.
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/run_plan.hpp>

#include "plan_bound.hpp"

using namespace cleave;
using naive::Indices;
using naive::shape_of;

namespace {

/// Compares every pair on one mesh and shape, or every stride-th pair.
void compare(naive::BoundReport& report, const Indices& mesh, const Indices& shape,
             long stride = 1) {
  std::vector<Placement> targets{Placement::replicate()};
  for (int d = 0; d < int(shape.size()); ++d) targets.push_back(Placement::shard(d));
  std::vector<Placement> sources = targets;
  sources.push_back(Placement::partial(ReduceOp::sum));
  const naive::BoundSearch search(mesh, shape);
  const int axes = int(mesh.size());
  long turn = 0;
  for (const Layout& from : naive::layouts_over(axes, sources))
    for (const Layout& to : naive::layouts_over(axes, targets)) {
      if (turn++ % stride != 0) continue;
      const Layout a = redistribution::without_unit_axes(from, shape_of(mesh));
      const Layout b = redistribution::without_unit_axes(to, shape_of(mesh));
      const Plan plan =
          choose_plan(a, b, shape_of(shape), shape_of(mesh), 1, CostModel::bytes_only());
      const index_t bytes = received_bytes(plan, shape_of(mesh), shape_of(shape), 1);
      const index_t bound = search.least(a, b);
      ++report.pairs;
      if (bytes > bound) {
        ++report.over_bound;
        if (report.over_bound < 10)
          MESSAGE(to_string(from), " -> ", to_string(to), " of ", to_string(shape_of(shape)),
                  " on ", to_string(shape_of(mesh)), ": ", bytes, " over ", bound);
      }
      int& most =
          from.has_partial() ? report.max_steps_with_partial : report.max_steps_without_partial;
      most = std::max(most, plan.communications());
    }
}

}  // namespace

TEST_CASE("no plan receives more than the cheapest of all sequences of steps") {
  naive::BoundReport report;
  for (const Indices& mesh : std::vector<Indices>{{1}, {2}, {3}, {4}})
    for (const Indices& shape :
         std::vector<Indices>{{0}, {1}, {5}, {8}, {3, 4}, {2, 1}, {5, 7}, {4, 4, 4}, {3, 2, 5}})
      compare(report, mesh, shape);
  for (index_t m = 1; m <= 4; ++m)
    for (index_t n = 1; n <= 4; ++n)
      for (const Indices& shape :
           std::vector<Indices>{{5}, {16}, {8, 8}, {5, 3}, {2, 9}, {0, 3}, {3, 4, 5}})
        compare(report, {m, n}, shape);
  for (const Indices& mesh : std::vector<Indices>{{2, 2, 2}, {2, 3, 2}, {3, 1, 4}, {4, 2, 3}})
    for (const Indices& shape : std::vector<Indices>{{7}, {8, 8}, {5, 3}, {1, 6}})
      compare(report, mesh, shape);
  for (const Indices& mesh : naive::all_indices({4, 4, 4}))  // all extents, a sample of the pairs
    for (const Indices& shape : std::vector<Indices>{{7, 4}, {4, 6, 5}})
      compare(report, {mesh[0] + 1, mesh[1] + 1, mesh[2] + 1}, shape, 61);
  const Indices many_dims{3, 2, 1, 4, 5, 2, 3, 2};
  for (const auto& [mesh, shape, stride] :
       {std::tuple<Indices, Indices, long>{{2, 3, 1, 2}, {7, 4}, 53},
        {{2, 2, 2, 2, 2}, {6, 5}, 1999},
        {{3, 1, 2, 2, 2}, {3, 2, 4}, 20011},
        {{2, 3}, many_dims, 97},
        {{2, 2, 3}, many_dims, 9973}})
    compare(report, mesh, shape, stride);
  CHECK(report.pairs > 45000);
  CHECK(report.over_bound == 0);
  CHECK(report.max_steps_without_partial == 1);
  CHECK(report.max_steps_with_partial == 2);
}

TEST_CASE("different reductions take one step each, innermost axis first, and one more to move") {
  constexpr Placement sum = Placement::partial(ReduceOp::sum),
                      max = Placement::partial(ReduceOp::max);
  const Shape mesh(std::array<index_t, 3>{2, 4, 3}), shape(std::array<index_t, 2>{4096, 512});
  int pairs = 0;
  for (const Layout& from :
       naive::layouts_over(3, {Placement::replicate(), Placement::shard(0), sum, max}))
    for (const Layout& to : naive::layouts_over(
             3, {Placement::replicate(), Placement::shard(0), Placement::shard(1)})) {
      int runs = 0;  // of partial axes with the same reduction, ignoring other axes between them
      bool moves = false;
      const Placement* last = nullptr;
      for (int a = 2; a >= 0; --a) {
        if (!from[a].is_partial()) {
          moves = moves || from[a] != to[a];
          continue;
        }
        moves = moves || to[a].shards();
        runs += last == nullptr || last->op != from[a].op;
        last = &from[a];
      }
      if (runs < 2) continue;
      const Plan plan = choose_plan(from, to, shape, mesh, 4);
      CHECK(plan.communications() <= runs + (moves ? 1 : 0));
      int reductions = 0;
      ReduceOp innermost{};
      for (const Step& step : plan)
        if (step.kind == StepKind::all_reduce || step.kind == StepKind::reduce_scatter)
          if (reductions++ == 0) innermost = step.op;
      CHECK(reductions == runs);
      int a = 2;
      while (!from[a].is_partial()) --a;
      CHECK(innermost == from[a].op);
      ++pairs;
    }
  CHECK(pairs > 300);
}
