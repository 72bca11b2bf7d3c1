// Launches of a stencil on a GPU: one, and one for each field whose edges are filled.
#include "../naive_stencils.hpp"
#include "cuda_calls.hpp"

namespace stencil_tests {

using cleave::testing::launches_of;

TEST_CASE("a stencil is one launch, and one for each field with edges") {
  const auto u = numbered<double>({40, 50}).to(Cuda{}),
             c = numbered<double>({40, 50}, 2).to(Cuda{});
  const Tensor<double, 2, Cuda> v({40, 50}), inner({38, 48});
  CHECK(launches_of([&] { apply(out(inner), Heat{}, u); }) == 1);
  CHECK(launches_of([&] { apply(out(v), Heat{}, u, edges(periodic, dirichlet(by_position))); }) ==
        2);
  CHECK(launches_of([&] { apply(out(v), Weighted{}, u, c, edges(neumann)); }) == 3);
}

}  // namespace stencil_tests
