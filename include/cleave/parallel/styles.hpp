// Parallel styles of layers: functions from a module and a mesh axis to a module whose parameters
// are sharded over the axis, and whose inputs and result are redistributed as they need.
//
//                                 parameters           forward              backward
//     ColwiseParallel             rows of W, all of b  -                    all-reduce of dx
//     RowwiseParallel             columns of W         all-reduce of y      -
//     RowwiseParallel{}.output_layouts(Shard<1>{})     reduce-scatter of y  all-gather of dy
//     SequenceParallel            Replicate            -                    all-reduce of dW, of db
//
// Any callable (module, along) -> module is a style.
#pragma once

#include <cleave/parallel/layouts.hpp>

namespace cleave::inline v0 {

namespace detail {

struct Colwise {
  using output = Shard<-1>;
  template <class M>
  using cut_of = typename nn::plain_t<M>::colwise;
};
struct Rowwise {
  using output = Replicate;
  template <class M>
  using cut_of = typename nn::plain_t<M>::rowwise;
};

/// Shards a layer according to its Cut.
///
/// @tparam Given  the layout of an input that is a Tensor, or None
/// @tparam Out    the placement of the result
/// @tparam Local  whether to return this rank's part of the result
template <class Way, class Given = nn::None, class Out = typename Way::output, bool Local = false>
struct CutStyle {
  template <class M>
  static constexpr bool fits = requires { typename Way::template cut_of<M>; };

  /// The layout of an input that is a Tensor: a placement, or on a mesh of several axes
  /// Placements<..>.
  template <class P>
  constexpr CutStyle<Way, P, Out, Local> input_layouts(P) const {
    return {};
  }
  /// The placement of the result.
  template <class P>
  constexpr CutStyle<Way, Given, P, Local> output_layouts(P) const {
    return {};
  }
  /// Returns this rank's part of the result, as a Tensor; its gradient has the result's placements.
  constexpr CutStyle<Way, Given, Out, true> local_output() const { return {}; }

  /// @collective every rank of the world
  template <class M, class Al>
  auto operator()(const M& m, const Al& along) const {
    if constexpr (fits<M>) {
      using Cut = typename Way::template cut_of<M>;
      using In = FirstLayout<typename Cut::input, Given>;
      return with_layouts<In, FirstLayout<Out, nn::None, Local>>(along.cut(m, Cut{}), along);
    } else {
      static_assert(fits<M>,
                    "cleave: a style does not fit this module, which does not declare how it is "
                    "sharded: `using colwise = nn::Cut<..>` or `rowwise` (as in Linear and "
                    "Embedding)");
      return m;
    }
  }
};

template <class M, class Al>
auto styled(const M& m, const Al&) {
  return m;
}
template <class M, class Al, class First, class... Rest>
auto styled(const M& m, const Al& along, const First& first, const Rest&... rest) {
  return styled(first(m, along), along, rest...);
}

}  // namespace detail

/// Each rank of the axis computes some columns of the result: shards the rows of a Linear's weight
/// and its bias, the columns of an Embedding's weight. The input is replicated; the result is
/// sharded in its last dimension, unless `output_layouts` says otherwise.
struct ColwiseParallel : detail::CutStyle<detail::Colwise> {};

/// Each rank of the axis computes a partial sum of the result: shards the columns of a Linear's
/// weight, the rows of an Embedding's. The input of a Linear is sharded in the last dimension, that
/// of an Embedding replicated. The result is reduced, with the bias added once: to Replicate by an
/// all-reduce, or to a Shard by a reduce-scatter.
struct RowwiseParallel : detail::CutStyle<detail::Rowwise> {};

/// Each rank of the axis computes a part of the sequence: for norms and dropout, with Replicate
/// parameters. The input is redistributed to a Shard of the sequence dimension, which the result
/// keeps.
///
/// @tparam Dim    the sequence dimension
/// @tparam Given  the layout of an input that is a Tensor, or None
/// @tparam Local  whether to return this rank's part of the result
template <int Dim = 1, class Given = nn::None, bool Local = false>
struct SequenceParallel {
  template <class P>
  constexpr SequenceParallel<Dim, P, Local> input_layouts(P) const {
    return {};
  }
  constexpr SequenceParallel<Dim, Given, true> local_output() const { return {}; }

  /// @collective every rank of the world
  template <class M, class Al>
  auto operator()(const M& m, const Al& along) const {
    using detail::FirstLayout;
    return detail::with_layouts<FirstLayout<Shard<Dim>, Given>,
                                FirstLayout<nn::None, nn::None, Local>>(along.rest(m), along);
  }
};
SequenceParallel() -> SequenceParallel<>;

/// Applies several styles to one module, one after the other.
template <class... S>
constexpr auto styles(S... style) {
  return
      [style...](const auto& m, const auto& along) { return detail::styled(m, along, style...); };
}

}  // namespace cleave::inline v0
