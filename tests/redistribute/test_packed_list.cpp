// Lists of small tensors, whose packing is kept: the same list with other elements, lists that
// differ in one property, more lists than are kept, ranks whose lists differ.
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/redistribute_all.hpp>

#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

/// Element i of the k-th array of a list, which differs between calls.
template <class T>
T listed_element(int call, int k, index_t i) {
  return T(100 * call % 1000 + 7 * k + i);
}

/// A list of arrays, one of each of the given numbers of rows, of three columns.
template <class T, class From>
auto listed(int call, const std::vector<index_t>& rows, const auto& mesh, From from) {
  const auto one = [&](int k) {
    const Tensor<T, 2> whole({rows[std::size_t(k)], 3});
    for (index_t i = 0; i < whole.size(); ++i) whole.data()[i] = listed_element<T>(call, k, i);
    if constexpr (detail::PlacementTraits<From>::value(2).is_partial())
      return from_local(whole, mesh, from);
    else return from_local(whole, mesh, Replicate{}).redistribute(from);
  };
  std::vector<decltype(one(0))> list;
  for (int k = 0; k < int(rows.size()); ++k) list.push_back(one(k));
  return list;
}

/// Whether every rank holds its parts of `times` the arrays of `listed`.
template <class T, class X>
bool holds_listed(const std::vector<X>& list, int call, const std::vector<index_t>& rows, T times) {
  bool holds = list.size() == rows.size();
  for (int k = 0; holds && k < int(rows.size()); ++k) {
    const X& x = list[std::size_t(k)];
    const Box box = x.local_box();
    holds = x.extent(0) == rows[std::size_t(k)];
    for (index_t i = box.begin[0]; i < box.end[0]; ++i)
      for (index_t j = box.begin[1]; j < box.end[1]; ++j)
        holds = holds && x.to_local()(i - box.begin[0], j - box.begin[1]) ==
                             T(times * listed_element<T>(call, k, 3 * i + j));
  }
  return holds;
}

template <class T, class From, class To>
bool packs_well(int call, const std::vector<index_t>& rows, const auto& mesh, From from, To to,
                T times) {
  return holds_listed<T>(redistribute_all(listed<T>(call, rows, mesh, from), to), call, rows,
                         times);
}

}  // namespace

TEST_CASE("a list of small tensors is redistributed again with other elements") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const std::vector<index_t> rows{5, 1, 0, 16, 9, 3};
    const double n = world.size();
    for (int call = 0; call < 4; ++call) {
      CHECK(packs_well(call, rows, mesh, Shard<0>{}, Replicate{}, 1.0));
      CHECK(packs_well(call, rows, mesh, Shard<1>{}, Replicate{}, 1.0));
      CHECK(packs_well(call, rows, mesh, Shard<0>{}, Shard<1>{}, 1.0));
      CHECK(packs_well(call, rows, mesh, Partial<Sum>{}, Shard<0>{}, n));
      CHECK(packs_well(call, rows, mesh, Partial<Sum>{}, Replicate{}, n));
    }
  });
}

TEST_CASE("lists of small tensors that differ in one extent or in the type are kept apart") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    for (int call = 0; call < 3; ++call)
      for (index_t last = 3; last < 7; ++last) {
        const std::vector<index_t> rows{4, 5, last};
        CHECK(packs_well(call, rows, mesh, Shard<0>{}, Replicate{}, 1.f));
        CHECK(packs_well(call, rows, mesh, Shard<0>{}, Replicate{}, 1.0));
        CHECK(packs_well(call, rows, mesh, Shard<0>{}, Replicate{}, std::int8_t(1)));
      }
  });
}

TEST_CASE("more lists of small tensors than are kept") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    bool hold = true;
    for (int call = 0; call < 1100; ++call)
      hold = hold &&
             packs_well(call, {1 + call / 34, 1 + call % 34}, mesh, Shard<0>{}, Replicate{}, 1.f);
    for (int call = 0; call < 3; ++call)  // have been evicted
      hold = hold && packs_well(call, {1, 1 + call}, mesh, Shard<0>{}, Replicate{}, 1.f);
    CHECK(hold);
  });
}

TEST_CASE("small and large tensors of one list share a round; local parts may have strides") {
  on_ranks({2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const std::vector<index_t> rows{4, 9000, 5};
    const auto list = listed<double>(1, rows, mesh, Shard<0>{});
    const CommTrace trace(world);
    const auto results = redistribute_all(list, Replicate{});
    CHECK(trace.count() == 2);
    CHECK(trace.received_messages() == world.size() - 1);
    CHECK(holds_listed<double>(results, 1, rows, 1.0));

    const auto strided = [&](index_t n) {  // rank r has rows [r, r + 1) of [ranks, n]
      const Tensor<float, 2> columns({n, 2});
      for (index_t i = 0; i < columns.size(); ++i) columns.data()[i] = float(i + world.rank());
      return from_local(columns.transpose(0, 1).slice(0, 0, 1), mesh, Shard<0>{});
    };
    const auto [a, b] = redistribute_all(to(strided(3), Replicate{}), to(strided(8), Replicate{}));
    bool hold = true;
    for (index_t r = 0; r < world.size(); ++r)
      for (index_t i = 0; i < 8; ++i) {
        hold = hold && b.to_local()(r, i) == float(2 * i + r);
        if (i < 3) hold = hold && a.to_local()(r, i) == float(2 * i + r);
      }
    CHECK(hold);
  });
}

TEST_CASE("ranks that redistribute different lists of small tensors are told so") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    std::vector<index_t> rows{12, 24, 36};
    if (world.rank() == 0) std::swap(rows[0], rows[1]);
    std::vector<decltype(zeros<float>({1}, mesh, Shard<0>{}))> list;
    for (const index_t n : rows) list.push_back(zeros<float>({n}, mesh, Shard<0>{}));
    CHECK_THROWS_WITH_AS((void)redistribute_all(list, Replicate{}),
                         doctest::Contains(" with checksum "), Error);
  });
}
