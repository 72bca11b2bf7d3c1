// The NCCL calls of a redistribution, as text, without running ranks: the steps of its plan,
// lowered for one rank of a mesh that is not running.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/nccl/lowering.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/redistribute/run_plan.hpp>

namespace cleave::testing {

/// "pack, ncclAllGather(12)": counts are in elements; copies of a rank's own elements count as
/// packing.
inline std::string text_of(const detail::NcclPlan& plan) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  if (!plan.before.empty()) add("pack");
  if (plan.calls.size() > 1) add("group of");
  std::string last;
  int times = 0;
  const auto flush = [&] {
    if (times > 0) add(last + (times > 1 ? " x " + std::to_string(times) : ""));
    times = 0;
  };
  std::vector<detail::NcclCall> calls = plan.calls;
  std::stable_sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
    return a.function != b.function ? a.function < b.function : a.count < b.count;
  });
  for (const detail::NcclCall& call : calls) {
    const std::string word =
        std::string(name_of(call.function)) + "(" + std::to_string(call.count) + ")";
    if (word != last) flush();
    last = word;
    ++times;
  }
  flush();
  const auto any_after = [&](detail::StepAction action) {
    return std::ranges::any_of(plan.after, [&](const auto& step) { return step.action == action; });
  };
  if (any_after(detail::StepAction::copy)) add("unpack");
  if (any_after(detail::StepAction::reduce)) add("reduce");
  return text;
}

/// The calls of rank `rank` of a mesh for a redistribution of float32, step by step.
inline std::string nccl_calls(const Layout& from, const Layout& to, const Shape& shape,
                              const Shape& extents, int rank) {
  const int ranks = int(extents.product());
  const auto group = dry_communicator(rank, ranks);
  std::vector<int> world(static_cast<std::size_t>(ranks));
  std::vector<std::string> names;
  for (int r = 0; r < ranks; ++r) world[std::size_t(r)] = r;
  for (int a = 0; a < extents.dims; ++a) names.push_back("axis" + std::to_string(a));
  const MeshState mesh(group, group, extents, world, names);
  const redistribution::Context context{mesh, shape, "redistribute"};

  const Plan plan = make_plan(from, to, shape.dims);
  const Shape local = redistribution::own_box(StepLayout{from}, context).extents();
  redistribution::Execution<Host> execution(
      plan, redistribution::allocate<Host>(DType::float32, local), context);
  std::string text;
  while (!execution.done()) {
    redistribution::Call call = execution.call();
    const Communicator& members = *mesh.group(call.axes);
    std::vector<std::unique_ptr<std::byte[]>> temporary;
    const auto allocate = [&](std::size_t bytes) -> void* {
      return temporary.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
    };
    const Collective collective = call.collective(context);
    text += (text.empty() ? "" : "; then ") +
            text_of(detail::NcclLowering(collective, members.rank(), members.size(),
                                         NCCL_VERSION_CODE, allocate)
                        .take());
    execution.take(std::move(call));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace cleave::testing
