// exchange_halo_async: ghosts that arrive while the rank computes, on the host and on GPUs.
#include <cmath>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/stencil/exchange_halo_async.hpp>

#include "../naive_stencils.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

template <class Mesh, class... P>
auto in_margin_of_two(const Tensor<double, 2>& whole, const Mesh& mesh, P... p) {
  auto u = full<double>({whole.extent(0), whole.extent(1)}, std::nan(""), mesh, p..., margin(2));
  u.to_local().copy_(distribute_tensor(whole, mesh, p...).to_local());
  return u;
}

std::vector<double> naive_heat(const Tensor<double, 2>& whole, const BeyondAll& beyond) {
  const Indices shape{whole.extent(0), whole.extent(1)};
  return naive_results<double, double, 1>(Heat{}, shape, {elements_of(whole)}, beyond, {0, 0},
                                          shape);
}

/// Whether a Halo has the elements at its indices beyond the own ones in dimension 0.
template <class X>
bool has_neighbours(const Halo<X>& halo, const Tensor<double, 2>& whole, const BeyondAll& beyond) {
  const auto values = elements_of(whole);
  const auto elements = halo.elements().to(Host{});
  const Box box = halo.box();
  if (elements.empty()) return halo.tensor().local_box().empty();
  bool same = true;
  for (index_t i = box.begin[0]; i < box.end[0]; ++i)
    for (index_t j = box.begin[1]; j < box.end[1]; ++j)
      same = same && elements(i - box.begin[0], j - box.begin[1]) ==
                         NaiveField<double>{
                             &values, {whole.extent(0), whole.extent(1)}, &beyond, {0, 0}}(i, j);
  return same;
}

}  // namespace

TEST_CASE("a stencil waits for ghosts that were requested earlier") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    for (const index_t rows : {29, 5, 1}) {
      const auto a = numbered<double>({rows, 6}, 1), b = numbered<double>({rows, 6}, 2);
      const auto u = in_margin_of_two(a, mesh, Shard<0>{}),
                 v = in_margin_of_two(b, mesh, Shard<0>{});
      const auto of = edges(sides(dirichlet(by_position), neumann), periodic);
      const BeyondAll beyond = beyond_all(of, 2);
      for (int step = 0; step < 20; ++step) {
        const auto [hu, hv] = exchange_halo_async(u, v, of);
        const auto sum = u + v;  // meanwhile
        const auto one = apply(Heat{}, hu), two = apply(Heat{}, hv);
        CHECK(hu.ready());
        CHECK(same_bits(one.full_tensor(), naive_heat(a, beyond)));
        CHECK(same_bits(two.full_tensor(), naive_heat(b, beyond)));
        const Halo<std::remove_cvref_t<decltype(u)>> h = exchange_halo_async(u, star(1, 1), of);
        CHECK(same_bits(apply(Heat{}, h).full_tensor(), naive_heat(a, beyond)));
        exchange_halo_async(u, of).wait();
        const auto now = exchange_halo(u, of);
        CHECK(same_bits(apply(Heat{}, now).full_tensor(), naive_heat(a, beyond)));
        CHECK(has_neighbours(now, a, beyond));
      }
    }
  });
}

TEST_CASE("ghosts of a tensor that is written while they arrive cannot be read") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto u = in_margin_of_two(numbered<double>({13, 6}), mesh, Shard<0>{});
    const auto h = exchange_halo_async(u, edges(periodic));
    h.wait();
    u.to_local().fill_(1);
    CHECK((u.to_local().empty() ||
           contains(error_of([&] { apply(Heat{}, h); }), "the tensor was written after")));
    CHECK(contains(error_of([&] { exchange_halo_async(u, box(3, 3), edges(zero)).wait(); }),
                   "exchange_halo: the margin [2, 2] is narrower than the ghosts [3, 3]"));
    static_cast<void>(exchange_halo_async(u, edges(zero)));  // dropped
  });
}

}  // namespace stencil_tests
