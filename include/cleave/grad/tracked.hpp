// Tracked<X>: a value that records how it was computed, so that gradients can be computed. X is a
// Tensor, a DTensor, a Traced, or itself a Tracked.
//
// Programs without gradients pay nothing: tracking is part of the type, and only the headers of
// grad/ know it. The values that a record saves are determined at compile time by tracing the
// gradient of its operation: values whose elements no gradient reads are kept without elements.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <cleave/grad/call_record.hpp>
#include <cleave/grad/value.hpp>
#include <cleave/ops/engine/call_op.hpp>

namespace cleave::inline v0 {

namespace tape {

/// The mesh of a value, or void.
template <class X>
struct MeshIn {
  using type = void;
};
template <class T, int Rank, class Mesh, class P>
struct MeshIn<DTensor<T, Rank, Mesh, P>> {
  using type = Mesh;
};
template <class X>
struct MeshIn<Tracked<X>> : MeshIn<X> {};

/// The first of the types that is not void.
template <class... M>
struct FirstMesh {
  using type = void;
};
template <class M, class... Rest>
struct FirstMesh<M, Rest...> {
  using type = M;
};
template <class... Rest>
struct FirstMesh<void, Rest...> : FirstMesh<Rest...> {};

/// Whether all operands that have a mesh have the same one.
template <class... X>
constexpr bool on_one_mesh() {
  using Mesh = typename FirstMesh<typename MeshIn<X>::type...>::type;
  return ((std::is_void_v<typename MeshIn<X>::type> ||
           std::is_same_v<typename MeshIn<X>::type, Mesh>) &&
          ...);
}

/// Records a value that was computed from x by other means than `op`, with the gradient of `op`.
template <class Op, class Y, class X>
Tracked<Y> record(const Op& op, const Y& y, const Tracked<X>& x) {
  return Tracked<Y>(y, new Record<Op, Y, Tracked<X>>(op, y, x));
}

}  // namespace tape

namespace detail {

/// Calls the operation on the values and records the call. A result without gradient is a constant.
template <>
struct CallPath<3> {
  template <class Request, class Op, class... X>
  static constexpr auto call(const Request& request, const Op& op, const X&... x) {
    if constexpr (!tape::on_one_mesh<X...>()) {
      static_assert(tape::on_one_mesh<X...>(),
                    "cleave: the operands of an operation are on meshes of different types");
      // without a result type, compilers do not report follow-up errors in uses of the result
      return op.operands_on_different_meshes;
    } else {
      return recorded(request, op, plain(x)...);
    }
  }

 private:
  template <class A>
  static constexpr const A& plain(const A& a) {
    return a;
  }
  template <class T>
  static constexpr T plain(const Number<T>& a) {
    return a.value;
  }

  template <class Request, class Op, class... X>
  static constexpr auto recorded(const Request& request, const Op& op, const X&... x) {
    using Y = decltype(call_as(request, op, tape::value_of(x)...));
    if constexpr (has_gradient_for<Op, Y, X...>(std::index_sequence_for<X...>{})) {
      const Y y = call_as(request, op, tape::value_of(x)...);
      auto* const record = new tape::Record<Op, Y, X...>(op, y, x...);
      if constexpr (tape::is_tuple<Y>) return tape::tracked_results(record, y);
      else return Tracked<Y>(y, record);
    } else if constexpr (is_composite<Op> && is_continuous<Y>()) {
      return call_body(request, op, x...);
    } else {
      return call_as(request, op, tape::value_of(x)...);
    }
  }

  /// Whether a result can have a gradient: integers and booleans have none.
  template <class Y>
  static constexpr bool is_continuous() {
    if constexpr (AnyTensor<Y>) return !std::is_integral_v<typename Y::value_type>;
    else return true;
  }
  template <class Op, class Y, class... X, std::size_t... I>
  static constexpr bool has_gradient_for(std::index_sequence<I...>) {
    if constexpr (!AnyTensor<Y> && !tape::is_tuple<Y>) return false;
    else
      return ((tape::is_tracked<X> && tape::has_gradient<int(I), Op, Y, tape::untracked_t<X>...>) ||
              ...);
  }
};

}  // namespace detail

}  // namespace cleave::inline v0
