// Plans, without ranks: their effect, their number of steps, and that every step is valid.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/redistribute/exchange.hpp>
#include <cleave/redistribute/plan.hpp>

#include "naive.hpp"

using namespace cleave;
using naive::Indices;
using naive::layouts_over;
using naive::shape_of;

namespace {

constexpr Placement R = Placement::replicate(), S0 = Placement::shard(0), S1 = Placement::shard(1),
                    P = Placement::partial(ReduceOp::sum), M = Placement::partial(ReduceOp::max);

constexpr Layout on(auto... placement) {
  Layout layout;
  ((layout[layout.axes++] = placement), ...);
  return layout;
}

constexpr bool is_one(const Plan& plan, StepKind kind, unsigned axes) {
  return plan.count == 1 && plan[0].kind == kind && plan[0].axes == axes;
}

}  // namespace

TEST_CASE("plans are constants of the layouts") {
  static_assert(make_plan(on(S0, R), on(S0, R), 2).count == 0);
  static_assert(is_one(make_plan(on(R, R), on(S0, S1), 2), StepKind::slice, 0));
  static_assert(is_one(make_plan(on(S0, R), on(R, R), 2), StepKind::all_gather, 0b01));
  static_assert(is_one(make_plan(on(S0, S1), on(R, R), 2), StepKind::all_gather, 0b11));
  static_assert(is_one(make_plan(on(S0, S0), on(S0, R), 2), StepKind::all_gather, 0b10));
  static_assert(is_one(make_plan(on(S0, R), on(S1, R), 2), StepKind::all_to_all, 0b01));
  static_assert(is_one(make_plan(on(S0, S0), on(S1, S1), 2), StepKind::all_to_all, 0b11));
  static_assert(is_one(make_plan(on(S0, S1), on(S1, S0), 2), StepKind::exchange, 0b11));
  static_assert(is_one(make_plan(on(S0, S0), on(R, S0), 2), StepKind::exchange, 0b11));
  static_assert(is_one(make_plan(on(S0, R), on(R, S0), 2), StepKind::exchange, 0b11));
  static_assert(is_one(make_plan(on(P, R), on(R, R), 2), StepKind::all_reduce, 0b01));
  static_assert(is_one(make_plan(on(P, P), on(R, R), 2), StepKind::all_reduce, 0b11));
  static_assert(is_one(make_plan(on(P, R), on(S1, R), 2), StepKind::reduce_scatter, 0b01));
  static_assert(is_one(make_plan(on(P, P), on(S0, S1), 2), StepKind::reduce_scatter, 0b11));
  static_assert(is_one(make_plan(on(S0, P), on(S0, S0), 2), StepKind::reduce_scatter, 0b10));
  static_assert(is_one(make_plan(on(R, R), on(P, R), 2), StepKind::to_partial, 0b01));
  CHECK(make_plan(on(P, M), on(R, R), 2)[0].op == ReduceOp::max);  // the inner axis first
  CHECK(make_plan(on(P, M), on(R, R), 2)[1].op == ReduceOp::sum);
}

TEST_CASE("a plan takes one step without partials, two with partials of one reduction") {
  int pairs = 0;
  for (const int axes : {1, 2, 3})
    for (const Layout& from : layouts_over(axes, {R, S0, S1, P}))
      for (const Layout& to : layouts_over(axes, {R, S0, S1})) {
        const Plan plan = make_plan(from, to, 2);
        CHECK(plan.communications() <= (from.has_partial() ? 2 : 1));
        if (from == to) CHECK(plan.count == 0);
        ++pairs;
      }
  CHECK(pairs == 4 * 3 + 16 * 9 + 64 * 27);
}

TEST_CASE("the steps of a plan lead from the source to the target") {
  for (const int axes : {1, 2, 3})
    for (const Layout& from : layouts_over(axes, {R, S0, S1, P, M}))
      for (const Layout& to : layouts_over(axes, {R, S0, S1, P})) {
        const Plan plan = make_plan(from, to, 2);
        StepLayout now{from};
        for (const Step& step : plan) {
          CHECK(step.from == now);
          now = step.to;
        }
        CHECK(now == StepLayout{to});
      }
}

