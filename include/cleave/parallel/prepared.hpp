// A module with a hook that transforms the inputs before each call and the result after it.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include <cleave/nn/part.hpp>

namespace cleave::inline v0 {

/// The module M, called with the tuple of inputs that `hook.inputs(x..)` returns; the result is
/// `hook.output(y)`.
template <class M, class Hook>
struct Prepared : M {
  using wrapped = M;
  using plain = nn::plain_t<M>;
  using hook_type = Hook;

  Prepared(M m, Hook hook) : M(std::move(m)), hook_(std::move(hook)) {}
  template <class N>
  auto rewrap(N m) const {
    return Prepared<N, Hook>(std::move(m), hook_);
  }

  template <class... X>
  auto operator()(const X&... x) const {
    return call(hook_.inputs(x...));
  }

 private:
  template <class... X>
  auto call(const std::tuple<X...>& inputs) const {
    return call(inputs, std::index_sequence_for<X...>{});
  }
  template <class Inputs, std::size_t... I>
  auto call(const Inputs& inputs, std::index_sequence<I...>) const {
    return hook_.output(M::operator()(std::get<I>(inputs)...));
  }

  Hook hook_;
};

}  // namespace cleave::inline v0
