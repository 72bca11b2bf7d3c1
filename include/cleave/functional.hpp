// Collectives of plain local tensors as functions: they do not modify their arguments, and return
// asynchronous results.
//
//     auto sum = functional::all_reduce(gradient, Sum{}, world);   // returns at once
//     auto all = functional::all_gather(rows, 0, {mesh, tp{}});    // along an axis of a mesh
//     use(*sum, *all);                                             // waits
//
// Results wait at first use, by `wait`, or when dropped. Groups: see `functional::Group`.
//
// An argument is not modified, and must not change before the result has been waited for. Every
// rank of the group makes its asynchronous calls in the same order.
#pragma once

#include <cleave/async/async.hpp>
#include <cleave/functional/all_to_all.hpp>
#include <cleave/functional/broadcast.hpp>
#include <cleave/functional/functional_ranks.hpp>
#include <cleave/functional/reduce_gather.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::functional {

/// Waits for the result of a collective. @throws what the collective threw
template <class T>
const T& wait(const Async<T>& result) {
  return result.wait();
}
template <class T>
T wait(Async<T>&& result) {
  return std::move(result).wait();
}

/// Returns a tensor that needs no waiting: for generic code.
template <class T, int Rank, class Device>
const Tensor<T, Rank, Device>& wait(const Tensor<T, Rank, Device>& tensor) {
  return tensor;
}

}  // namespace cleave::inline v0::functional
