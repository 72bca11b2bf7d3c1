// explain: what a stencil's call receives, compared with what it receives when it runs.
#include <cleave/comm/trace.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/stencil/explain_stencil.hpp>

#include "../naive_stencils.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// Runs a call and compares.
template <class World, class S, class... A>
void check_explained(const World& world, const S& stencil, const A&... a) {
  const auto explained = [&] {
    if constexpr (requires { explain(stencil, a...).together; })
      return explain(stencil, a...).together;
    else return explain(stencil, a...);
  }();
  const CommTrace trace(world);
  apply(stencil, a...);
  index_t bytes = 0;
  for (const ReceivedFrom& each : explained.from) bytes += each.bytes;
  CHECK(trace.received_bytes() == bytes);
  CHECK(trace.received_messages() == index_t(explained.from.size()));
  CHECK(bytes <= explained.bytes);
  CHECK(int(explained.from.size()) <= explained.messages);
}

}  // namespace

TEST_CASE("explain lists what each rank receives from whom") {
  on_ranks({1, 2, 3, 4, 6, 7}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    const auto check = [&](const auto& mesh, auto... p) {
      const auto u = distribute_tensor(numbered<double>({13, 6}, 1), mesh, p...),
                 c = distribute_tensor(numbered<double>({13, 6}, 2), mesh, p...);
      check_explained(world, Heat{}, u, edges(periodic));
      check_explained(world, Unequal{}, u, edges(zero, neumann));
      check_explained(world, Weighted{}, u, c, edges(periodic, none));
      check_explained(world, repeat<3>(Heat{}), u, edges(periodic, mirror));
    };
    check(line, Shard<0>{});
    check(line, Replicate{});
    if (world.size() % 2 != 0) return;
    const auto grid = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    check(grid, Shard<0>{}, Shard<1>{});
    check(grid, Shard<1>{}, Shard<1>{});
  });
}

TEST_CASE("explain prints both choices of repeat") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {4});
    const auto u = distribute_tensor(numbered<double>({40, 5}), mesh, Shard<0>{});
    const auto explained = explain(repeat<4>(Heat{}), u, edges(periodic));
    CHECK(explained.together.messages == 2);
    CHECK(explained.together.bytes == 2 * 4 * 5 * 8);
    CHECK(explained.together.extra == 2 * (3 + 2 + 1) * 5);
    CHECK(explained.single.bytes == 2 * 5 * 8);
    CHECK(explained.single.extra == 0);
    const std::string text = explained.text();
    CHECK(contains(text, "4 steps with one exchange: at most 2 messages and 320 bytes per rank"));
    CHECK(contains(text,
                   "4 steps with an exchange for each: at most 8 messages and 320 bytes per rank"));
    CHECK(contains(text, "60 elements computed besides its own"));
    const std::string of_one = explain(Heat{}, u, edges(zero)).text();
    CHECK(contains(of_one, "at most 80 bytes in 2 messages per rank"));
    CHECK(contains(of_one, "rank " + std::to_string(world.rank()) +
                               " receives 40 bytes from rank " +
                               std::to_string(world.rank() == 0 ? 1 : world.rank() - 1)));
    CHECK(contains(of_one, "dimension 0: index i reads i - 1 .. i + 1"));
  });
}

}  // namespace stencil_tests
