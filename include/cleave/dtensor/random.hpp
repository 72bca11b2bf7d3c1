// Random arrays: rand, randn, randint, bernoulli. Every rank draws its own part, nothing is
// communicated, and the elements are the same on any mesh, under any placements, on one device.
//
// The bits of an element depend on the seed, on how many draws came before and on its global index
// alone (core/philox.hpp). They are computed on the host and copied where a mesh is of a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <cleave/comm/communicator.hpp>
#include <cleave/core/checksum.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/philox.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/kernels/distributions.hpp>
#include <cleave/kernels/host/random_elements.hpp>

namespace cleave {

/// Sets the seed of this rank's draws and starts counting them anew. All ranks set the same one.
///
/// @param owner  a World, a mesh, or anything else with a `communicator()`
/// @collective   none, but draws on a mesh need equal states on its ranks
template <class Owner>
void manual_seed(const Owner& owner, std::uint64_t seed) {
  owner.communicator().state().random = {seed, 0};
}

/// Where this rank's next draw stands: to be saved with a program's state.
template <class Owner>
RandomState random_state(const Owner& owner) {
  return owner.communicator().state().random;
}
template <class Owner>
void set_random_state(const Owner& owner, const RandomState& state) {
  owner.communicator().state().random = state;
}

namespace detail {

/// The state of a draw on a mesh; the next one stands behind it.
///
/// @collective with CLEAVE_CHECK=collective every rank of the mesh, which compare their states
/// @throws Error if they differ
inline RandomState take_draw(const MeshState& mesh, const char* operation) {
  RankState& rank = mesh.world()->state();
  const RandomState state = rank.random;
  ++rank.random.offset;
  if (rank.check == CheckLevel::collective && mesh.is_member() && mesh.size() > 1) {
    Collective call;
    call.kind = CollectiveKind::barrier;
    call.operation = operation;
    call.detail = std::uint64_t(15) << 60 |
                  (checksum(std::array{state.seed, state.offset}) & ~(std::uint64_t(15) << 60));
    mesh.group().host().run(call);
  }
  return state;
}

template <class T, class F, std::size_t Rank, class Mesh, class... P>
auto draw(const char* operation, const F& f, const index_t (&extents)[Rank], const Mesh& mesh,
          P... placements) {
  auto result = make_empty<T>(extents, mesh, placements...);
  const RandomState state = take_draw(mesh.state(), operation);
  if (!mesh.is_member()) return result;
  using X = decltype(result);
  const Box box = result.local_box();
  if constexpr (std::is_same_v<typename X::device_type, Host>) {
    kernels::random_elements(f, state, box, Shape(result.shape()), result.local().data());
    return result;
  } else {
    const Tensor<T, int(Rank)> local(to_array<int(Rank)>(box.extents()));
    kernels::random_elements(f, state, box, Shape(result.shape()), local.data());
    return X::unchecked(local.to(typename X::device_type{}), mesh, result.shape());
  }
}

/// The same for a tensor of one device, whose state is the caller's.
template <class T, class F, std::size_t Rank>
Tensor<T, int(Rank)> draw(const F& f, const index_t (&extents)[Rank], RandomState& state) {
  std::array<index_t, Rank> shape{};
  for (std::size_t d = 0; d < Rank; ++d) shape[d] = extents[d];
  const Tensor<T, int(Rank)> result(shape);
  kernels::random_elements(f, state, Box::of(Shape(shape)), Shape(shape), result.data());
  ++state.offset;
  return result;
}

template <class T>
kernels::WholeNumbers<T> whole_numbers(std::int64_t low, std::int64_t high) {
  static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>,
                "cleave: randint requires an integer element type");
  if (high <= low)
    throw Error("randint", "there is no number in [" + std::to_string(low) + ", " +
                               std::to_string(high) + ")");
  return {low, std::uint64_t(high) - std::uint64_t(low)};
}

inline kernels::Bernoulli bernoulli_of(double probability) {
  if (!(probability >= 0 && probability <= 1))
    throw Error("bernoulli", "the probability is " + std::to_string(probability) +
                                 "; it must be in [0, 1]");
  return {probability};
}

template <class T>
constexpr kernels::Uniform<T> unit_uniform() {
  static_assert(!std::is_integral_v<T>, "cleave: rand requires a floating-point element type");
  if constexpr (is_complex<T>) return {T(0, 0), T(1, 1)};
  else return {T(0), T(1)};
}

template <class T>
constexpr kernels::Normal<T> unit_normal() {
  static_assert(!std::is_integral_v<T>, "cleave: randn requires a floating-point element type");
  return {accumulator_t<T>(0), accumulator_t<T>(1)};
}

}  // namespace detail

/// Uniform numbers in [0, 1): `rand<float>({64, 256}, mesh, Shard<0>{}, Replicate{})`.
///
/// @collective every rank of the world calls it, so that their states stay equal; nothing is
///             communicated, except that CLEAVE_CHECK=collective compares the states
/// @throws Error if an extent is negative
template <Element T, std::size_t Rank, class Mesh, class... P>
auto rand(const index_t (&extents)[Rank], const Mesh& mesh, P... placements) {
  return detail::draw<T>("rand", detail::unit_uniform<T>(), extents, mesh, placements...);
}

/// Normal numbers of mean 0 and variance 1, likewise.
template <Element T, std::size_t Rank, class Mesh, class... P>
auto randn(const index_t (&extents)[Rank], const Mesh& mesh, P... placements) {
  return detail::draw<T>("randn", detail::unit_normal<T>(), extents, mesh, placements...);
}

/// Whole numbers in [low, high), likewise. @throws Error if there is none
template <Element T, std::size_t Rank, class Mesh, class... P>
auto randint(std::int64_t low, std::int64_t high, const index_t (&extents)[Rank], const Mesh& mesh,
             P... placements) {
  return detail::draw<T>("randint", detail::whole_numbers<T>(low, high), extents, mesh,
                         placements...);
}

/// True with that probability, likewise. @throws Error if it is not in [0, 1]
template <std::size_t Rank, class Mesh, class... P>
auto bernoulli(double probability, const index_t (&extents)[Rank], const Mesh& mesh,
               P... placements) {
  return detail::draw<bool>("bernoulli", detail::bernoulli_of(probability), extents, mesh,
                            placements...);
}

/// The same on one device: with a state that starts as a mesh's, the same numbers.
template <Element T, std::size_t Rank>
auto rand(const index_t (&extents)[Rank], RandomState& state) {
  return detail::draw<T>(detail::unit_uniform<T>(), extents, state);
}
template <Element T, std::size_t Rank>
auto randn(const index_t (&extents)[Rank], RandomState& state) {
  return detail::draw<T>(detail::unit_normal<T>(), extents, state);
}
template <Element T, std::size_t Rank>
auto randint(std::int64_t low, std::int64_t high, const index_t (&extents)[Rank],
             RandomState& state) {
  return detail::draw<T>(detail::whole_numbers<T>(low, high), extents, state);
}
template <std::size_t Rank>
auto bernoulli(double probability, const index_t (&extents)[Rank], RandomState& state) {
  return detail::draw<bool>(detail::bernoulli_of(probability), extents, state);
}

}  // namespace cleave
