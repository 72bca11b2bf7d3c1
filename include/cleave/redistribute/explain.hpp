// explain: the steps and costs of a redistribution, without running it, for any mesh and shape.
//
// Works on a mesh of any backend; with the dry backend, one process explains 16,384 ranks.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/plan_cache.hpp>

namespace cleave::inline v0 {

namespace detail {

/// "5.0"
std::string decimal(double value);

}  // namespace detail

/// One step of a plan with its sizes.
struct ExplainedStep {
  StepKind kind{};
  ReduceOp op{};            ///< of a reduction
  std::string axes{};       ///< "dp.tp"; empty if the step is local
  index_t group_size = 1;   ///< ranks of each group that communicates
  index_t bytes = 0;        ///< the most that a rank receives
  double microseconds = 0;  ///< estimated
  Layout after{};           ///< the placements after the step
  /// What the first rank does: "direct all_gather", "library all_gather in the column, direct
  /// all_gather on the node". Empty if the step is local, on a device, and in a dry run whose model
  /// does not say where ranks are.
  std::string schedule{};
};

/// A plan with its sizes: a value to print, count or compare.
struct Explanation {
  Layout source{};
  Layout target{};
  Shape shape{};
  std::string mesh{};
  std::vector<ExplainedStep> steps{};
  index_t bytes = 0;        ///< the sum of the steps' bytes
  index_t peak_memory = 0;  ///< bytes of source, destination and intermediates, per rank
  double microseconds = 0;  ///< estimated, over all steps

  /// Several lines of readable text.
  std::string text() const;
};

/// The plan between two layouts of a tensor on a mesh, with its sizes; also on ranks outside of the
/// mesh. Sizes that exceed index_t are reported as its largest value.
///
/// @collective none
/// @throws Error for a shape whose bytes exceed index_t
CLEAVE_INLINE Explanation explain(const Layout& source, const Layout& target, const Shape& shape,
                                  const MeshState& mesh, DType dtype, const CostModel& machine);

/// `explain<Placements<Shard<0>, Replicate>, Placements<Replicate, Shard<0>>>(mesh, {64, 256})`
///
/// @tparam Source, Target  one placement per axis of the mesh
/// @param machine  the cost of communication
/// @collective none
template <class Source, class Target, std::size_t Rank, class Device, class... Axes>
Explanation explain(const DeviceMesh<Device, Axes...>& mesh, const index_t (&extents)[Rank],
                    DType dtype, const CostModel& machine) {
  static_assert(detail::is_placements<Source> && detail::is_placements<Target>,
                "cleave: explain requires two lists Placements<..>");
  static_assert(Source::size == int(sizeof...(Axes)) && Target::size == int(sizeof...(Axes)),
                "cleave: explain takes exactly one placement per mesh axis");
  return explain(layout_of<Source, int(Rank)>, layout_of<Target, int(Rank)>,
                 Shape(std::to_array(extents)), mesh.state(), dtype, machine);
}

/// The same for the machine that the program runs on. @see cost_model
template <class Source, class Target, std::size_t Rank, class Device, class... Axes>
Explanation explain(const DeviceMesh<Device, Axes...>& mesh, const index_t (&extents)[Rank],
                    DType dtype = DType::float32) {
  return explain<Source, Target>(mesh, extents, dtype, cost_model(*mesh.state().world()));
}

/// The same between placements with blocks or cut points that are chosen at run time:
/// `explain(mesh, {64, 256}, Placements(Cuts<0>{0, 10, 64}), Placements(Shard<1>{}))`
template <std::size_t Rank, class Device, class... Axes, class... P, class... Q>
Explanation explain(const DeviceMesh<Device, Axes...>& mesh, const index_t (&extents)[Rank],
                    const Placements<P...>& source, const Placements<Q...>& target,
                    DType dtype = DType::float32) {
  static_assert(sizeof...(P) == sizeof...(Axes) && sizeof...(Q) == sizeof...(Axes),
                "cleave: explain takes exactly one placement per mesh axis");
  const Layout from = detail::with_numbers(layout_of<Placements<P...>, int(Rank)>, source);
  const Layout to = detail::with_numbers(layout_of<Placements<Q...>, int(Rank)>, target);
  const Shape shape(std::to_array(extents));
  for (const Layout& layout : {from, to})
    if (const std::string misfit = misfit_of_cuts(layout, shape, mesh.extents()); !misfit.empty())
      throw Error("explain", misfit);
  return explain(from, to, shape, mesh.state(), dtype, cost_model(*mesh.state().world()));
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/redistribute/explain_body.hpp>
#endif
