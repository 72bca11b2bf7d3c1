// Parallelization plans: which module gets which style, and the compile-time errors of plans that
// do not fit.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <cleave/nn/tree.hpp>
#include <cleave/parallel/module_axis.hpp>

namespace cleave::inline v0 {

/// A style for the modules at a path.
template <class P, class Style>
struct On {
  using path = P;
  using style_type = Style;
  Style style;
};
template <char... C, class Style>
On<nn::Path<C...>, Style> on(nn::Path<C...>, Style style) {
  return {std::move(style)};
}
template <class P, class Style>
auto on(const P&, Style style) {
  static_assert(sizeof(P*) == 0,
                "cleave: the path of a plan is a constant: on(\"blocks.*.up\"_path, style)");
  return On<nn::Path<>, Style>{std::move(style)};
}

template <class X>
inline constexpr bool is_plan_entry = false;
template <class P, class Style>
inline constexpr bool is_plan_entry<On<P, Style>> = true;

namespace detail {

/// Text as a template argument, which g++ and nvcc print in errors. Not part of any user's type.
template <int N>
struct ErrorText {
  char text[N]{};
};

/// The modules of a type by their paths: "up  activation  down".
template <class M>
constexpr auto module_paths() {
#if defined(__clang__)
  constexpr int size = 1;  // printed as numbers; see ShowModules
#else
  constexpr int size = nn::node_count<M> * 32;
#endif
  ErrorText<size> text;
  int at = 0;
  const auto put = [&](const char* s) {
    while (*s != '\0' && at < size - 1) text.text[at++] = *s++;
  };
  const auto put_path = [&](const auto& self, int n) -> void {
    const auto& node = nn::tree_of<M>[n];
    if (node.parent > 0) {
      self(self, node.parent);
      if (node.name[0] != '\0') put(".");
    }
    put(node.name);
  };
  for (int n = 1; n < nn::node_count<M>; ++n) {
    if (!nn::tree_of<M>[n].is_module) continue;
    if (at > 0) put("  ");
    put_path(put_path, n);
  }
  return text;
}

template <class PathOfThePlan, ErrorText Modules>
struct PathWithoutModule {
  static_assert(sizeof(PathOfThePlan*) == 0,
                "cleave: this path of the plan matches no module of the tree; elements of a "
                "std::vector are called *");
};
template <class PathOfThePlan, ErrorText Modules>
struct SecondPath {
  static_assert(sizeof(PathOfThePlan*) == 0, "cleave: two paths of the plan lead to this module");
};
template <class PathOfThePlan, class Style, ErrorText Modules>
struct StyleThatDoesNotFit {
  static_assert(
      sizeof(PathOfThePlan*) == 0,
      "cleave: the style at this path of the plan does not fit the module, which does not "
      "declare how it is sharded: `using colwise = nn::Cut<..>` or `rowwise` (as in Linear and "
      "Embedding)");
};
template <class PathOfThePlan, class Style, ErrorText Modules>
struct NotAStyle {
  static_assert(sizeof(PathOfThePlan*) == 0,
                "cleave: an entry of the plan is not a style: a style is called with a module and "
                "the mesh with its axis, (const auto& m, const auto& along) -> module, such as "
                "ColwiseParallel{}");
};
template <class PathOfThePlan, ErrorText Modules>
struct SecondStyle {
  static_assert(
      sizeof(PathOfThePlan*) == 0,
      "cleave: parallelize_module: the module at this path of the plan is distributed along "
      "this axis already");
};

#if defined(__clang__)
// clang 14 prints the arguments of a call that fails as text.
void the_modules_are_those_in_this_call();
constexpr bool modules(bool ok, const auto*...) {
  if (!ok) the_modules_are_those_in_this_call();
  return ok;
}
#endif
template <class M, class Sequence>
struct ShowModules;
template <class M, std::size_t... I>
struct ShowModules<M, std::index_sequence<I...>> {
#if defined(__clang__)
  static constexpr bool value = modules(
      false, (nn::tree_of<M>[int(I) + 1].is_module ? nn::tree_of<M>[int(I) + 1].name : "")...);
#else
  static constexpr bool value = true;
#endif
};
template <class M>
constexpr bool shows_modules() {
  return ShowModules<M, std::make_index_sequence<std::size_t(nn::node_count<M> - 1)>>::value;
}

struct CallOfAnyKind {
  void operator()() const {}
};
template <class S>
struct WithAnotherCall : S, CallOfAnyKind {};
/// Whether objects of a type can be called, with whatever arguments.
template <class S>
constexpr bool is_callable() {
  if constexpr (std::is_class_v<S> && !std::is_final_v<S>)
    return !requires { &WithAnotherCall<S>::operator(); };  // ambiguous if S has one
  else return std::is_class_v<S> || std::is_function_v<std::remove_pointer_t<S>>;
}

/// Whether a style can be applied to a module; true for styles that do not declare `fits`.
template <class Style, class M>
constexpr bool fits_style() {
  if constexpr (requires { Style::template fits<M>; }) return Style::template fits<M>;
  else return true;
}

/// Whether a module has a style along an axis already, or a parameter that is sharded over it.
template <class M, class A>
constexpr bool is_styled() {
  if constexpr (nn::Wrapper<M>) {
    if constexpr (requires { typename M::hook_type::axis; })
      if constexpr (std::is_same_v<typename M::hook_type::axis, A>) return true;
    return is_styled<typename M::wrapped, A>();
  } else {
    bool any = false;
    nn::detail::each_part_type<M>([&]<class P>(const char*, P*) {
      if constexpr (nn::Param<P>) any = any || is_sharded_over<P, A>();
    });
    return any;
  }
}

/// A checked plan for a module type: which entry applies to which module, and the first error.
template <class M, class A, class... E>
struct PlanFor {
  static constexpr auto choice = nn::choose(nn::tree_of<M>, {E::path::text...});

