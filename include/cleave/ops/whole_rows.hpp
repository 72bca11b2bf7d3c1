// Whether a rank has a dimension whole, so that one kernel can compute along it.
#pragma once

#include <type_traits>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/operand.hpp>

namespace cleave::detail {

/// Whether a rank of the host has dimension D whole; of a value that is traced nobody knows yet.
template <int D, class X>
constexpr bool has_whole() {
  if constexpr (is_tensor<X>) {
    return std::is_same_v<typename X::device_type, Host>;
  } else if constexpr (is_dtensor<X>) {
    for (int a = 0; a < X::layout.axes; ++a)
      if (X::layout[a].is_shard(D)) return false;
    return std::is_same_v<typename X::mesh_type::device_type, Host>;
  } else {
    return false;
  }
}

/// Whether a kernel for floats and doubles can compute its rows along dimension D.
template <int D, class X>
constexpr bool has_whole_rows() {
  return std::is_floating_point_v<typename X::value_type> && has_whole<D, X>();
}

}  // namespace cleave::detail
