// Programs on arrays that are cut in other ways than by chunks.
#include <algorithm>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("programs give the results of eager calls however their inputs are cut") {
  on_ranks({2, 3}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      Tensor<double, 2> a({7, 6}), b({6, 7});
      for (index_t i = 0; i < 42; ++i)
        a.data()[i] = double(i * i % 11) - 4, b.data()[i] = double(i * 5 % 7) - 2;
      constexpr auto layer = [](const auto& x, const auto& w) {
        const auto y = relu(matmul(x, w));
        return std::tuple(y, sum(add(y, y), dim<0>{}), max(y, dim<1>{}));
      };
      const auto check = [&](auto p, auto q) {
        const auto x = distribute_tensor(a, mesh, p);
        const auto w = distribute_tensor(b, mesh, q);
        check_like_eager(layer, x, w);
        const auto y = std::get<0>(layer(x, w)).full_tensor(), expected = std::get<0>(layer(a, b));
        CHECK(std::equal(y.data(), y.data() + y.size(), expected.data()));
      };
      check(BlockCyclic<0, 2>{}, Replicate{});
      check(BlockCyclic<1, 2>{}, Balanced<0>{});
      check(Owned<1>{}, BlockCyclic<1, 1>{});
    });
  });
}
