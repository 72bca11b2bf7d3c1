// Functional collectives inside of traced functions: nodes that redistribute a value along one axis
// of the mesh, and say from which placement.
//
//     const auto sums = functional::all_reduce(matmul(x, w), Sum{}, spmd::mesh_axis(1));
//
// A traced value is a global array, so that a collective does not change its elements, only where
// they are: all_reduce takes a Partial of the axis and gives a Replicate, and so on. If the operand
// is placed otherwise, the expansion fails with a fault of that node. Passes merge and move these
// nodes like any redistribution.
#pragma once

#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/functional/arguments.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/traced.hpp>

namespace cleave::inline v0 {

namespace spmd {

/// An axis of the mesh that a program will run on, which is not known while it is traced.
struct MeshAxis {
  int number;  ///< counted from 0
};

/// @throws Error if the number is negative or at least 8; a compile error in constant expressions
constexpr MeshAxis mesh_axis(int number) {
  if (number < 0 || number >= max_axes)
    throw Error("spmd::mesh_axis", "a mesh has axes 0 to 7, not " + std::to_string(number));
  return {number};
}

namespace detail {

template <class T, int Rank, class Device>
constexpr Traced<T, Rank, Device> append_collective(const char* name,
                                                    const Traced<T, Rank, Device>& x,
                                                    MeshAxis along, Placement taken,
                                                    Placement given) {
  using X = Traced<T, Rank, Device>;
  using Info = cleave::detail::InfoOf<ops::Redistribute, Device, cleave::detail::types_of<X>, Rank>;
  Graph& graph = x.graph();
  Node node;
  node.op = &Info::value;
  node.name = name;
  node.is_placement = true;
  node.operand[0] = x.value();
  node.axis = along.number;
  node.taken = taken;
  node.given = given;
  node.first = graph.add({int(graph.nodes.size()), 0, -1, dtype_of<T>(), Shape(x.shape()), false});
  graph.nodes.push_back(node);
  if (graph.placer != nullptr) graph.placer->place_last(graph);
  return {graph, node.first};
}

/// A shard of a dimension, which may be counted from the end.
template <class T, int Rank, class Device>
constexpr Placement shard_of(const char* name, const Traced<T, Rank, Device>& x, int dim) {
  const int d = dim < 0 ? dim + Rank : dim;
  if (d < 0 || d >= Rank)
    throw Error(
        name,
        "dimension " + std::to_string(dim) + " of " + std::to_string(Rank) + " does not exist",
        {.shapes = to_string(x.shape())});
  return Placement::shard(d);
}

}  // namespace detail

}  // namespace spmd

namespace functional {

namespace detail {
template <class T, int Rank, class Device>
struct Argument<Traced<T, Rank, Device>> {
  using type = Traced<T, Rank, Device>;
  static const type& of(const type& x) {
    static_assert(sizeof(T) == 0,
                  "cleave: a traced value is communicated along an axis of the mesh that the "
                  "program will run on: functional::all_reduce(x, Sum{}, spmd::mesh_axis(0))");
    return x;
  }
};
}  // namespace detail

/// Partial(op) on an axis becomes Replicate.
/// @throws Error if the trace of x has ended
template <class T, int Rank, class Device, ReductionType Op>
constexpr Traced<T, Rank, Device> all_reduce(const Traced<T, Rank, Device>& x, Op,
                                             spmd::MeshAxis along) {
  return spmd::detail::append_collective("functional::all_reduce", x, along,
                                         Placement::partial(Op::value), Placement::replicate());
}

/// Shard(dim) on an axis becomes Replicate.
/// @throws Error if the trace of x has ended, or x has no such dimension
template <class T, int Rank, class Device>
constexpr Traced<T, Rank, Device> all_gather(const Traced<T, Rank, Device>& x, int dim,
                                             spmd::MeshAxis along) {
  constexpr const char* name = "functional::all_gather";
  return spmd::detail::append_collective(name, x, along, spmd::detail::shard_of(name, x, dim),
                                         Placement::replicate());
}

/// Partial(op) on an axis becomes Shard(dim). Shards may differ by the chunk rule.
/// @throws Error if the trace of x has ended, or x has no such dimension
template <class T, int Rank, class Device, ReductionType Op>
constexpr Traced<T, Rank, Device> reduce_scatter(const Traced<T, Rank, Device>& x, Op, int dim,
                                                 spmd::MeshAxis along) {
  constexpr const char* name = "functional::reduce_scatter";
  return spmd::detail::append_collective(name, x, along, Placement::partial(Op::value),
                                         spmd::detail::shard_of(name, x, dim));
}

/// Shard(concat) on an axis becomes Shard(split).
/// @throws Error if the trace of x has ended, or x lacks a dimension
template <class T, int Rank, class Device>
constexpr Traced<T, Rank, Device> all_to_all(const Traced<T, Rank, Device>& x, int split,
                                             int concat, spmd::MeshAxis along) {
  constexpr const char* name = "functional::all_to_all";
  return spmd::detail::append_collective(name, x, along, spmd::detail::shard_of(name, x, concat),
                                         spmd::detail::shard_of(name, x, split));
}

}  // namespace functional

}  // namespace cleave::inline v0
