// Access to the data members of a module, and the module type with other member types.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/nn/part.hpp>
#include <cleave/ops/engine/operation.hpp>

namespace cleave::inline v0::nn {

inline constexpr int max_members = 16;

/// Calls f with all data members of a module.
template <class M, class F>
constexpr decltype(auto) with_fields(M& m, const F& f) {
  constexpr int n = MembersOf<std::remove_const_t<M>>::value.size;
  static_assert(n <= max_members, "cleave: a module has at most 16 data members");
  // clang-format off
  if constexpr (n == 0) { return f(); }
  else if constexpr (n == 1) { auto& [a] = m; return f(a); }
  else if constexpr (n == 2) { auto& [a, b] = m; return f(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = m; return f(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = m; return f(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = m; return f(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, g] = m; return f(a, b, c, d, e, g); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, g, h] = m; return f(a, b, c, d, e, g, h); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, g, h, i] = m; return f(a, b, c, d, e, g, h, i); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, g, h, i, j] = m; return f(a, b, c, d, e, g, h, i, j); }
  else if constexpr (n == 10) { auto& [a, b, c, d, e, g, h, i, j, k] = m; return f(a, b, c, d, e, g, h, i, j, k); }
  else if constexpr (n == 11) { auto& [a, b, c, d, e, g, h, i, j, k, l] = m; return f(a, b, c, d, e, g, h, i, j, k, l); }
  else if constexpr (n == 12) { auto& [a, b, c, d, e, g, h, i, j, k, l, o] = m; return f(a, b, c, d, e, g, h, i, j, k, l, o); }
  else if constexpr (n == 13) { auto& [a, b, c, d, e, g, h, i, j, k, l, o, p] = m; return f(a, b, c, d, e, g, h, i, j, k, l, o, p); }
  else if constexpr (n == 14) { auto& [a, b, c, d, e, g, h, i, j, k, l, o, p, q] = m; return f(a, b, c, d, e, g, h, i, j, k, l, o, p, q); }
  else if constexpr (n == 15) { auto& [a, b, c, d, e, g, h, i, j, k, l, o, p, q, r] = m; return f(a, b, c, d, e, g, h, i, j, k, l, o, p, q, r); }
  else if constexpr (n == 16) { auto& [a, b, c, d, e, g, h, i, j, k, l, o, p, q, r, s] = m; return f(a, b, c, d, e, g, h, i, j, k, l, o, p, q, r, s); }
  // clang-format on
}

namespace detail {

struct TypesOfFields {
  template <class... X>
  constexpr auto operator()(X&...) const {
    return Types<std::remove_const_t<X>...>{};
  }
};

/// For every template argument, in order, the index of the member that has its type, or -1.
template <class... A, class... X>
constexpr auto match_arguments(Types<A...>, Types<X...>) {
  std::array<int, sizeof...(A) + 1> at{};
  at.fill(-1);
  int from = 0, a = 0;
  const auto match = [&]<class Argument>(const Argument*) {
    int x = 0, found = -1;
    constexpr bool may_change = Part<Argument> || has_learning_rate<Argument>;
    const auto look_at = [&](bool fits) {
      if (found < 0 && x >= from && fits) found = x;
      ++x;
    };
    (look_at(may_change && std::is_same_v<Argument, X>), ...);
    if (found >= 0) from = (at[std::size_t(a)] = found) + 1;
    ++a;
  };
  (match(static_cast<const A*>(nullptr)), ...);
  return at;
}

}  // namespace detail

/// The types of a module's data members.
template <class M>
using fields_t = decltype(with_fields(std::declval<M&>(), detail::TypesOfFields{}));

/// M<..> with other member types: template arguments that are types of parts change with their
/// members, others stay. Specialise it for modules whose arguments are not the member types.
template <class M, class New>
struct Rebind {
  static_assert(
      sizeof(M*) == 0,
      "cleave: the type of a part of this module has to change, but the module is not a "
      "template <class..> of the types of its parts; give it a template parameter per part");
};
template <template <class...> class M, class... A, class... New>
struct Rebind<M<A...>, Types<New...>> {
 private:
  static constexpr auto at = detail::match_arguments(Types<A...>{}, fields_t<M<A...>>{});
  template <class Argument, int At>
  using pick = std::tuple_element_t<std::size_t(At + 1), std::tuple<Argument, New...>>;
  template <class Sequence>
  struct Join;
  template <std::size_t... I>
  struct Join<std::index_sequence<I...>> {
    using type = M<pick<A, at[I]>...>;
  };

 public:
  using type = typename Join<std::make_index_sequence<sizeof...(A)>>::type;
  static_assert(std::is_same_v<fields_t<type>, Types<New...>>,
                "cleave: the type of a part of this module has to change, but is not a template "
                "parameter of the module; template parameters are the types of the parts, in the "
                "order of the members");
};

}  // namespace cleave::inline v0::nn
