// The boxes that ranks read, on real ranks: elements, bytes and messages are those of naive loops.
#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/needed_box.hpp>
#include <cleave/redistribute/explain_needs.hpp>

#include "device.hpp"
#include "errors.hpp"
#include "naive.hpp"
#include "ranks.hpp"

namespace read_boxes_tests {

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::redistribution;
using namespace cleave::testing;
using naive::Indices;

namespace {

constexpr double untouched = -7;

double element(const Indices& index) {
  double value = 1;
  for (const index_t i : index) value = 100 * value + double(i);
  return value;
}

/// The rank's part of a global array of element(index).
Tensor<double, 2> part_of(const Layout& layout, const Shape& shape, const MeshState& mesh) {
  const Box own = owned_box(layout, shape, mesh.extents(), mesh.coordinate());
  Tensor<double, 2> part(to_array<2>(own.extents()));
  for (index_t i = 0; i < part.extent(0); ++i)
    for (index_t j = 0; j < part.extent(1); ++j)
      part(i, j) = element({own.begin[0] + i, own.begin[1] + j});
  return part;
}

index_t naive_floor(index_t a, index_t b) {
  index_t q = -1000;
  while ((q + 1) * b <= a) ++q;
  return q;
}

/// What one rank reads, by loops over the results that it owns.
struct Expected {
  std::array<Indices, 2> needed, own_results;  ///< operand indices neither clipped nor wrapped
  index_t received = 0;
  std::set<Indices> senders{};

