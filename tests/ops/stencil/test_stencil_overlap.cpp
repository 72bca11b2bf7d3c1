// Stencils whose inner elements are computed while ghosts arrive: the bits of those that wait.
#include <cmath>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/stencil/apply.hpp>

#include "../naive_stencils.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;

namespace {

/// Makes a world's ranks hosts of their own, far from each other.
void separate_hosts(World& world) {
  MachineCosts& machine = world.communicator().state().machine;
  machine.between = {500, 1000};
  machine.ranks_per_node = 1;
}

template <class E>
std::vector<double> naive_nine(const Tensor<double, 2>& whole, const E& of) {
  const Indices shape{whole.extent(0), whole.extent(1)};
  return naive_results<double, double, 1>(Nine{}, shape, {elements_of(whole)}, beyond_all(of, 2),
                                          {0, 0}, shape);
}

/// Compares a stencil that overlaps, without and with margins.
template <class S, class E, class Mesh, class... P>
void check_overlapped(const S& stencil, const E& of, const Tensor<double, 2>& whole,
                      const std::vector<double>& expected, const Mesh& mesh, P... p) {
  const auto u = distribute_tensor(whole, mesh, p...);
  const auto v =
      full<double>({whole.extent(0), whole.extent(1)}, std::nan(""), mesh, p..., margin(3));
  v.to_local().copy_(u.to_local());
  CHECK(same_bits(apply(stencil, u, of).full_tensor(), expected));
  CHECK(same_bits(apply(stencil, v, of).full_tensor(), expected));
  CHECK(same_bits(apply(stencil, v, of).full_tensor(), expected));
}

}  // namespace

TEST_CASE("inner elements computed while ghosts arrive have the bits of naive loops") {
  const auto whole = numbered<double>({401, 650});
  const auto of = edges(dirichlet(by_position), neumann);
  const auto expected = naive_nine(whole, of);
  on_ranks({2}, [&](World& world) {
    separate_hosts(world);
    const auto mesh = init_device_mesh<tp>(world, {2});
    check_overlapped(Nine{}, of, whole, expected, mesh, Shard<0>{});
    check_overlapped(Nine{}, of, whole, expected, mesh, Shard<1>{});
  });
}

TEST_CASE("inner elements computed while ghosts arrive have the bits of one rank") {
  const auto whole = numbered<double>({500, 1100}), flat = numbered<double>({6, 100000});
  const auto of = edges(periodic);
  const auto other = edges(sides(mirror, zero), periodic);
  const auto nine = elements_of(apply(Nine{}, whole, of)),
             unequal = elements_of(apply(Unequal{}, flat, other));
  on_ranks({3, 4}, [&](World& world) {
    separate_hosts(world);
    const auto line = init_device_mesh<tp>(world, {world.size()});
    check_overlapped(Nine{}, of, whole, nine, line, Shard<0>{});
    check_overlapped(Unequal{}, other, flat, unequal, line, Shard<0>{});  // no inner elements
    if (world.size() != 4) return;
    check_overlapped(Nine{}, of, whole, nine, init_device_mesh<dp, tp>(world, {2, 2}), Shard<0>{},
                     Shard<1>{});
  });
}

TEST_CASE("stencils wait for ghosts on a node, and where there is little to compute") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto has_worker_after = [&](index_t rows) {
      apply(Heat{}, distribute_tensor(numbered<double>({rows, 100}), mesh, Shard<0>{}),
            edges(periodic));
      return world.communicator().state().worker != nullptr;
    };
    CHECK(!has_worker_after(5000));
    separate_hosts(world);
    CHECK(!has_worker_after(20));
    CHECK(has_worker_after(5000) == world.communicator().concurrent());
  });
}

}  // namespace stencil_tests
