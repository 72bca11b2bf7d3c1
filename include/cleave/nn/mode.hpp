// Training and evaluation mode: the member `bool training` of modules.
#pragma once

#include <cleave/nn/visit.hpp>

namespace cleave::inline v0::nn {

namespace detail {

template <class M>
void set_training(M& m, bool training) {
  if constexpr (requires { m.training = training; }) m.training = training;
  each_part(m, [&](auto& part, const auto&) { set_training(part, training); });
}

}  // namespace detail

/// Sets the member `training` of the module and all modules inside, where they have it.
template <class M>
void train(M& m, bool training = true) {
  detail::set_training(m, training);
}
template <class M>
void eval(M& m) {
  detail::set_training(m, false);
}

}  // namespace cleave::inline v0::nn