  Expected(const Needs& needs, const Indices& mesh, const Indices& at) {
    for (int d = 0; d < 2; ++d) {
      const DimMap& map = needs.maps[std::size_t(d)];
      own_results[std::size_t(d)] =
          naive::owned(needs.result.layout, d, naive::to_indices(needs.result_shape), mesh, at);
      std::set<index_t> read;
      for (const index_t i : own_results[std::size_t(d)])
        for (const index_t end : {map.lo, map.hi})
          read.insert(naive_floor(map.num * i + end, map.den));
      if (read.empty()) continue;
      for (index_t i = *read.begin(); i <= *read.rbegin(); ++i) needed[std::size_t(d)].push_back(i);
    }
    if (needed[0].empty() || needed[1].empty()) needed = {};
  }
};

/// Reads the boxes of a problem and compares every element of this rank, what it receives, and from
/// how many ranks. @return what is wrong; empty if nothing is
std::string problem_of(const Needs& needs, const MeshState& mesh, World& world) {
  const Indices extents = naive::to_indices(mesh.extents()),
                at = naive::to_indices(mesh.coordinate());
  Expected want(needs, extents, at);
  const Tensor<double, 2> part = part_of(needs.operand.layout, needs.operand_shape, mesh);
  // the box is a window of a larger array, whose other elements must not change
  const auto rows = index_t(want.needed[0].size()), columns = index_t(want.needed[1].size());
  const Tensor<double, 2> storage({rows + 2, columns + 3});
  storage.fill_(untouched);
  Box window{Shape(std::array<index_t, 2>{1, 2}),
             Shape(std::array<index_t, 2>{1 + rows, 2 + columns})};
  const View box = storage.view()[window];
  View source = part.view();
  if (needs.own_in_place && rows > 0) {  // the own part lies in the window
    Box own{Shape::filled(2, 0), Shape(part.shape())};
    for (int d = 0; d < 2; ++d) {
      own.begin[d] = -needs.maps[std::size_t(d)].lo;
      own.end[d] = own.begin[d] + part.extent(d);
    }
    strided_copy(Host{}, part.view(), box[own]);
    source = box[own];
  }
  const CommTrace trace(world);
  const BoxRead read{&needs, source, box};
  read_boxes<Host>("test", {&read, 1}, mesh);

  const auto owns = [&](const Indices& rank, const Indices& index) {
    for (int d = 0; d < 2; ++d) {
      const Indices own = naive::owned(needs.operand.layout, d,
                                       naive::to_indices(needs.operand_shape), extents, rank);
      if (std::find(own.begin(), own.end(), index[std::size_t(d)]) == own.end()) return false;
    }
    return true;
  };
  for (index_t i = -1; i <= rows; ++i)
    for (index_t j = -2; j <= columns; ++j) {
      double expected = untouched;
      if (i >= 0 && i < rows && j >= 0 && j < columns) {
        Indices index{want.needed[0][std::size_t(i)], want.needed[1][std::size_t(j)]};
        int beyond = 0;
        for (std::size_t d = 0; d < 2; ++d) {
          const Indices& own = want.own_results[d];
          beyond += std::find(own.begin(), own.end(), index[d]) == own.end();
        }
        bool exists = !needs.star || beyond <= 1;
        for (std::size_t d = 0; d < 2; ++d) {
          const index_t extent = needs.operand_shape[int(d)];
          if (needs.maps[d].beyond == Beyond::wrap && extent > 0)
            index[d] = (index[d] % extent + extent) % extent;
          exists = exists && index[d] >= 0 && index[d] < extent;
        }
        if (exists) expected = element(index);
        if (exists && !owns(at, index)) {
          ++want.received;
          for (const Indices& rank : naive::all_indices(extents)) {
            bool is_peer = owns(rank, index);
            for (int a = 0; a < mesh.extents().dims; ++a)
              is_peer = is_peer && (needs.operand.layout[a].shards() ||
                                    rank[std::size_t(a)] == at[std::size_t(a)]);
            if (is_peer) want.senders.insert(rank);
          }
        }
      }
      if (storage(i + 1, j + 2) != expected)
        return "element (" + std::to_string(i) + ", " + std::to_string(j) + ") is " +
               std::to_string(storage(i + 1, j + 2));
    }
  if (trace.received_bytes() != 8 * want.received)
    return "received " + std::to_string(trace.received_bytes()) + " bytes, not " +
           std::to_string(8 * want.received);
  if (trace.received_messages() != index_t(want.senders.size())) return "messages";
  return "";
}

Layout random_layout(std::mt19937& random, int axes) {
  Layout layout = Layout::replicated(axes);
  for (int a = 0; a < axes; ++a)
    if (const int c = int(random() % 5u); c > 0) layout[a] = Placement::shard((c - 1) % 2);
  return layout;
}

/// Random problems on one mesh, the same on all ranks.
void check_problems(const MeshState& mesh, World& world, unsigned seed) {
  std::mt19937 random(seed);
  const auto between = [&](int low, int high) {
    return index_t(low + int(random() % unsigned(high - low + 1)));
  };
  const int axes = mesh.extents().dims;
  for (int i = 0; i < 60; ++i) {
    Needs needs;
    needs.operand = {random_layout(random, axes)};
    needs.operand_shape = Shape(std::array<index_t, 2>{between(0, 11), between(0, 7)});
    if (i % 2 == 0) {  // a stencil
      needs.result = needs.operand, needs.result_shape = needs.operand_shape;
      for (int d = 0; d < 2; ++d)
        needs.maps[std::size_t(d)] = {1, 1, -between(0, 4), between(0, 4),
                                      between(0, 1) != 0 ? Beyond::wrap : Beyond::clip};
      needs.star = between(0, 1) != 0;
      needs.own_in_place = between(0, 1) != 0;
    } else {
      needs.result = {random_layout(random, axes)};
      needs.result_shape = Shape(std::array<index_t, 2>{between(0, 9), between(0, 9)});
      for (int d = 0; d < 2; ++d) {
        DimMap& map = needs.maps[std::size_t(d)];
        map = {between(-3, 3), between(1, 3), between(-5, 5)};
        map.hi = map.lo + between(0, 5);
        map.beyond = between(0, 1) != 0 ? Beyond::wrap : Beyond::clip;
      }
    }
    CAPTURE(i);
    REQUIRE(problem_of(needs, mesh, world) == "");
  }
}

/// Rows above and below the own ones, of arrays in a periodic domain.
Needs periodic_rows(const Layout& layout, const Shape& shape, index_t reach) {
  Needs needs{{layout}, {layout}, shape, shape};
  needs.maps[0] = {1, 1, -reach, reach, Beyond::wrap};
  return needs;
}

}  // namespace

TEST_CASE("each rank reads the box that its part of a result needs, and receives no more") {
  on_ranks({1, 2, 3, 4, 5, 6, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    check_problems(mesh.state(), world, 20261126);
  });
}

TEST_CASE("boxes are read on meshes of two axes, crossed, nested and replicated") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    check_problems(mesh.state(), world, 4226);
  });
}

