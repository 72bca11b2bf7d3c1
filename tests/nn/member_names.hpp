// Whether the names of a module are those of its data members, in order, read from the compiler's
// text for an address. The compiler checks that they are complete when it decomposes modules into
// as many members as there are names.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>

#include <cleave/nn/fields.hpp>

namespace cleave::testing {

template <class M>
struct Somewhere {
  M module;
  Somewhere();
};
template <class M>
extern const Somewhere<M> somewhere;

struct Addresses {
  template <class... X>
  constexpr auto operator()(const X&... x) const {
    return std::tuple{&x...};
  }
};

template <auto Address>
constexpr std::string_view text_of() {
  return __PRETTY_FUNCTION__;
}

/// The part after the last "::" of "[with auto Address = (&
/// somewhere<M>.Somewhere<M>::module.M::up); ..".
constexpr std::string_view member_in(std::string_view text) {
  const std::string_view address = text.substr(0, text.find(");"));
  return address.substr(address.rfind(':') + 1);
}

template <class M>
constexpr bool names_are_those_of_members() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return ((member_in(text_of<std::get<I>(nn::with_fields(somewhere<M>.module, Addresses{}))>()) ==
             nn::MembersOf<M>::value.text[I]) &&
            ...);
  }(std::make_index_sequence<std::size_t(nn::MembersOf<M>::value.size)>{});
}

}  // namespace cleave::testing
