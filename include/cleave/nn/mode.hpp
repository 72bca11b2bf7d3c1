// Training and evaluation: a member `bool training` of any module inside.
#pragma once

#include <cleave/nn/visit.hpp>

namespace cleave::nn {

namespace detail {

template <class M>
void set_training(M& m, bool training) {
  if constexpr (requires { m.training = training; }) m.training = training;
  each_part(m, [&](auto& part, const auto&) { set_training(part, training); });
}

}  // namespace detail

/// Sets `training` of the module and of all below it that have such a member.
template <class M>
void train(M& m, bool training = true) {
  detail::set_training(m, training);
}
template <class M>
void eval(M& m) {
  detail::set_training(m, false);
}

}  // namespace cleave::nn