TEST_CASE("several operands are read in one message from each neighbour") {
  on_ranks({2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const Layout rows = layout_of<Placements<Shard<0>>, 2>;
    const Shape tall(std::array<index_t, 2>{4 * world.size(), 3});
    const std::array<Needs, 3> needs{periodic_rows(rows, tall, 1), periodic_rows(rows, tall, 2),
                                     periodic_rows(layout_of<Placements<Replicate>, 2>, tall, 1)};
    std::vector<Tensor<double, 2>> parts, boxes;
    std::vector<BoxRead> reads;
    for (const Needs& each : needs) {
      parts.push_back(part_of(each.operand.layout, tall, mesh.state()));
      boxes.emplace_back(to_array<2>(each.box(mesh.extents(), mesh.coordinate()).extents()));
    }
    for (std::size_t i = 0; i < needs.size(); ++i)
      reads.push_back({&needs[i], parts[i].view(), boxes[i].view()});
    const CommTrace trace(world);
    read_boxes<Host>("test", reads, mesh.state());
    CHECK(trace.count(CollectiveKind::exchange) == 2);  // none for the replicated operand
    CHECK(trace.received_messages() == (world.size() == 2 ? 1 : 2));
    CHECK(trace.received_bytes() == 8 * 3 * (2 * 1 + 2 * 2));
    const index_t first = 4 * world.rank(), all = 4 * world.size();
    bool equal = true;
    for (std::size_t k = 0; k < 3; ++k)
      for (index_t i = 0; i < boxes[k].extent(0); ++i)
        for (index_t j = 0; j < 3; ++j) {
          const index_t row = (k < 2 ? first : 0) + i - (k == 1 ? 2 : 1);
          equal = equal && boxes[k](i, j) == element({(row + all) % all, j});
        }
    CHECK(equal);
  });
}

TEST_CASE("needed_box returns the elements around the part of a distributed array") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = distribute_tensor(
        part_of(Layout::replicated(1), Shape(std::array<index_t, 2>{9, 2}), mesh.state())
            .to(TestDevice{}),
        mesh, Shard<0>{});
    Needs needs = needs_of(x, x.layout, Shape(x.shape()));
    needs.maps[0] = {-1, 1, 8, 8};  // upside down
    const auto box = needed_box(x, needs).to(Host{});
    const Box own = x.local_box();
    REQUIRE(box.extent(0) == own.extent(0));
    for (index_t i = 0; i < box.extent(0); ++i)
      for (index_t j = 0; j < 2; ++j)
        CHECK(box(box.extent(0) - 1 - i, j) == element({8 - own.begin[0] - i, j}));
  });
}

TEST_CASE("an exchange of boxes refuses views of other extents, and ranks that need other boxes") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2});
    const Shape shape(std::array<index_t, 2>{6, 2});
    const Needs needs = periodic_rows(layout_of<Placements<Shard<0>>, 2>, shape, 1);
    const Tensor<double, 2> part({3, 2}), box({5, 2}), short_box({4, 2});
    const auto read = [&](const Needs& of, const auto& from, const auto& to) {
      const BoxRead one{&of, from.view(), to.view()};
      read_boxes<Host>("stencil", {&one, 1}, mesh.state());
    };
    CHECK(contains(error_of([&] { read(needs, part, short_box); }),
                   "stencil: the destination has extents [4, 2], its box has [5, 2]"));
    CHECK(contains(error_of([&] { read(needs, box, box); }),
                   "stencil: the part of an operand has extents [5, 2], its box has [3, 2]"));
    Needs other = needs;
    other.maps[1].beyond = Beyond::wrap;
    CHECK(contains(error_of([&] { read(world.rank() == 0 ? needs : other, part, box); }),
                   " with checksum "));
  });
}

TEST_CASE("an explanation of needs states what is read and received") {
  const World world(dry_communicator(0, 4));
  const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
  Needs needs = periodic_rows(layout_of<Placements<Shard<0>, Shard<1>>, 2>,
                              Shape(std::array<index_t, 2>{8, 6}), 1);
  needs.maps[1] = {1, 2, 0, 1};
  CHECK(
      explain(needs, mesh.state(), DType::float64, {.latency_us = 5, .bytes_per_us = 10}).text() ==
      "(Shard(0), Shard(1)) of [8, 6] reads (Shard(0), Shard(1)) of [8, 6] on dp=2 x tp=2\n"
      "  dimension 0: index i reads i - 1 .. i + 1, periodic\n"
      "  dimension 1: index i reads i / 2 .. (i + 1) / 2\n"
      "  exchange over dp.tp (4 ranks): receives 112 bytes in 3 messages per rank, about 16.2 us; "
      "copies 64 bytes of its own part\n");
  needs.operand = {Layout::replicated(2)};
  CHECK(
      contains(explain(needs, mesh.state(), DType::float64).text(), "  receives nothing; copies "));
}

TEST_CASE("the budget of an exchange of boxes is that of one rank of many") {
  const Budget cost = budget(500, 1024, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {1024});
    const Tensor<float, 2> part({1024, 1024});
    using X = placed_t<float, 2, std::remove_cvref_t<decltype(mesh)>, Shard<0>>;
    const X x = X::unchecked(part, mesh, {1024 * 1024, 1024});
    const auto needs = periodic_rows(x.layout, Shape(x.shape()), 2);
    CHECK(needed_box(x, needs).extent(0) == 1028);
  });
  CHECK(cost.messages() == 2);
  CHECK(cost.received_bytes() == 2 * 2 * 1024 * 4);
}

}  // namespace read_boxes_tests
