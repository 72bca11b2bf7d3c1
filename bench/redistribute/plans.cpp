// The planner against exhaustive search: meshes of 1 to 3 axes with 1 to 4 ranks each, tensors of
// 1 to 3 dimensions with remainders and empty shards.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/plan_cache.hpp>

#include "plan_bound.hpp"

using namespace cleave;
using naive::Indices;
using naive::shape_of;

namespace {

/// Compares every `stride`-th pair of layouts on one mesh and shape.
void compare(naive::BoundReport& report, const Indices& mesh, const Indices& shape, long stride) {
  std::vector<Placement> targets{Placement::replicate()};
  for (int d = 0; d < int(shape.size()); ++d) targets.push_back(Placement::shard(d));
  std::vector<Placement> sources = targets;
  sources.push_back(Placement::partial(ReduceOp::sum));
  const naive::BoundSearch search(mesh, shape);
  const Shape extents = shape_of(mesh), global = shape_of(shape);
  long turn = 0;
  for (const Layout& source : naive::layouts_over(extents.dims, sources))
    for (const Layout& target : naive::layouts_over(extents.dims, targets)) {
      if (turn++ % stride != 0) continue;
      const Layout from = redistribution::without_unit_axes(source, extents);
      const Layout to = redistribution::without_unit_axes(target, extents);
      const Plan plan = choose_plan(from, to, global, extents, 1, CostModel::bytes_only());
      ++report.pairs;
      report.over_bound += received_bytes(plan, extents, global, 1) > search.least(from, to);
      int& most =
          from.has_partial() ? report.max_steps_with_partial : report.max_steps_without_partial;
      most = std::max(most, plan.communications());
    }
}

}  // namespace

int main() {
  naive::BoundReport report;
  const std::vector<Indices> shapes[] = {
      {{0}, {3}, {5}, {16}}, {{8, 8}, {5, 3}, {2, 9}, {0, 4}}, {{4, 4, 4}, {3, 5, 2}, {7, 1, 6}}};
  for (int axes = 1; axes <= 3; ++axes)
    for (Indices mesh : naive::all_indices(Indices(std::size_t(axes), 4))) {
      for (index_t& extent : mesh) ++extent;
      for (const auto& group : shapes)
        for (const Indices& shape : group)
          compare(report, mesh, shape, axes < 3 ? 1 : shape.size() == 3 ? 31 : 7);
    }
  std::printf("plan.pairs %ld pairs\n", report.pairs);
  std::printf("plan.pairs_over_bound %ld pairs\n", report.over_bound);
  std::printf("plan.max_steps_without_partial %d steps\n", report.max_steps_without_partial);
  std::printf("plan.max_steps_with_partial %d steps\n", report.max_steps_with_partial);
}
