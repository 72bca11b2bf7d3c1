// The parts of modules: parameters, buffers, modules, and None for an omitted part.
//
//     template <class Up = nn::Linear<>, class Down = nn::Linear<>>
//     struct Mlp {
//       Up up;
//       Down down;
//       static constexpr nn::names members{"up", "down"};
//       auto operator()(const auto& x) const { return down(relu(up(x))); }
//     };
//
// A module is a plain struct whose template parameters are the types of its parts, in the order of
// its data members, all of which `members` names. There are no other requirements.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/ops/engine/operand.hpp>

namespace cleave::inline v0::nn {

/// The names of all data members of a module, in order. The parts of a member with the name ""
/// are named as if they were the module's own.
template <std::size_t N>
struct names {
  std::array<const char*, N> text;

  template <class... S>
  constexpr names(const S*... s) : text{s...} {}
  static constexpr int size = int(N);
};
template <class... S>
names(const S*...) -> names<sizeof...(S)>;

/// The names of a module's members; specialise it for structs that cannot be changed:
///
///     template <class A> struct cleave::nn::MembersOf<Theirs<A>> {
///       static constexpr names value{"a"};
///     };
template <class M>
struct MembersOf {};
template <class M>
  requires requires { M::members.size; }
struct MembersOf<M> {
  static constexpr const auto& value = M::members;
};

/// State of a module that is saved and placed, but not trained.
template <class X>
struct Buffer {
  X value;
};
template <class X>
Buffer(X) -> Buffer<X>;

/// Replaces an omitted part, for example a bias.
struct None {};

/// An uninitialised parameter. @see lazy.hpp
template <class T, int Rank>
struct Lazy;

template <class X>
inline constexpr bool is_lazy = false;
template <class T, int Rank>
inline constexpr bool is_lazy<Lazy<T, Rank>> = true;
template <class X>
inline constexpr bool is_buffer = false;
template <class X>
inline constexpr bool is_buffer<Buffer<X>> = true;
template <class X>
inline constexpr bool is_vector = false;
template <class X>
inline constexpr bool is_vector<std::vector<X>> = true;
template <class X>
inline constexpr bool is_tuple = false;
template <class... X>
inline constexpr bool is_tuple<std::tuple<X...>> = true;

/// A parameter: a tensor on one device or on a mesh, tracked or not, or a Lazy.
template <class X>
concept Param = is_lazy<X> || AnyTensor<X>;

/// Derives from the module `wrapped` and replaces its call. The data members are those of `plain`,
/// the module inside all wrappers; `rewrap(m)` wraps another module.
template <class X>
concept Wrapper = requires {
  typename X::wrapped;
  typename X::plain;
};

/// A module with named members; structs without names are not modules and stay unchanged.
template <class X>
concept Struct = requires { MembersOf<X>::value.size; };

/// A vector or tuple of modules, named by their indices.
template <class X>
concept Group = is_vector<X> || is_tuple<X>;

/// A type with parts.
template <class X>
concept Inner = (Struct<X> && !Wrapper<X>) || Group<X>;

/// The types that template parameters of a module may be.
template <class X>
concept Part = Param<X> || is_buffer<X> || Struct<X> || Group<X> || std::is_same_v<X, None>;

/// The options of an optimizer.
template <class X>
inline constexpr bool has_learning_rate = requires(X& x) {
  { x.learning_rate } -> std::same_as<double&>;
};

template <class X>
struct Plain {
  using type = X;
};
template <Wrapper X>
struct Plain<X> {
  using type = typename X::plain;
};
/// A module without its wrappers.
template <class X>
using plain_t = typename Plain<X>::type;

}  // namespace cleave::inline v0::nn
