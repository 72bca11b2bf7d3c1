// Small values that the ranks of a group exchange on the host.
//
// All functions are collective over the group. `operation` is what the user called, for errors.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/pieces.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::inline v0::detail {

inline void run_observed(Communicator& group, const Collective& call) { group.run(call); }

/// Communication for the library's own purposes: not requested by the user, not shown in traces.
struct Unobserved : Communicator {
  static void run(Communicator& group, const Collective& call) { pass_on(group, {&call, 1}); }
};

/// The values of all ranks, in rank order.
template <class T>
  requires std::is_trivially_copyable_v<T>
std::vector<T> gather_values(Communicator& group, const T& mine, const char* operation,
                             void (*run)(Communicator&, const Collective&) = run_observed) {
  constexpr auto each = index_t(sizeof(T));
  const index_t ranks = group.size();
  std::vector<T> all(std::size_t(ranks), mine);  // on a dry mesh, all ranks have this value
  const std::vector<Box> pieces = flat_pieces(ranks * each, ranks);
  run(group, Collective::all_gather(
                 ConstView::dense(&mine, DType::uint8, Shape::filled(1, each)),
                 View::dense(all.data(), DType::uint8, Shape::filled(1, ranks * each)), pieces)
                 .named(operation));
  return all;
}

/// The reduction of the ranks' numbers, on all ranks.
template <class T>
T reduce_values(Communicator& group, ReduceOp op, const T& mine, const char* operation) {
  T result = mine;
  group.run(Collective::all_reduce(op, ConstView::dense(&mine, dtype_of<T>(), Shape::filled(1, 1)),
                                   View::dense(&result, dtype_of<T>(), Shape::filled(1, 1)))
                .named(operation));
  return result;
}

template <class T>
View bytes_of(T& value) {
  return View::dense(&value, DType::uint8, Shape::filled(1, index_t(sizeof value)));
}

/// The call that overwrites `values` with those of the root.
inline Collective broadcast_call(const View& values, const char* operation, int root = 0) {
  return Collective::broadcast(values, values, root).named(operation);
}

/// The shape of the root.
inline Shape broadcast_shape(Communicator& group, Shape shape, const char* operation,
                             int root = 0) {
  const Shape extents = Shape::filled(1, max_dims);
  group.run(
      broadcast_call(View::dense(shape.values.data(), DType::int64, extents), operation, root));
  return shape;
}

}  // namespace cleave::inline v0::detail