TEST_CASE("a rank receives exactly the elements that it must own and does not have") {
  // every pair without partials: each wanted index arrives once, from a rank that owns it
  std::int64_t received = 0;
  for (const Indices& mesh : std::vector<Indices>{{3}, {4}, {2, 2}, {2, 3}, {2, 2, 2}})
    for (const Indices& shape : std::vector<Indices>{{5, 6}, {2, 3}, {7, 1}, {0, 4}}) {
      const int axes = int(mesh.size());
      const auto ranks = naive::all_indices(mesh);
      for (const Layout& from : layouts_over(axes, {R, S0, S1}))
        for (const Layout& to : layouts_over(axes, {R, S0, S1})) {
          const Plan plan = make_plan(from, to, 2);
          if (plan.count == 0 || !communicates(plan[0].kind)) continue;
          const Step& step = plan[0];
          for (const Indices& coordinate : ranks) {
            const auto had = naive::elements(from, shape, mesh, coordinate);
            const auto wanted = naive::elements(to, shape, mesh, coordinate);
            std::int64_t lacking = 0;
            for (const Indices& index : wanted)
              lacking += std::find(had.begin(), had.end(), index) == had.end();
            const auto transfers = redistribution::exchange_transfers(
                step, shape_of(shape), shape_of(mesh), shape_of(coordinate));
            std::int64_t arriving = 0, all = 0;
            Shape at = shape_of(coordinate);
            index_t self = 0;
            for (int a = 0; a < axes; ++a)
              if (step.axes >> a & 1u) self = self * mesh[std::size_t(a)] + at[a];
            for (const Transfer& transfer : transfers.receives) {
              all += transfer.destination.volume();
              if (transfer.peer != self) arriving += transfer.destination.volume();
              CHECK(transfer.source.extents() == transfer.destination.extents());
            }
            CHECK(all == std::int64_t(wanted.size()));
            CHECK(arriving == lacking);
            received += arriving;
          }
        }
    }
  CHECK(received > 0);
}

TEST_CASE("the peers of an exchange are found among a billion ranks") {
  const index_t n = 1 << 15;
  const Shape mesh(std::array<index_t, 2>{n, n}), shape(std::array<index_t, 2>{4 * n, 3 * n});
  const auto peer_of = [&](index_t i, index_t j) { return int(i * n + j); };
  const auto at = [](index_t i, index_t j) { return Shape(std::array<index_t, 2>{i, j}); };
  // 4 x 3 elements of each rank: rows 4 i and columns 3 j, then rows 4 j and columns 3 i
  const Plan turn = make_plan(on(S0, S1), on(S1, S0), 2);
  auto transfers = redistribution::exchange_transfers(turn[0], shape, mesh, at(5, 777));
  REQUIRE(transfers.receives.size() == 1);
  CHECK(transfers.receives[0].peer == peer_of(777, 5));
  CHECK(transfers.receives[0].destination.volume() == 12);
  REQUIRE(transfers.sends.size() == 1);
  CHECK(transfers.sends[0].peer == peer_of(777, 5));
  transfers = redistribution::exchange_transfers(turn[0], shape, mesh, at(777, 777));
  REQUIRE(transfers.receives.size() == 1);
  CHECK(transfers.receives[0].peer == peer_of(777, 777));

  // chunk i is on (i, *) and goes to (*, i): each owner sends it to one rank
  const Plan swap = make_plan(on(S0, R), on(R, S0), 2);
  transfers = redistribution::exchange_transfers(swap[0], shape, mesh, at(5, 777));
  REQUIRE(transfers.receives.size() == 1);
  CHECK(transfers.receives[0].peer / n == 777);
  CHECK(transfers.receives[0].destination.volume() == 4 * 3 * n);
  REQUIRE(transfers.sends.size() == 1);
  CHECK(transfers.sends[0].peer % n == 5);
  const auto server = redistribution::exchange_transfers(
      swap[0], shape, mesh, coordinate_of(mesh, transfers.receives[0].peer));
  CHECK(server.sends[0].peer == peer_of(5, 777));
}
