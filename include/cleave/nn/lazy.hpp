// Parameters as recipes: a shape and how the elements are drawn. Each rank makes its own part when
// the parameter is placed, so nobody holds the whole model and nothing is sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <cleave/dtensor/random.hpp>
#include <cleave/nn/part.hpp>

namespace cleave::nn {

/// How the elements of a parameter are made.
struct Initializer {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double a = 0, b = 0;  ///< value; low and high; mean and deviation
};
/// All elements equal.
constexpr Initializer constant(double value) { return {Initializer::Kind::constant, value, 0}; }
/// Uniform in [low, high).
constexpr Initializer uniform(double low, double high) {
  return {Initializer::Kind::uniform, low, high};
}
/// Normal.
constexpr Initializer normal(double mean, double deviation) {
  return {Initializer::Kind::normal, mean, deviation};
}

/// A parameter of `Rank` dimensions that nobody has made yet.
template <class T = float, int Rank = 2>
struct Lazy {
  static_assert(Rank > 0, "cleave: a lazy parameter must have at least one dimension");
  static_assert(!std::is_integral_v<T>, "cleave: parameters must have real or complex elements");
  static constexpr int dims = Rank;
  using value_type = T;

  std::array<index_t, std::size_t(Rank)> extents;
  Initializer initializer{};
  std::optional<RandomState> draw{};  ///< where the elements are drawn; or the next place

  const std::array<index_t, std::size_t(Rank)>& shape() const { return extents; }
};

namespace detail {

/// Calls make(extents, f) with the distribution that draws the elements, or make(extents) where
/// they are all equal.
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

/// While it lives, a random state stands somewhere else, if it is said where.
class DrawsFrom {
 public:
  DrawsFrom(RandomState& state, const std::optional<RandomState>& there)
      : state_(state), before_(state), moved_(there.has_value()) {
    if (there) state = *there;
  }
  DrawsFrom(const DrawsFrom&) = delete;  // one scope
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

/// The parameter on one device. A draw takes the next place of the state, as it does on a mesh.
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

/// This rank's part of the parameter: the same elements on any mesh, under any placements.
///
/// @collective every rank of the world, so that their random states stay equal
template <class T, int Rank, class Device, Axis... A, class... P>
auto make(const Lazy<T, Rank>& recipe, const DeviceMesh<Device, A...>& mesh, P... placements) {
  const detail::DrawsFrom draws(mesh.state().world()->state().random, recipe.draw);
  return detail::make_lazy(recipe, [&](const auto& extents, const auto&... f) {
    if constexpr (sizeof...(f) > 0)
      return cleave::detail::fill_drawn("make", f..., empty<T>(extents, mesh, placements...));
    else return full<T>(extents, T(recipe.initializer.a), mesh, placements...);
  });
}

namespace detail {

/// A parameter that a module computes with.
template <class X>
constexpr const X& made(const X& parameter) {
  static_assert(!is_lazy<X>,
                "cleave: the module that is called has uninitialised parameters; initialise them "
                "with place(module, mesh), or with make(module, state) on one device");
  return parameter;
}

}  // namespace detail

}  // namespace cleave::nn
