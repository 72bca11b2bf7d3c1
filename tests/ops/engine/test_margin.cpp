// Tensors with margins: ghosts are received in place, and other operations take such tensors.
#include <cmath>
#include <cstdio>
#include <limits>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/tensor/npy.hpp>

#include "../naive_stencils.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// The same array with a margin, which is filled with numbers that must not be read.
template <class Mesh, int Rank, class... P>
auto with_margin(const Tensor<double, Rank>& whole, const Margin& width, const Mesh& mesh, P... p) {
  index_t extents[Rank];
  for (int d = 0; d < Rank; ++d) extents[d] = whole.extent(d);
  auto u = empty<double>(extents, mesh, p..., width);
  if (const auto* margin = detail::margin_around(u.to_local().storage(), u.to_local().view())) {
    index_t n = 1;
    for (int d = 0; d < Rank; ++d) n *= u.to_local().extent(d) + 2 * margin->width[d];
    Tensor<double, 1, TestDevice>::adopt(static_cast<double*>(margin->memory.get()), {n})
        .fill_(std::numeric_limits<double>::quiet_NaN());
  }
  u.to_local().copy_(distribute_tensor(whole, mesh, p...).to_local());
  return u;
}

template <class S, class E, class Mesh, int Rank, class... P>
void check_with_margin(const S& stencil, const E& of, const Tensor<double, Rank>& whole,
                       const Mesh& mesh, P... p) {
  const auto expected = elements_of(apply(stencil, whole, of));
  for (const int width : {0, 1, 3}) {
    const auto u = with_margin(whole, margin(width), mesh, p...);
    for (int again = 0; again < 2; ++again)
      CHECK(same_bits(apply(stencil, u, of).full_tensor(), expected));
    CHECK(same_bits(u.full_tensor(), elements_of(whole)));
  }
}

template <class E>
void check_margins_on(World& world, const E& of) {
  const auto line = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
  for (const auto& whole : {numbered<double>({13, 10}), numbered<double>({5, 9})}) {
    check_with_margin(Heat{}, of, whole, line, Shard<0>{});
    check_with_margin(Nine{}, of, whole, line, Shard<1>{});
    check_with_margin(Unequal{}, of, whole, line, Shard<0>{});
    check_with_margin(Nine{}, of, whole, line, Replicate{});
    if (world.size() % 2 != 0) continue;
    const auto grid = init_device_mesh<dp, tp>(world, {2, world.size() / 2}, TestDevice{});
    check_with_margin(Nine{}, of, whole, grid, Shard<0>{}, Shard<1>{});
    check_with_margin(Unequal{}, of, whole, grid, Shard<1>{}, Shard<1>{});
  }
}

}  // namespace

TEST_CASE("a margin of any width does not change the bits of a stencil") {
  on_ranks({1, 2, 3, 4, 6}, [](World& world) {
    check_margins_on(world, edges(periodic));
    check_margins_on(world, edges(dirichlet(by_position), neumann));
    check_margins_on(world, edges(sides(mirror, zero), periodic));
    check_margins_on(world, edges(sides(none, neumann), periodic));
    check_margins_on(world, edges(none));
  });
}

TEST_CASE("ghosts are received in the margin, beside elements that stay where they are") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto whole = numbered<double>({3 * world.size(), 5});
    const auto u = with_margin(whole, margin(2, 1), mesh, Shard<0>{});
    const double* const own = u.to_local().data();
    CHECK(u.to_local().strides()[0] == 7);
    const CommTrace trace(world);
    const auto v = apply(Heat{}, u, edges(periodic, dirichlet(7)));
    CHECK(trace.received_bytes() == 2 * 5 * 8);
    CHECK(u.to_local().data() == own);
    const std::vector<double> memory = elements_of(
        Tensor<double, 1, TestDevice>::adopt(const_cast<double*>(own) - 2 * 7 - 1, {7 * 7}));
    const auto beside = [&](index_t i) { return memory[std::size_t(2 * 7 + 1 + i)]; };
    const index_t above = (3 * world.rank() + 3 * world.size() - 1) % (3 * world.size());
    CHECK(beside(-7 + 2) == whole(above, 2));
    CHECK(beside(3 * 7 + 4) == whole((3 * world.rank() + 3) % (3 * world.size()), 4));
    CHECK(beside(-1) == 7);
    CHECK(beside(2 * 7 + 5) == 7);
    CHECK(std::isnan(beside(-14)));  // the margin is wider than what is read
    apply(out(u), Twice{}, u);       // the element alone: in place
    CHECK(u.to_local().data() == own);
    CHECK(elements_of(u.to_local())[0] == 2 * whole(3 * world.rank(), 0));
  });
}

TEST_CASE("other operations take tensors with margins") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto whole = numbered<double>({6, 4});
    const auto x = distribute_tensor(whole, mesh, Shard<0>{});
    const auto u = with_margin(whole, margin(2), mesh, Shard<0>{});
    const auto same = [](const auto& a, const auto& b) {
      return same_bits(a.full_tensor(), elements_of(b.full_tensor()));
    };
    CHECK(same(u + x, x + x));
    CHECK(same(sum(u), sum(x)));
    CHECK(same(sum(u, dim<0>{}), sum(x, dim<0>{})));
    CHECK(same(matmul(u, transpose(x)), matmul(x, transpose(x))));
    CHECK(same(matmul(transpose(u), u), matmul(transpose(x), x)));
    CHECK(same(flatten(u), flatten(x)));
    CHECK(same(u.redistribute(Shard<1>{}), x));
    CHECK(same(with_margin(whole, margin(1), mesh, Shard<0>{}).redistribute(Replicate{}), x));
    const auto& local = u.to_local();
    const auto copy = local.clone();
    CHECK(copy.contiguous());
    CHECK(same_bits(copy, elements_of(x.to_local())));
    if (!local.empty())
      CHECK(contains(error_of([&] { local.reshape(std::array<index_t, 1>{local.size()}); }),
                     "reshape: the tensor is not contiguous; clone it first"));
    const std::string file = "margin_" + std::to_string(world.rank()) + ".npy";
    save_npy(file, local.to(Host{}));
    CHECK(same_bits(load_npy<double, 2>(file), elements_of(x.to_local())));
    std::remove(file.c_str());
    const unsigned before = changes_in(TestDevice{}, local.storage());
    local.fill_(3);
    CHECK(changes_in(TestDevice{}, local.storage()) == before + (local.empty() ? 0u : 1u));
    CHECK(same(u, full<double>({6, 4}, 3.0, mesh, Shard<0>{})));
  });
}

TEST_CASE("widths of margins are checked") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    CHECK(contains(error_of([&] { zeros<double>({4, 4}, mesh, Shard<0>{}, margin(1, 2, 3)); }),
                   "margin: requires one width for all dimensions, or one per dimension, not [1, "
                   "2, 3]"));
    CHECK(contains(error_of([&] { zeros<double>({4, 4}, mesh, Shard<0>{}, margin(-1)); }),
                   "margin: requires one width for all dimensions, or one per dimension, not "
                   "[-1]"));
    CHECK(ones<double>({4, 4}, mesh, Shard<0>{}, margin(0, 3)).to_local().strides()[0] == 10);
  });
}

}  // namespace stencil_tests
