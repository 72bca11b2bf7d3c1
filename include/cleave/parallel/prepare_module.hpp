// Styles that leave parameters alone: where the inputs and the result of a module have to be.
//
//     on("blocks.*.attention"_path, PrepareModuleInput(Replicate{}))       x[S1] is gathered first
//     on("head"_path, PrepareModuleOutput(Replicate{}).local_output())     the whole, a Tensor
#pragma once

#include <cleave/parallel/layouts.hpp>

namespace cleave {

namespace detail {

template <class>
struct NoneFor {  // no alias: what nvcc makes of a pack of them is no C++
  using type = nn::None;
};
template <class... P>
using none_each = Types<typename NoneFor<P>::type...>;

/// What a style says of the inputs, or of the results, of a module.
///
/// @tparam Wanted  Types of a placement on the axis, or None, one per value; void: of any number
/// @tparam Given   Types of how Tensors lie, or None
/// @tparam Local   whether this rank's parts are passed on
template <class Wanted, class Given, bool Local>
struct Side {
  template <class... P>
  using wanted = Side<Types<P...>, none_each<P...>, Local>;
  template <class... G>
  using given = Side<Wanted, Types<G...>, Local>;
  using local = Side<Wanted, Given, true>;
  using layouts = Layouts<Wanted, Given, Local, true>;
};
template <bool Local>
struct Side<void, void, Local> {
  template <class... P>
  using wanted = Side<Types<P...>, none_each<P...>, Local>;
  template <class... G>
  using given = Side<none_each<G...>, Types<G...>, Local>;
  using local = Side<void, void, true>;
  using layouts = AnyLayouts<Local>;
};
using AnySide = Side<void, void, false>;

/// @tparam In, Out  Sides
template <class In, class Out>
struct PrepareStyle {
  /// Where the inputs are to be, one placement or nn::None{} each.
  template <class... P>
  constexpr PrepareStyle<typename In::template wanted<P...>, Out> desired_input_layouts(
      P...) const {
    return {};
  }
  /// How Tensors among the inputs lie, a layout or nn::None{} each: a placement, or on a mesh of
  /// several axes Placements<..>. After the desired ones.
  template <class... G>
  constexpr PrepareStyle<typename In::template given<G...>, Out> input_layouts(G...) const {
    return {};
  }
  /// The module gets this rank's parts of its inputs, as Tensors. Their gradients lie as they do.
  constexpr PrepareStyle<typename In::local, Out> local_inputs() const { return {}; }

  /// Where the result is to be, or each value of a tuple.
  template <class... P>
  constexpr PrepareStyle<In, typename Out::template wanted<P...>> desired_output_layouts(
      P...) const {
    return {};
  }
  /// How a Tensor that the module returns lies. After the desired ones.
  template <class... G>
  constexpr PrepareStyle<In, typename Out::template given<G...>> output_layouts(G...) const {
    return {};
  }
  /// The result as a Tensor: this rank's part. Its gradient lies as it does.
  constexpr PrepareStyle<In, typename Out::local> local_output() const { return {}; }

  /// @collective none
  template <class M, class Al>
  auto operator()(const M& m, const Al& along) const {
    return with_layouts<typename In::layouts, typename Out::layouts>(m, along);
  }
};

}  // namespace detail

/// Brings the inputs of a module to placements on the style's axis, one per input; nn::None{}
/// leaves an input as it is.
template <class... P>
struct PrepareModuleInput : detail::PrepareStyle<detail::AnySide::wanted<P...>, detail::AnySide> {
  constexpr explicit PrepareModuleInput(P...) {}
};

/// Brings the result of a module to a placement on the style's axis, or each value of a tuple.
template <class... P>
struct PrepareModuleOutput : detail::PrepareStyle<detail::AnySide, detail::AnySide::wanted<P...>> {
  constexpr explicit PrepareModuleOutput(P...) {}
};

/// Both:
///
///     PrepareModuleInputOutput{}
///         .desired_input_layouts(Replicate{})
///         .desired_output_layouts(Shard<1>{})
struct PrepareModuleInputOutput : detail::PrepareStyle<detail::AnySide, detail::AnySide> {};

}  // namespace cleave
