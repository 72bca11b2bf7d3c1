// Transforms of several fields on several nodes: a half of the fields is exchanged while the other
// half is transformed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/ops/engine/start_exchange.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/run_transfers.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::detail {

/// The dimensions that a layout shards.
constexpr unsigned sharded_dims(const Layout& layout) {
  unsigned mask = 0;
  for (int a = 0; a < layout.axes; ++a)
    if (layout[a].shards()) mask |= 1u << layout[a].dim;
  return mask;
}

/// A dimension that an exchange may be split along: every rank has it whole, and it is not
/// transformed; -1: none.
constexpr int batch_dim(const Layout& from, const Layout& to, int dims, unsigned transformed) {
  const unsigned others = transformed | sharded_dims(from) | sharded_dims(to);
  for (int d = 0; d < dims; ++d)
    if (!(others >> d & 1u)) return d;
  return -1;
}

/// Whether a mesh spans nodes, and half of a rank's elements are so many that a second message per
/// pair of ranks and a second thread cost little. The same on all ranks.
inline bool pays_in_halves(const MeshState& mesh, const Shape& shape, int batch,
                           std::size_t element_size) {
  constexpr index_t least_bytes = 1 << 20;
  if (!mesh.is_member() || shape[batch] < 2) return false;
  const index_t elements = shape.product() / mesh.extents().product();
  if (elements * index_t(element_size) < 2 * least_bytes) return false;
  const std::vector<int> nodes = mesh.group().nodes();
  return std::adjacent_find(nodes.begin(), nodes.end(), [](int a, int b) { return a != b; }) !=
         nodes.end();
}

/// Transforms dimension Before (none if negative) of x, exchanges it to the placements To, and
/// transforms dimension After, in two halves along dimension Batch.
///
/// @tparam IsOwn  whether x may be overwritten
/// @collective    every rank of the mesh
template <int Before, int After, int Batch, bool IsOwn, class To, class X, class Transform>
auto exchange_in_halves(const X& x, const Transform& transform) {
  using namespace redistribution;
  using T = typename X::value_type;
  using Local = typename X::local_type;
  using Result = DTensor<T, X::dims, typename X::mesh_type, To>;
  const MeshState& mesh = x.mesh().state();
  const auto after = transform.template lines<After>();
  const Context all{mesh, Shape(x.shape()), after.name};
  const Local from = Before < 0 || IsOwn ? x.to_local() : Local(x.to_local().shape());
  const Local to(to_array<X::dims>(own_extents({Result::layout}, all)));
  const auto half = [&](const Local& tensor, int h) {
    Box box = Box::of(tensor.view().extents);
    const index_t middle = x.shape()[std::size_t(Batch)] / 2;
    (h == 0 ? box.end : box.begin)[Batch] = middle;
    return tensor.view()[box];
  };
  const Step step = exchange_step(X::layout, Result::layout, X::dims);
  std::array<std::optional<Async<bool>>, 2> arrival;
  for (int h = 0; h < 2; ++h) {
    const View source = half(from, h);
    if constexpr (Before >= 0)
      transform.template lines<Before>().kernel(
          kernels::On<Host>{}, cleave::Task{}, kernels::elements_of<T>(source),
          kernels::elements_of<const T>(half(x.to_local(), h)));
    Context context = all;
    context.shape[Batch] = source.extents[Batch];
    Call call{CollectiveKind::exchange, {}, step.axes, context.shape.product(), source};
    call.result = {to.storage(), half(to, h)};
    call.transfers = mesh.cache<TransferCache>().transfers(step, context.shape, mesh);
    arrival[std::size_t(h)].emplace(start_exchange<Host>(std::move(call), context));
  }
  for (int h = 0; h < 2; ++h) {
    arrival[std::size_t(h)]->wait();
    const View part = half(to, h);
    after.kernel(kernels::On<Host>{}, cleave::Task{}, kernels::elements_of<T>(part),
                 kernels::elements_of<const T>(part));
  }
  return Result::unchecked(to, x.mesh(), x.shape());
}

}  // namespace cleave::inline v0::detail
