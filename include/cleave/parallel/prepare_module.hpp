// Styles that redistribute the inputs and results of a module, and do not change its parameters.
//
//     on("blocks.*.attention"_path, PrepareModuleInput(Replicate{}))       x[S1] is gathered first
//     on("head"_path, PrepareModuleOutput(Replicate{}).local_output())     the whole as a Tensor
#pragma once

#include <cleave/parallel/layouts.hpp>

namespace cleave::inline v0 {

namespace detail {

template <class>
struct NoneFor {  // not an alias: nvcc generates invalid C++ for a pack of them
  using type = nn::None;
};
template <class... P>
using none_each = Types<typename NoneFor<P>::type...>;

/// The layouts of a style for the inputs, or for the results, of a module.
///
/// @tparam Wanted  Types of a placement on the axis, or None, one per value; void: any number
/// @tparam Given   Types of the placements of Tensors, or None
/// @tparam Local   whether to pass on this rank's parts
template <class Wanted, class Given, bool Local>
struct LayoutsOfSide {
  template <class... P>
  using wanted = LayoutsOfSide<Types<P...>, none_each<P...>, Local>;
  template <class... G>
  using given = LayoutsOfSide<Wanted, Types<G...>, Local>;
  using local = LayoutsOfSide<Wanted, Given, true>;
  using layouts = Layouts<Wanted, Given, Local, true>;
};
template <bool Local>
struct LayoutsOfSide<void, void, Local> {
  template <class... P>
  using wanted = LayoutsOfSide<Types<P...>, none_each<P...>, Local>;
  template <class... G>
  using given = LayoutsOfSide<none_each<G...>, Types<G...>, Local>;
  using local = LayoutsOfSide<void, void, true>;
  using layouts = AnyLayouts<Local>;
};
using AnyLayoutsOfSide = LayoutsOfSide<void, void, false>;

/// @tparam In, Out  Sides
template <class In, class Out>
struct PrepareStyle {
  /// The placements to which inputs are redistributed, or nn::None{}; one per input.
  template <class... P>
  constexpr PrepareStyle<typename In::template wanted<P...>, Out> desired_input_layouts(
      P...) const {
    return {};
  }
  /// The layouts of inputs that are Tensors, or nn::None{}; one per input: a placement, or on a
  /// mesh of several axes Placements<..>. Call it after desired_input_layouts.
  template <class... G>
  constexpr PrepareStyle<typename In::template given<G...>, Out> input_layouts(G...) const {
    return {};
  }
  /// Passes this rank's parts of the inputs, as Tensors; gradients have the inputs' placements.
  constexpr PrepareStyle<typename In::local, Out> local_inputs() const { return {}; }

  /// The placement to which the result is redistributed; one per value of a tuple.
  template <class... P>
  constexpr PrepareStyle<In, typename Out::template wanted<P...>> desired_output_layouts(
      P...) const {
    return {};
  }
  /// The layout of a Tensor that the module returns. Call it after desired_output_layouts.
  template <class... G>
  constexpr PrepareStyle<In, typename Out::template given<G...>> output_layouts(G...) const {
    return {};
  }
  /// Returns this rank's part of the result, as a Tensor; its gradient has the result's placements.
  constexpr PrepareStyle<In, typename Out::local> local_output() const { return {}; }

  /// @collective none
  template <class M, class Al>
  auto operator()(const M& m, const Al& along) const {
    return with_layouts<typename In::layouts, typename Out::layouts>(m, along);
  }
};

}  // namespace detail

/// Redistributes the inputs of a module to placements on the style's axis, one per input;
/// nn::None{} leaves an input unchanged.
template <class... P>
struct PrepareModuleInput
    : detail::PrepareStyle<detail::AnyLayoutsOfSide::wanted<P...>, detail::AnyLayoutsOfSide> {
  constexpr explicit PrepareModuleInput(P...) {}
};

/// Redistributes the result of a module, or each value of a tuple, to a placement on the style's
/// axis.
template <class... P>
struct PrepareModuleOutput
    : detail::PrepareStyle<detail::AnyLayoutsOfSide, detail::AnyLayoutsOfSide::wanted<P...>> {
  constexpr explicit PrepareModuleOutput(P...) {}
};

/// Redistributes inputs and results:
///
///     PrepareModuleInputOutput{}
///         .desired_input_layouts(Replicate{})
///         .desired_output_layouts(Shard<1>{})
struct PrepareModuleInputOutput
    : detail::PrepareStyle<detail::AnyLayoutsOfSide, detail::AnyLayoutsOfSide> {};

}  // namespace cleave::inline v0
