// The plan from one layout to another as a constant of the types, and its execution on local
// elements.
//
// Placement types end here: the layers below are typed by element only.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/plan.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::detail {

/// The plan between two lists of placements, which the compiler evaluates once per pair.
template <class Source, class Target, int Dims>
inline constexpr Plan plan_of = make_plan(layout_of<Source, Dims>, layout_of<Target, Dims>, Dims);

/// Two layouts and the plan between them; null if the plan depends on sizes, or on blocks and cut
/// points.
struct RedistributionSpec {
  Layout source{};
  Layout target{};
  const Plan* plan = nullptr;
};

template <class Source, class Target, int Dims>
inline constexpr RedistributionSpec redistribution_spec = [] {
  RedistributionSpec spec{layout_of<Source, Dims>, layout_of<Target, Dims>};
  if constexpr (!is_open_list<Source> && !is_open_list<Target> &&
                !sizes_decide(layout_of<Source, Dims>, layout_of<Target, Dims>, Dims))
    spec.plan = &plan_of<Source, Target, Dims>;
  return spec;
}();

/// The same between actual layouts of those types: a constant, unless a type leaves them open.
template <class Source, class Target, int Dims>
constexpr decltype(auto) spec_of(const Layout& source, const Layout& target) {
  if constexpr (is_open_list<Source> || is_open_list<Target>)
    return RedistributionSpec{source, target};
  else return (redistribution_spec<Source, Target, Dims>);
}

/// Makes a Tensor of type-erased local elements.
template <class Local>
Local tensor_of(redistribution::Block block) {
  return TensorAccess::make<Local>(std::move(block.storage), block.view.data,
                                   block.view.extents.begin(), block.view.strides.begin());
}

/// The local elements of a global array of that shape after the redistribution; x itself if no
/// step changes them.
///
/// @param operation  the function that the user called
/// @param reuse      x is no longer needed: the result may reuse its storage
/// @collective every rank of the mesh
/// @throws Error if a collective fails
template <class T, int Rank, class Device>
Tensor<T, Rank, Device> redistribute_local(const Tensor<T, Rank, Device>& x,
                                           const RedistributionSpec& spec, const MeshState& mesh,
                                           const std::array<index_t, std::size_t(Rank)>& shape,
                                           const char* operation, bool reuse = false) {
  return tensor_of<Tensor<T, Rank, Device>>(
      redistribution::run<Device>(spec.plan, spec.source, spec.target, {x.storage(), x.view()},
                                  {mesh, Shape(shape), operation, reuse}));
}

/// The result of a redistribution, copied if it aliases x. The types do not determine whether a
/// rank's part changes, and either all ranks or none must see writes to x in the result.
template <class Local>
Local unalias(Local result, const Local& x) {
  if (result.data() == x.data() && !result.empty()) return result.clone();
  return result;
}

}  // namespace cleave::inline v0::detail
