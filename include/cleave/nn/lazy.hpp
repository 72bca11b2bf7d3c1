// Lazy parameters: a shape and an initialiser. Each rank initialises its own part when the
// parameter is placed, so that no rank holds the whole model, and without communication.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <cleave/dtensor/random.hpp>
#include <cleave/nn/part.hpp>

namespace cleave::inline v0::nn {

/// How the elements of a parameter are initialised.
struct Initializer {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double a = 0, b = 0;  ///< by kind: value; low and high; mean and standard deviation
};
/// All elements equal.
constexpr Initializer constant(double value) { return {Initializer::Kind::constant, value, 0}; }
/// Uniform in [low, high).
constexpr Initializer uniform(double low, double high) {
  return {Initializer::Kind::uniform, low, high};
}
/// Normally distributed.
constexpr Initializer normal(double mean, double deviation) {
  return {Initializer::Kind::normal, mean, deviation};
}

/// An uninitialised parameter of `Rank` dimensions.
template <class T = float, int Rank = 2>
struct Lazy {
  static_assert(Rank > 0, "cleave: a lazy parameter must have at least one dimension");
  static_assert(!std::is_integral_v<T>, "cleave: parameters must have real or complex elements");
  static constexpr int dims = Rank;
  using value_type = T;

  std::array<index_t, std::size_t(Rank)> extents;
  Initializer initializer{};
  std::optional<RandomState> draw{};  ///< the state to draw elements with; if empty, the next draw

  const std::array<index_t, std::size_t(Rank)>& shape() const { return extents; }
};

namespace detail {

/// Calls make(extents, f) with the distribution of the elements, or make(extents) if they are all
/// equal.
template <class T, int Rank, class Make>
auto make_lazy(const Lazy<T, Rank>& recipe, const Make& make) {
  index_t extents[std::size_t(Rank)];
  for (std::size_t d = 0; d < std::size_t(Rank); ++d) extents[d] = recipe.extents[d];
  const Initializer& by = recipe.initializer;
  if (by.kind == Initializer::Kind::uniform)
    return make(extents, kernels::Uniform<T>{T(by.a), T(by.b)});
  if (by.kind == Initializer::Kind::normal)
    return make(extents, kernels::Normal<T>{accumulator_t<T>(by.a), accumulator_t<T>(by.b)});
  return make(extents);
}

/// A scope in which a random state is replaced by another one, if one is given.
class DrawsFrom {
 public:
  DrawsFrom(RandomState& state, const std::optional<RandomState>& there)
      : state_(state), before_(state), moved_(there.has_value()) {
    if (there) state = *there;
  }
  DrawsFrom(const DrawsFrom&) = delete;  // a scope guard
  DrawsFrom& operator=(const DrawsFrom&) = delete;
  ~DrawsFrom() {
    if (moved_) state_ = before_;
  }

 private:
  RandomState& state_;
  RandomState before_;
  bool moved_;
};

}  // namespace detail

/// Initialises the parameter on one device. Random elements take one draw of the state, as on a
/// mesh.
template <class T, int Rank>
Tensor<T, Rank> make(const Lazy<T, Rank>& recipe, RandomState& state) {
  RandomState own = recipe.draw.value_or(state);
  RandomState& from = recipe.draw ? own : state;
  return detail::make_lazy(recipe, [&](const auto&, const auto&... f) {
    const Tensor<T, Rank> result(recipe.extents);
    if constexpr (sizeof...(f) > 0) cleave::detail::fill_drawn("make", f..., result, from);
    else result.fill_(T(recipe.initializer.a));
    return result;
  });
}

/// Initialises this rank's part of the parameter: the same elements on any mesh, under any
/// placements.
///
/// @collective every rank of the world, so that their random states stay equal
template <class T, int Rank, class Device, Axis... A, class... P>
auto make(const Lazy<T, Rank>& recipe, const DeviceMesh<Device, A...>& mesh, P... placements) {
  const detail::DrawsFrom draws(cleave::detail::RankDraws::of(mesh.state().world()->state()).state,
                                recipe.draw);
  return detail::make_lazy(recipe, [&](const auto& extents, const auto&... f) {
    if constexpr (sizeof...(f) > 0)
      return cleave::detail::fill_drawn("make", f..., empty<T>(extents, mesh, placements...));
    else return full<T>(extents, T(recipe.initializer.a), mesh, placements...);
  });
}

namespace detail {

/// The parameter itself; a compile-time error if it is not initialised.
template <class X>
constexpr const X& made(const X& parameter) {
  static_assert(!is_lazy<X>,
                "cleave: the module that is called has uninitialised parameters; initialise them "
                "with place(module, mesh), or with make(module, state) on one device");
  return parameter;
}

}  // namespace detail

}  // namespace cleave::inline v0::nn
