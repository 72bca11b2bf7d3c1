// The tree of a module type as a value, and paths that select modules in it: computed by loops at
// compile time.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <cleave/nn/fields.hpp>
#include <cleave/nn/part.hpp>

namespace cleave::inline v0::nn {

/// A part in the tree of a module type.
struct Node {
  const char* name = "";  ///< "*" for the elements of a vector, which have one type
  int parent = -1;
  int end = 0;  ///< one past the last descendant
  bool is_parameter = false;
  bool is_module = false;
};

/// All parts of a module type, parents first, in the order of the members.
template <int N>
struct Tree {
  std::array<Node, std::size_t(N)> node{};

  constexpr const Node& operator[](int n) const { return node[std::size_t(n)]; }
};

namespace detail {

inline constexpr const char* digits[] = {
    "0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10", "11", "12", "13", "14", "15",
    "16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31"};

/// Calls f(name, null pointer to the part's type) for each part of a module type.
template <class M, class F>
constexpr void each_part_type(const F& f) {
  using X = plain_t<M>;
  if constexpr (is_vector<X>) {
    f("*", static_cast<typename X::value_type*>(nullptr));
  } else if constexpr (is_tuple<X>) {
    static_assert(std::tuple_size_v<X> <= std::size(digits),
                  "cleave: a tuple of modules has at most 32 elements");
    [&]<class... P>(const std::tuple<P...>*) {
      std::size_t i = 0;
      (f(digits[i++], static_cast<P*>(nullptr)), ...);
    }(static_cast<X*>(nullptr));
  } else if constexpr (Struct<X>) {
    [&]<class... P>(Types<P...>) {
      std::size_t i = 0;
      (f(MembersOf<X>::value.text[i++], static_cast<P*>(nullptr)), ...);
    }(fields_t<X>{});
  }
}

template <class M>
constexpr int count_nodes() {
  int count = 1;
  each_part_type<M>([&]<class P>(const char*, P*) { count += count_nodes<P>(); });
  return count;
}

template <class M, int N>
constexpr void add_nodes(Tree<N>& tree, int& size, const char* name, int parent) {
  const int me = size++;
  tree.node[std::size_t(me)] = {name, parent, 0, Param<M>, Struct<M> || Group<M>};
  each_part_type<M>([&]<class P>(const char* part, P*) { add_nodes<P>(tree, size, part, me); });
  tree.node[std::size_t(me)].end = size;
}

template <class M>
constexpr auto make_tree() {
  Tree<count_nodes<M>()> tree;
  int size = 0;
  add_nodes<M>(tree, size, "", -1);
  return tree;
}

}  // namespace detail

template <class M>
inline constexpr int node_count = detail::count_nodes<M>();
template <class M>
inline constexpr Tree<node_count<M>> tree_of = detail::make_tree<M>();

/// Whether `is(std::type_identity<P>{})` is true for a module type, a module that it wraps, or a
/// part.
template <class M, class Is>
constexpr bool contains(const Is& is) {
  if (is(std::type_identity<M>{})) return true;
  if constexpr (Wrapper<M>) {
    return contains<typename M::wrapped>(is);
  } else {
    bool any = false;
    detail::each_part_type<M>([&]<class P>(const char*, P*) { any = any || contains<P>(is); });
    return any;
  }
}

/// The node of the k-th part of a node.
template <int N>
constexpr int child(const Tree<N>& tree, int node, int k) {
  int at = node + 1;
  while (k-- > 0) at = tree[at].end;
  return at;
}

/// Whether a name matches a pattern, in which * matches any text and ? any character.
constexpr bool fits_pattern(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*')
    return fits_pattern(pattern.substr(1), name) ||
           (!name.empty() && fits_pattern(pattern, name.substr(1)));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         fits_pattern(pattern.substr(1), name.substr(1));
}

/// Whether a dotted path of patterns leads to a node; the empty path leads to the root.
template <int N>
constexpr bool leads_to(std::string_view path, const Tree<N>& tree, int node) {
  if (path.empty()) return node == 0;
  if (tree[node].name[0] == '\0') return false;  // its parts are named as its parent's
  for (;;) {
    const auto dot = path.rfind('.');
    const auto last = dot == path.npos ? path : path.substr(dot + 1);
    if (!fits_pattern(last, tree[node].name)) return false;
    do node = tree[node].parent;
    while (node > 0 && tree[node].name[0] == '\0');
    if (dot == path.npos) return node == 0;
    if (node == 0) return false;
    path = path.substr(0, dot);
  }
}

/// For each module, the path that leads to it.
template <int N>
struct Choice {
  std::array<int, std::size_t(N)> entry{};  ///< the index of a path, or -1
  int unmatched = -1;                       ///< the first path that leads to no module
  int twice = -1;                           ///< a path to a module to which another path leads
};
template <int N>
constexpr Choice<N> choose(const Tree<N>& tree, std::initializer_list<const char*> paths) {
  Choice<N> choice;
  choice.entry.fill(-1);
  int number = 0;
  for (const char* const path : paths) {
    bool is_found = false;
    for (int n = 0; n < N; ++n) {
      if (!tree[n].is_module || !leads_to(path, tree, n)) continue;
      int& entry = choice.entry[std::size_t(n)];
      if (entry >= 0) choice.twice = number;
      entry = number;
      is_found = true;
    }
    if (!is_found && choice.unmatched < 0) choice.unmatched = number;
    ++number;
  }
  return choice;
}

/// Whether a path leads to a node or below it.
template <int N>
constexpr bool is_touched(const Choice<N>& choice, const Tree<N>& tree, int node) {
  for (int n = node; n < tree[node].end; ++n)
    if (choice.entry[std::size_t(n)] >= 0) return true;
  return false;
}

/// A path as a type.
template <char... C>
struct Path {
  static constexpr char text[] = {C..., '\0'};
};

namespace detail {

template <std::size_t N>
struct PathText {
  char text[N]{};
  consteval PathText(const char (&path)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = path[i];
  }
};

template <PathText P, std::size_t... I>
constexpr Path<P.text[I]...> path_of(std::index_sequence<I...>) {
  return {};
}

}  // namespace detail

}  // namespace cleave::inline v0::nn

namespace cleave::inline v0 {

/// `"layers.*.up"_path`: selects modules by dotted names; * matches a name or a part of one.
template <nn::detail::PathText P>
constexpr auto operator""_path() {
  return nn::detail::path_of<P>(std::make_index_sequence<sizeof(P.text) - 1>{});
}

}  // namespace cleave::inline v0
