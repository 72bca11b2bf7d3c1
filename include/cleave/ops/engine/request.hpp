// Requests to an operation, as the first template arguments of a call:
//
//     matmul(x, w)                                                  the solver decides
//     matmul<Placements<Shard<0>, Replicate>>(x, w)                 these placements of the result
//     matmul<explicit_communication>(x, w)                          no operand is redistributed
//     matmul<explicit_communication, Placements<..>>(x, w)          both
#pragma once

#include <type_traits>

#include <cleave/placement/placement.hpp>

namespace cleave::inline v0 {

/// Requests that no operand is redistributed: a call that requires it is a compile error, which
/// shows the operand and its placements before and after. Slicing replicated operands, which needs
/// no communication, is allowed.
struct explicit_communication {};

namespace detail {

/// Stands for placements that are not requested.
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

/// Requests the placements of another value, with its partials resolved. Used by gradients and
/// `resolve`, which are written for values of unknown placements.
template <class X>
struct RequestLike {
  static constexpr bool is_explicit = false;
  const X& like;
};

/// Requests placements with blocks or cut points that are chosen at run time.
template <class... P>
struct RequestActual {
  static constexpr bool is_explicit = false;
  using asked = Placements<P...>;
  Layout actual;
};

/// Whether a request specifies placements.
template <class Request>
inline constexpr bool asks_placements = true;
template <class... R>
inline constexpr bool asks_placements<Request<R...>> =
    !std::is_same_v<typename Request<R...>::asked, Unasked>;

}  // namespace detail

}  // namespace cleave::inline v0