  struct Wrong {
    int misfit = -1;    ///< the entry whose style does not fit a module
    int styled = -1;    ///< the entry of a module that has a style already
    int no_style = -1;  ///< an entry that cannot be called
  };
  template <class Part>
  static constexpr void look_at(Wrong& found, int& node) {
    const int entry = choice.entry[std::size_t(node++)];
    if (entry >= 0) {
      constexpr std::array<bool, sizeof...(E) + 1> fits{
          fits_style<typename E::style_type, Part>()...};
      if (!fits[std::size_t(entry)] && found.misfit < 0) found.misfit = entry;
      if (is_styled<Part, A>() && found.styled < 0) found.styled = entry;
    }
    nn::detail::each_part_type<Part>([&]<class P>(const char*, P*) { look_at<P>(found, node); });
  }
  static constexpr Wrong wrong = [] {
    Wrong found;
    int node = 0, entry = 0;
    (((found.no_style = is_callable<typename E::style_type>() ? found.no_style : entry), ++entry),
     ...);
    look_at<M>(found, node);
    return found;
  }();
  static constexpr bool is_right = (choice.unmatched < 0) && (choice.twice < 0) &&
                                   (wrong.misfit < 0) && (wrong.styled < 0) && (wrong.no_style < 0);

  template <int Entry>
  using path = typename nth<Entry, E...>::path;

  /// Reports the error at compile time.
  static constexpr void explain() {
    constexpr auto names = module_paths<M>();
    if constexpr (choice.unmatched >= 0)
      static_cast<void>(PathWithoutModule<path<choice.unmatched>, names>{});
    else if constexpr (choice.twice >= 0)
      static_cast<void>(SecondPath<path<choice.twice>, names>{});
    else if constexpr (wrong.no_style >= 0)
      static_cast<void>(
          NotAStyle<path<wrong.no_style>, typename nth<wrong.no_style, E...>::style_type, names>{});
    else if constexpr (wrong.misfit >= 0)
      static_cast<void>(StyleThatDoesNotFit<path<wrong.misfit>,
                                            typename nth<wrong.misfit, E...>::style_type, names>{});
    else if constexpr (wrong.styled >= 0)
      static_cast<void>(SecondStyle<path<wrong.styled>, names>{});
    if constexpr (!is_right && wrong.styled < 0) static_cast<void>(shows_modules<M>());
  }
};

}  // namespace detail

}  // namespace cleave::inline v0
