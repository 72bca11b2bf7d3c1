// Styles of layers: functions from a module and an axis of a mesh to the module whose parameters
// are sharded along it, and whose inputs and result are brought to where they have to be.
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

namespace cleave {

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

/// A layer that is cut as it says of itself.
///
/// @tparam Given  how a Tensor as input lies, None if there is none
/// @tparam Out    the placement of the result
/// @tparam Local  whether the result is this rank's part of it
template <class Way, class Given = nn::None, class Out = typename Way::output, bool Local = false>
struct CutStyle {
  template <class M>
  static constexpr bool fits = requires {
    typename Way::template cut_of<M>;
  };

  /// How a Tensor as input lies: a placement, or on a mesh of several axes Placements<..>.
  template <class P>
  constexpr CutStyle<Way, P, Out, Local> input_layouts(P) const {
    return {};
  }
  /// Where the result is to be.
  template <class P>
  constexpr CutStyle<Way, Given, P, Local> output_layouts(P) const {
    return {};
  }
  /// The result as a Tensor: this rank's part. Its gradient lies as it does.
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
                    "cleave: a style does not fit this module, which does not say how it is cut: "
                    "`using colwise = nn::Cut<..>`, or rowwise (Linear and Embedding do)");
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

/// Columns of the result over the ranks of the axis: rows of a Linear's weight and its bias,
/// columns of an Embedding's weight. The input is needed on every rank; the result is sharded in
/// its last dimension, unless another layout is asked for.
struct ColwiseParallel : detail::CutStyle<detail::Colwise> {};

/// Addends of the result over the ranks of the axis: columns of a Linear's weight, rows of an
/// Embedding's. A Linear needs its input sharded in the last dimension, an Embedding on every rank.
/// The result is summed, a bias added once: Replicate by an all-reduce, or a Shard by a
/// reduce-scatter.
struct RowwiseParallel : detail::CutStyle<detail::Rowwise> {};

/// A part of the sequence on each rank of the axis: for norms and dropout, whose parameters are
/// Replicate. What comes in is sharded along the sequence if it is not yet; what comes out stays
/// so.
///
/// @tparam Dim    the dimension of the sequence
/// @tparam Given  how a Tensor as input lies, None if there is none
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
SequenceParallel()->SequenceParallel<>;

/// Several styles of one module, one after the other.
template <class... S>
constexpr auto styles(S... style) {
  return
      [style...](const auto& m, const auto& along) { return detail::styled(m, along, style...); };
}

}  // namespace cleave
