// Products whose arrays exceed the memory limit whole, and are exchanged and multiplied in panels:
// values by loops, what a rank receives and holds.
#include <array>
#include <complex>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "../placed.hpp"
#include "errors.hpp"
#include "naive_product.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace product_panels {

/// Lowers the limit until no plan keeps to it, and checks values, bytes and memory of each plan.
/// @return the number of plans with panels
template <class Asked, class Text, class X, class W>
int lower_limits(const World& world, const Text& text, const std::string& letters, const X& x,
                 const W& w) {
  using T = typename X::value_type;
  const Array<T> y = naive_product<T>(letters, {expected(x, 0), expected(w, 1)});
  const std::string call = letters + ": " + described(x) + " and " + described(w);
  CAPTURE(call);
  index_t limit = explain<Asked>(text, fewest_bytes{}, x, w).memory;
  for (int in_panels = 0;; limit -= limit / 9 + 1) {
    const fewest_bytes limits{.memory_limit = limit};
    ContractionPlan plan;
    const std::string error = error_of([&] { plan = explain<Asked>(text, limits, x, w); });
    if (!error.empty()) {
      CHECK(error.find("bytes per rank for each product") != error.npos);
      return in_panels;
    }
    CAPTURE(plan.text());
    CHECK(plan.memory <= limit);
    const ContractionStep& step = plan.steps[0];
    in_panels += step.panel > 0;
    CommTrace trace(world);
    const auto found = einsum<Asked>(text, limits, x, w);
    CHECK(trace.received_bytes() <= plan.bytes);
    check_equal(found, y);
  }
}

}  // namespace product_panels

using namespace product_panels;

TEST_CASE("products on a grid in panels of any width are those by loops") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto of = [&]<class T, class P, class Q, class Asked>(T, P, Q, Asked, index_t m,
                                                                index_t k, index_t n) {
      const auto x = placed<T, P>(mesh, std::array<index_t, 2>{m, k}, 0);
      const auto w = placed<T, Q>(mesh, std::array<index_t, 2>{k, n}, 1);
      return lower_limits<Asked>(world, "ik,kj->ij"_ein, "ik,kj->ij", x, w);
    };
    using Grid = Placements<Shard<0>, Shard<1>>;
    using Rows = Placements<Shard<0>, Shard<0>>;
    CHECK(of(0., Grid{}, Grid{}, Grid{}, 6, 23, 5) > 2);
    CHECK(of(std::complex<double>{}, Grid{}, Grid{}, Grid{}, 3, 17, 5) > 2);
    CHECK(of(0.f, Grid{}, Grid{}, Rows{}, 8, 9, 3) > 0);
    CHECK(of(0., Rows{}, Rows{}, Rows{}, 7, 9, 5) > 2);
    CHECK(of(0., Rows{}, Placements<Replicate, Replicate>{}, Placements<Replicate, Shard<1>>{}, 11,
             4, 9) > 0);
    of(0., Grid{}, Grid{}, Grid{}, 1, 9, 1);
    of(0., Grid{}, Grid{}, Grid{}, 4, 0, 3);
    of(0., Placements<Partial<Sum>, Shard<0>>{}, Grid{}, Grid{}, 6, 9, 5);
  });
}

TEST_CASE("batches in panels, and an axis of one rank") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {1, 3}, TestDevice{});
    const auto x =
        placed<double, Placements<Shard<1>, Shard<2>>>(mesh, std::array<index_t, 3>{2, 7, 10}, 0);
    const auto w =
        placed<double, Placements<Shard<0>, Shard<1>>>(mesh, std::array<index_t, 3>{2, 10, 5}, 1);
    using Asked = Placements<Replicate, Shard<1>>;
    CHECK(lower_limits<Asked>(world, "bik,bkj->bij"_ein, "bik,bkj->bij", x, w) > 1);
    const auto v =
        placed<double, Placements<Shard<0>, Shard<0>>>(mesh, std::array<index_t, 2>{10, 5}, 1);
    CHECK(lower_limits<Asked>(world, "iak,kj->ija"_ein, "iak,kj->ija", x, v) > 1);
  });
}

TEST_CASE("panels of a factor that an axis splits") {
  on_ranks({8}, [](World& world) {
    const auto mesh = init_device_mesh<dp, pp, tp>(world, {2, 2, 2}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>, Shard<1>, Shard<1>>>(
        mesh, std::array<index_t, 2>{7, 41}, 0);
    const auto w = placed<double, Placements<Shard<0>, Shard<0>, Shard<1>>>(
        mesh, std::array<index_t, 2>{41, 6}, 1);
    using Asked = Placements<Shard<0>, Shard<0>, Shard<1>>;
    CHECK(lower_limits<Asked>(world, "ik,kj->ij"_ein, "ik,kj->ij", x, w) > 2);
  });
}

TEST_CASE("panels receive what whole operands do") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    using Grid = Placements<Shard<0>, Shard<1>>;
    const auto x = placed<double, Grid>(mesh, std::array<index_t, 2>{8, 32}, 0);
    const auto w = placed<double, Grid>(mesh, std::array<index_t, 2>{32, 8}, 1);
    // whole: 4 x 32 and 32 x 4 numbers, and y 4 x 4. In panels of 8: 4 x 8 and 8 x 4 twice
    const fewest_bytes limits{.memory_limit = (4 * 32 + 16) * 8};
    const ContractionPlan plan = explain<Grid>("ik,kj->ij"_ein, limits, x, w);
    REQUIRE(plan.steps[0].panel == 8);
    CHECK(plan.steps[0].letter == 'k');
    CHECK(plan.memory == limits.memory_limit);
    CHECK(plan.text().find(" bytes held, k in panels of 8\n") != std::string::npos);
    CommTrace trace(world);
    einsum<Grid>("ik,kj->ij"_ein, limits, x, w);
    CHECK(trace.received_bytes() == (4 * 16 + 16 * 4) * 8);  // what the rank lacks
  });
}

TEST_CASE("gradients of products in panels keep to the limit") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    using Grid = Placements<Shard<0>, Shard<1>>;
    const auto x = placed<double, Grid>(mesh, std::array<index_t, 2>{6, 9}, 0);
    const auto w = placed<double, Grid>(mesh, std::array<index_t, 2>{9, 5}, 1);
    const auto g = placed<double, Grid>(mesh, std::array<index_t, 2>{6, 5}, 2);
    const auto a = requires_grad(x), b = requires_grad(w);
    const fewest_bytes limits{.memory_limit = 400};
    backward(sum(mul(einsum<Grid>("ik,kj->ij"_ein, limits, a, b), g)));
    check_equal(grad(a), naive_product<double>("ij,kj->ik", {expected(g, 2), expected(w, 1)}));
    check_equal(grad(b), naive_product<double>("ik,ij->kj", {expected(x, 0), expected(g, 2)}));
  });
}

TEST_CASE("a rank holds no more than the limit beside its parts of the operands") {
  const index_t n = 8192, q = 16, own = n * n / (q * q) * index_t(sizeof(float));
  const auto peak = [&](const fewest_bytes& limits) {
    return index_t(budget(100, int(q * q), [&](World& world) {
                     const auto mesh = init_device_mesh<dp, tp>(world, {q, q});
                     const auto x = zeros<float>({n, n}, mesh, Shard<0>{}, Shard<1>{});
                     einsum<Placements<Shard<0>, Shard<1>>>("ik,kj->ij"_ein, limits, x, x);
                   }).peak_bytes());
  };
  CHECK(peak({}) >= (1 + 2 * q) * own);
  CHECK(peak({.memory_limit = 3 * own}) <= 4 * own);
}
