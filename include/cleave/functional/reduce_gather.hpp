// all_reduce, all_gather and reduce_scatter of local tensors, one by one or several in one round.
//
// Tensors are communicated in place, for any strides and dimension; small ones of a coalesced call
// share one packed collective per element type. Every result has its own storage, row-major.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/core/call_site.hpp>
#include <cleave/functional/arguments.hpp>
#include <cleave/functional/functional_ranks.hpp>
#include <cleave/functional/operands.hpp>
#include <cleave/functional/reduction_names.hpp>
#include <cleave/functional/run_functional.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::functional {

namespace detail {

/// Starts the collective asynchronously.
template <class List>
Async<List> start(const Call<List>& call, CollectiveKind kind, ReduceOp op, const List& inputs,
                  const Dims& dims) {
  std::size_t count = 0;
  for_each_tensor(inputs, [&](const auto&) { ++count; });
  std::vector<Operand> operands;
  List results = inputs;
  for_each_tensor(results, [&](auto& tensor) {
    Operand operand{.source = tensor.view()};
    auto extents = tensor.shape();
    if (kind != CollectiveKind::all_reduce) {
      operand.dim = call.dim(dims.of(operands.size(), count, call), Shape(extents));
      index_t& extent = extents[std::size_t(operand.dim)];
      operand.detail = packed_detail({&operand.dim, 1});
      if (kind == CollectiveKind::all_gather) extent = call.of_all(Shape(extents), operand.dim);
      else extent = call.piece_extent(Shape(extents), operand.dim);
    }
    tensor = std::remove_cvref_t<decltype(tensor)>(extents);
    operand.result = tensor.view();
    operands.push_back(operand);
  });
  return call.start([kind, op, inputs, results = std::move(results),
                     operands = std::move(operands)](const Channel& channel) mutable {
    run_operands<DeviceOf<List>>(channel, kind, op, operands);
    return std::move(results);
  });
}

/// The same for reductions.
template <class List, class Op>
Async<List> start_reduction(const Call<List>& call, CollectiveKind kind, const Op& op,
                            const Dims& dims = 0) {
  const ReduceOp value = value_of(op, call.operation());
  List inputs = call.input;
  for_each_tensor(inputs, [&]<class T, int Rank, class Device>(
                              [[maybe_unused]] Tensor<T, Rank, Device>& tensor) {
    require_reduction<T, Op>(value, call.operation());
    if constexpr (is_premul_sum<Op>) tensor = times(tensor, op.factor);
  });
  return start(call, kind, value, inputs, dims);
}

}  // namespace detail

/// Reduces the elements of all ranks; the result is the same on every rank.
///
/// @param op  `Sum{}`, `ReduceOp::sum`, "sum": the reduction, by type, value or name; or
///            `premul_sum(factor)`
/// @collective every rank of the group, with the same extents
/// @cost       receives 2(n-1)/n of x; allocates the result
/// @throws Error for an invalid group, an unknown reduction, or one that T does not support
template <class X, class Op>
Async<detail::tensor_t<X>> all_reduce(const X& x, const Op& op, const Group& group,
                                      CallSite where = CallSite::here()) {
  const detail::Call call("functional::all_reduce", x, group, where);
  return detail::start_reduction(call, CollectiveKind::all_reduce, op);
}

/// The tensors of all ranks, concatenated along dimension `dim` in the order of the ranks.
///
/// @param x    [.., e, ..]
/// @return     [.., n e, ..], the same on every rank
/// @collective every rank of the group, with the same extents
/// @cost       receives (n-1)/n of the result, in place; allocates the result
/// @throws Error for an invalid group, a dimension that x lacks, or a result that is too large
template <class X>
Async<detail::tensor_t<X>> all_gather(const X& x, int dim, const Group& group,
                                      CallSite where = CallSite::here()) {
  static_assert(detail::tensor_t<X>::dims > 0, "cleave: a scalar has no dimension to gather along");
  const detail::Call call("functional::all_gather", x, group, where);
  return detail::start(call, CollectiveKind::all_gather, ReduceOp::sum, call.input, dim);
}

/// Reduces the elements of all ranks; rank r keeps piece r of dimension `dim`.
///
/// @param x    [.., e, ..] with e a multiple of n
/// @return     [.., e/n, ..]
/// @collective every rank of the group, with the same extents
/// @cost       receives (n-1)/n of x; allocates the result
/// @throws Error for an invalid group, a dimension that x lacks or that n does not divide, an
/// unknown reduction, or one that T does not support
template <class X, class Op>
Async<detail::tensor_t<X>> reduce_scatter(const X& x, const Op& op, int dim, const Group& group,
                                          CallSite where = CallSite::here()) {
  static_assert(detail::tensor_t<X>::dims > 0,
                "cleave: a scalar has no dimension to scatter along");
  const detail::Call call("functional::reduce_scatter", x, group, where);
  return detail::start_reduction(call, CollectiveKind::reduce_scatter, op, dim);
}

/// `all_reduce` of several tensors in one round.
///
/// @param tensors  a tuple of tensors of any types and dimensions, or a vector of tensors
/// @return         results in the same form
/// @cost           that of the single calls, with one synchronisation; tensors with up to 64 KiB of
///                 input and of result are packed into one buffer per element type, and unpacked
///                 from it
template <TensorList List, class Op>
Async<Tensors<List>> all_reduce_coalesced(const List& tensors, const Op& op, const Group& group,
                                          CallSite where = CallSite::here()) {
  const detail::Call call("functional::all_reduce_coalesced", tensors, group, where);
  return detail::start_reduction(call, CollectiveKind::all_reduce, op);
}

/// `all_gather` of several tensors in one round. @see all_reduce_coalesced
///
/// @param dims  the dimension of all tensors, or a list of one for each
template <TensorList List>
Async<Tensors<List>> all_gather_coalesced(const List& tensors, const Dims& dims, const Group& group,
                                          CallSite where = CallSite::here()) {
  const detail::Call call("functional::all_gather_coalesced", tensors, group, where);
  return detail::start(call, CollectiveKind::all_gather, ReduceOp::sum, call.input, dims);
}

/// `reduce_scatter` of several tensors in one round. @see all_reduce_coalesced
///
/// @param dims  the dimension of all tensors, or a list of one for each
template <TensorList List, class Op>
Async<Tensors<List>> reduce_scatter_coalesced(const List& tensors, const Op& op, const Dims& dims,
                                              const Group& group,
                                              CallSite where = CallSite::here()) {
  const detail::Call call("functional::reduce_scatter_coalesced", tensors, group, where);
  return detail::start_reduction(call, CollectiveKind::reduce_scatter, op, dims);
}

}  // namespace cleave::inline v0::functional
