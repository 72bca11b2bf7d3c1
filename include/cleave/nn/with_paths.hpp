// Modules whose calls record their path in the network: traces then list communication by module,
// forward and backward.
//
//     const auto model = with_paths(requires_grad(parallelize_module(gpt, mesh, tp{}, ..)));
//     CommTrace trace(world);
//     backward(loss_of(model(x)));
//     print(trace.by_module());
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <cleave/comm/comm_scope.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/nn/visit.hpp>

namespace cleave::inline v0 {

namespace nn {

/// The module M, whose calls record its path.
template <class M>
struct WithPath : M {
  using wrapped = M;
  using plain = plain_t<M>;

  /// @param kept  of `detail::kept_path`
  WithPath(M m, const std::string* kept) : M(std::move(m)), kept_(kept) {
    if constexpr (requires(const M& inner) { inner.set_path(kept); }) M::set_path(kept);
  }
  template <class N>
  auto rewrap(N n) const {
    return WithPath<N>(std::move(n), kept_);
  }

  template <class... X>
  auto operator()(const X&... x) const {
    const cleave::detail::PlaceScope scope(kept_);
    return M::operator()(x...);
  }

 private:
  const std::string* kept_;
};

template <class M>
inline constexpr bool says_path = false;
template <class M>
inline constexpr bool says_path<WithPath<M>> = true;

namespace detail {

template <class M>
auto with_path(M m, const std::string& path);

/// The name of part k of a struct, or of element n of a vector or tuple.
template <class M>
std::string part_name(int k, int n) {
  if constexpr (Struct<M>) return MembersOf<M>::value.text[std::size_t(k)];
  else return std::to_string(n);
}

template <class M>
auto with_paths_inside(M m, const std::string& path) {
  if constexpr (Wrapper<M>) {
    auto inside = with_paths_inside(static_cast<const typename M::wrapped&>(m), path);
    return std::move(m).rewrap(std::move(inside));
  } else if constexpr (Inner<M>) {
    int n = 0;
    return map_parts(m, [&](const auto& part, auto k) {
      return with_path(part, join_path(path, part_name<M>(decltype(k)::value, n++)));
    });
  } else {
    return m;
  }
}

template <class M>
auto with_path(M m, const std::string& path) {
  static_assert(!says_path<M>, "cleave: with_paths was already applied to this module");
  if constexpr (Struct<M>) {
    auto inside = with_paths_inside(std::move(m), path);
    return WithPath<decltype(inside)>(std::move(inside), cleave::detail::kept_path(path));
  } else {
    return with_paths_inside(std::move(m), path);
  }
}

}  // namespace detail

}  // namespace nn

/// The module with calls that attribute communication to it and the modules inside, for
/// `CommTrace::by_module`. It computes the same and shares its parameters with `m`.
///
/// Call it last, on the result of `parallelize_module`, `fully_shard`, `replicate` and
/// `requires_grad`. The communication of parallel styles, all-gathers and gradients of a module is
/// attributed to the module, the reduction of a gradient to the innermost module in which the value
/// was used, and a gradient bucket to the replicated module.
///
/// @param m  the result of `replicate` must be moved
/// @collective none
template <nn::Struct M>
auto with_paths(M m) {
  return nn::detail::with_path(std::move(m), "");
}

}  // namespace cleave::inline v0
