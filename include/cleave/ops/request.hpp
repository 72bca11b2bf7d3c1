// What a call of an operation may ask for, in its first template arguments:
//
//     matmul(x, w)                                                  the solver decides
//     matmul<Placements<Shard<0>, Replicate>>(x, w)                 these placements of the result
//     matmul<explicit_communication>(x, w)                          operands as they are
//     matmul<explicit_communication, Placements<..>>(x, w)          both
#pragma once

#include <type_traits>

#include <cleave/placement/placement.hpp>

namespace cleave {

/// Asks that no operand be redistributed: a call that would have to is a compile error that shows
/// which operand, from which placements and to which. Slices of replicated operands, which move
/// nothing, are allowed.
struct explicit_communication {};

namespace detail {

/// Stands for placements that nobody asked for.
struct Unasked {};

template <class Found, class... R>
struct AskedPlacements {
  using type = Found;
};
template <class Found, class First, class... Rest>
struct AskedPlacements<Found, First, Rest...> : AskedPlacements<Found, Rest...> {};
template <class... P, class... Rest>
struct AskedPlacements<Unasked, Placements<P...>, Rest...>
    : AskedPlacements<Placements<P...>, Rest...> {};

/// The template arguments of a call.
template <class... R>
struct Request {
  static constexpr bool is_explicit = (std::is_same_v<R, explicit_communication> || ...);
  static constexpr int placements = (0 + ... + int(is_placements<R>));
  static_assert(((std::is_same_v<R, explicit_communication> || is_placements<R>) && ...) &&
                    placements <= 1,
                "cleave: an operation can be asked for Placements<..> of its result, once, and "
                "for explicit_communication");
  using asked = typename AskedPlacements<Unasked, R...>::type;
};

/// Asks for the placements of another value, its partials resolved: what gradients and `resolve`
/// ask for, which are written for values whose placements they do not know.
template <class X>
struct RequestLike {
  static constexpr bool is_explicit = false;
  const X& like;
};

/// Whether a request names placements.
template <class Request>
inline constexpr bool asks_placements = true;
template <class... R>
inline constexpr bool asks_placements<Request<R...>> =
    !std::is_same_v<typename Request<R...>::asked, Unasked>;

}  // namespace detail

}  // namespace cleave
