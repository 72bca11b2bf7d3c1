// Arrays like others, sequences of numbers, identity matrices.
#include <array>
#include <complex>
#include <string>

#include <doctest/doctest.h>

#include <cleave/dtensor/arange.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/shapes/zeros_like.hpp>

#include "device.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

TEST_CASE("arrays made like others have their placements, partials as replicas") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = zeros<float>({5, 2}, mesh, Shard<0>{});
    const auto y = full_like(x, 2.5f);
    static_assert(std::is_same_v<decltype(y), decltype(x)>);
    CHECK(y.shape() == x.shape());
    CHECK(y.to_local().shape() == x.to_local().shape());
    const auto host = y.to_local().to(Host{});
    for (index_t i = 0; i < host.size(); ++i) CHECK(host.data()[i] == 2.5f);
    const auto part = sum(x, dim<0>{});
    static_assert(decltype(part)::layout[0].is_partial());
    const auto ones = ones_like(requires_grad(part));
    static_assert(decltype(ones)::layout[0].is_replicate());
    CHECK(sum(ones).redistribute(Replicate{}).item() == 2);
    CHECK(empty_like(x.to_local()).shape() == x.to_local().shape());
    CHECK(sum(zeros_like(x.to_local())).to(Host{})() == 0);
  });
}

TEST_CASE("arange gives the numbers of one rank on any mesh") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto check = [&](const auto& x, index_t first) {
      const Box box = x.local_box();
      const auto host = x.to_local().to(Host{});
      REQUIRE(host.size() == box.extent(0));
      for (index_t i = 0; i < host.size(); ++i)
        CHECK(double(host.data()[i]) == double(first + box.begin[0] + i));
    };
    check(arange<double>(-2, 5, mesh, Shard<0>{}), -2);
    check(arange<std::int32_t>(0, 9, mesh, Replicate{}), 0);
    check(arange<float>(3, 3, mesh, Shard<0>{}), 3);
    check(arange<double>(7, mesh, Shard<0>{}), 0);
    CHECK(arange<double>(7).extent(0) == 7);
    CHECK(arange<double>(7)(6) == 6);
    CHECK_THROWS_WITH_AS(arange<float>(3, 2, mesh, Shard<0>{}),
                         "arange: the end 2 is less than the begin 3", Error);
  });
  const auto alone = arange<std::int64_t>(4, 7);
  CHECK(alone.data()[2] == 6);
}

TEST_CASE("an identity matrix has its ones on the diagonal, on any mesh") {
  const auto check = [](const auto& x) {
    const Box box = x.local_box();
    const auto host = x.to_local().to(Host{});
    for (index_t i = 0; i < host.extent(0); ++i)
      for (index_t j = 0; j < host.extent(1); ++j)
        CHECK(host(i, j) == (box.begin[0] + i == box.begin[1] + j ? 1.0 : 0.0));
  };
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    check(eye<double>(5, mesh, Shard<0>{}));
    check(eye<double>(2, mesh, Shard<1>{}));
    check(eye<double>(0, mesh, Shard<1>{}));
    check(eye<double>(3, mesh, Replicate{}));
  });
  on_ranks({4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    check(eye<double>(5, mesh, Shard<0>{}, Shard<1>{}));
    check(eye<double>(5, mesh, Shard<1>{}, Shard<1>{}));
  });
  CHECK(eye<double>(3)(1, 1) == 1);
  CHECK(eye<double>(3)(1, 0) == 0);
}
