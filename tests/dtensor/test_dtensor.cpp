// Creating, converting and redistributing DTensors; values compared with the global array.
#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/visualize.hpp>
#include <cleave/tensor/print.hpp>

#include "device.hpp"
#include "errors.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::error_of;

namespace {

/// 0, 1, 2, .. in row-major order.
template <class T>
Tensor<T, 2> counting(index_t rows, index_t columns) {
  Tensor<T, 2> result({rows, columns});
  for (index_t i = 0; i < rows * columns; ++i) result.data()[i] = naive::from_int<T>(i);
  return result;
}

template <class T, class Device>
bool is_counting(const Tensor<T, 2, Device>& tensor, index_t rows, index_t columns) {
  if (tensor.shape() != std::array<index_t, 2>{rows, columns}) return false;
  const Tensor<T, 2> found = tensor.to(Host{});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j)
      if (found(i, j) != naive::from_int<T>(i * columns + j)) return false;
  return true;
}

/// Whether the local elements are this rank's part of the counting array.
template <class X>
bool is_part_of_counting(const X& x) {
  const auto owned = naive::elements(X::layout, naive::to_indices(Shape(x.shape())),
                                     naive::to_indices(x.mesh().extents()),
                                     naive::to_indices(x.mesh().coordinate()));
  if (x.to_local().size() != index_t(owned.size())) return false;
  const auto dense = x.to_local().clone().to(Host{});
  for (std::size_t i = 0; i < owned.size(); ++i)
    if (dense.data()[i] !=
        naive::from_int<typename X::value_type>(owned[i][0] * x.extent(1) + owned[i][1]))
      return false;
  return true;
}

/// Distributes, redistributes to every placement on one axis, and gathers.
template <class T, class From, class To>
void round_trip(World& world, index_t rows, index_t columns) {
  const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
  const Tensor<T, 2> whole = world.rank() == 0 ? counting<T>(rows, columns) : Tensor<T, 2>();
  const auto x = distribute_tensor(whole.to(TestDevice{}), mesh, From{});
  static_assert(std::is_same_v<decltype(x.placements()), normalized_t<Placements<From>, 2>>);
  CHECK(is_part_of_counting(x));
  const auto y = x.redistribute(To{});
  CHECK(is_part_of_counting(y));
  CHECK(is_counting(y.full_tensor(), rows, columns));
}

template <class T>
void all_round_trips(World& world, index_t rows, index_t columns) {
  round_trip<T, Replicate, Replicate>(world, rows, columns);
  round_trip<T, Replicate, Shard<0>>(world, rows, columns);
  round_trip<T, Replicate, Shard<-1>>(world, rows, columns);
  round_trip<T, Shard<0>, Replicate>(world, rows, columns);
  round_trip<T, Shard<0>, Shard<0>>(world, rows, columns);
  round_trip<T, Shard<0>, Shard<1>>(world, rows, columns);
  round_trip<T, Shard<1>, Replicate>(world, rows, columns);
  round_trip<T, Shard<-1>, Shard<-2>>(world, rows, columns);
}

}  // namespace

TEST_CASE("distributing, redistributing and gathering an array gives it back") {
  on_ranks({1, 2, 3, 4, 5, 6, 7, 8}, [](World& world) {
    all_round_trips<float>(world, 5, 6);
    all_round_trips<double>(world, 3, 0);
    all_round_trips<std::complex<float>>(world, 1, 7);
    all_round_trips<std::int64_t>(world, 8, 8);
    all_round_trips<half>(world, 9, 2);
    all_round_trips<std::uint8_t>(world, 2, 13);
  });
}

TEST_CASE("two axes place a tensor together") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2}, TestDevice{});
    const auto whole = world.rank() == 0 ? counting<float>(7, 5) : Tensor<float, 2>();
    const auto x = distribute_tensor(whole, mesh, Shard<0>{}, Shard<0>{});  // from the host
    CHECK(is_part_of_counting(x));
    const auto y = x.redistribute(Shard<1>{}, Shard<0>{});
    CHECK(is_part_of_counting(y));
    const auto z = y.redistribute(Placements<Replicate, Shard<1>>{});
    CHECK(is_part_of_counting(z));
    CHECK(is_part_of_counting(z.redistribute(Shard<0>{}, Replicate{})));
    CHECK(is_counting(z.full_tensor(), 7, 5));
  });
}

TEST_CASE("redistributing to the same placements returns the tensor itself, an rvalue by value") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    auto x = zeros<float>({4, 4}, mesh, Shard<0>{});
    CHECK(std::as_const(x).redistribute(Shard<-2>{}).to_local().data() == x.to_local().data());
    CHECK(x.redistribute(Placements<Shard<0>>{}).to_local().data() == x.to_local().data());
    static_assert(std::is_same_v<decltype(x.redistribute(Shard<0>{})), decltype(x)>);
    const float* elements = x.to_local().data();
    static_assert(std::is_same_v<decltype(std::move(x).redistribute(Shard<0>{})), decltype(x)>);
    const auto& kept = DTensor(x).redistribute(Shard<0>{});
    CHECK(kept.to_local().data() == elements);
    auto moved = std::move(x).redistribute(Shard<0>{});
    CHECK(moved.to_local().data() == elements);
    x = std::move(moved);
    CHECK(x.redistribute(Shard<1>{}).to_local().data() != x.to_local().data());
  });
}

TEST_CASE("factories create the part of every rank") {
  on_ranks({1, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto check = [&](const auto& x, double value) {
      const auto whole = x.full_tensor().to(Host{});
      CHECK(whole.shape() == std::array<index_t, 2>{5, 2});
      for (index_t i = 0; i < 10; ++i) CHECK(whole.data()[i] == value);
    };
    check(zeros<double>({5, 2}, mesh, Shard<0>{}), 0);
    check(ones<float>({5, 2}, mesh, Shard<1>{}), 1);
    check(full<std::int32_t>({5, 2}, 7, mesh, Replicate{}), 7);
    CHECK(empty<float>({5, 2}, mesh, Shard<0>{}).shape() == std::array<index_t, 2>{5, 2});
    const auto everywhere = ones<float>({5, 2}, mesh);
    static_assert(std::is_same_v<decltype(everywhere)::placements_type, Placements<Replicate>>);
    check(everywhere, 1);
    CHECK(error_of([&] { zeros<float>({5, -2}, mesh, Shard<0>{}); }) ==
          "Tensor: extent -2 of dimension 1 is negative");
  });
}

TEST_CASE("local tensors become one array whose shape follows from theirs") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const IndexRange mine = shard_range(5, world.size(), world.rank());
    const auto part = counting<double>(5, 3).to(TestDevice{}).slice(0, mine.begin, mine.end);
    const auto x = from_local(part, mesh, Shard<0>{});
    CHECK(x.shape() == std::array<index_t, 2>{5, 3});
    CHECK(x.to_local().data() == part.data());
    CHECK(is_counting(x.full_tensor(), 5, 3));
    const auto y = from_local(part, mesh, Shard<0>{}, {5, 3});
    CHECK(is_counting(y.full_tensor(), 5, 3));
    using X = std::remove_cvref_t<decltype(x)>;
    CHECK(is_counting(X::unchecked(part, mesh, {5, 3}).full_tensor(), 5, 3));
  });
}

TEST_CASE("addends become a partial whose value is their sum") {
  on_ranks({1, 2, 5}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = from_local(counting<double>(3, 4).to(TestDevice{}), mesh, Partial<Sum>{});
    CHECK(x.shape() == std::array<index_t, 2>{3, 4});
    const auto whole = x.full_tensor().to(Host{});
    for (index_t i = 0; i < 12; ++i) CHECK(whole.data()[i] == double(i * world.size()));
    const auto largest = from_local(counting<double>(3, 4).to(TestDevice{}), mesh, Partial<Max>{});
    CHECK(is_counting(largest.redistribute(Shard<1>{}).full_tensor(), 3, 4));
    CHECK(x.to_local().to(Host{})(0, 1) == 1);  // no implicit reduction
  });
}

TEST_CASE("parts that do not follow the chunk rule are refused on every rank") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {3}, TestDevice{});
    const auto part = zeros<float>({1 + world.rank(), 2}, mesh[tp{}], Replicate{}).to_local();
    const std::string text = error_of([&] { from_local(part, mesh, Shard<0>{}); });
    CHECK(text.find("from_local: the local tensors add up to [6, 2], of which rank 0 owns [2, 2], "
                    "but it passed [1, 2] [shapes [6, 2]; placements (Shard(0)); mesh tp=3") == 0);
    const std::string mine = error_of([&] { from_local(part, mesh, Shard<0>{}, {6, 2}); });
    if (world.rank() == 1) CHECK(mine == "");
    else CHECK(mine.find("this rank owns [2, 2]") != std::string::npos);
  });
}

TEST_CASE("parts of different arrays are an error on all ranks") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {3}, TestDevice{});
    const bool odd_one = world.rank() == 1;
    const std::string who = " [mesh tp=3; rank " + std::to_string(world.rank()) + "]";
    const Tensor<float, 2, TestDevice> part({2, 3});
    part.fill_(1);
    CHECK(error_of([&] {
            if (odd_one) from_local(Tensor<double, 2, TestDevice>({2, 3}), mesh, Shard<0>{});
            else from_local(part, mesh, Shard<0>{});
          }) ==
          "from_local: rank 0 passed float32 [2, 3] under (Shard(0)), rank 1 passed float64 "
          "[2, 3] under (Shard(0))" +
              who);
    CHECK(error_of([&] {
            if (odd_one) from_local(part, mesh, Replicate{});
            else from_local(part, mesh, Shard<0>{});
          }) ==
          "from_local: rank 0 passed float32 [2, 3] under (Shard(0)), rank 1 passed float32 "
          "[2, 3] under (Replicate)" +
              who);
    CHECK(error_of([&] {
            if (odd_one) from_local(Tensor<float, 1, TestDevice>({2}), mesh, Shard<0>{});
            else from_local(part, mesh, Shard<0>{});
          }) ==
          "from_local: rank 0 passed float32 [2, 3] under (Shard(0)), rank 1 passed float32 "
          "[2] under (Shard(0))" +
              who);
    const std::array<index_t, 2> shape{6, odd_one ? 4 : 3};
    const Tensor<float, 2, TestDevice> mine({2, shape[1]});
    CHECK(error_of([&] { from_local(mine, mesh, Shard<0>{}, shape); }) == "");
    CHECK(error_of([&] {
            from_local(mine, mesh, Placements<Shard<0>>{}, shape, {.run_check = true});
          }) ==
          "from_local: rank 0 passed float32 [2, 3] under (Shard(0)) of [6, 3], rank 1 passed "
          "float32 [2, 4] under (Shard(0)) of [6, 4]" +
              who);
    const std::string refused = error_of([&] {
      from_local(odd_one ? part.slice(0, 0, 1) : part, mesh, Placements<Shard<0>>{}, {6, 3},
                 {.run_check = true});
    });
    CHECK(refused.find("from_local: the global tensor is [6, 3], of which rank 1 owns [2, 3], but "
                       "it passed [1, 3]") == 0);
  });
}

TEST_CASE("run_check makes replicas equal without touching the caller's tensor") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const Tensor<float, 2, TestDevice> part({2, 3});
    part.fill_(float(world.rank()));
    const auto x = from_local(part, mesh, Placements<Replicate, Shard<0>>{}, {.run_check = true});
    CHECK(x.to_local().to(Host{})(0, 0) == float(world.rank() % 2));
    CHECK(part.to(Host{})(0, 0) == float(world.rank()));
    const auto y =
        from_local(part, mesh, Placements<Replicate, Shard<0>>{}, {4, 3}, {.run_check = true});
    CHECK(y.to_local().to(Host{})(1, 2) == float(world.rank() % 2));
    CHECK(part.to(Host{})(1, 2) == float(world.rank()));
  });
}

TEST_CASE("a transposed local tensor is distributed and moved by its values") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    Tensor<float, 2> columns({6, 5});
    for (index_t i = 0; i < 5; ++i)
      for (index_t j = 0; j < 6; ++j) columns(j, i) = float(i * 6 + j);
    const auto transposed = columns.to(TestDevice{}).transpose(0, 1);
    const auto x = distribute_tensor(transposed, mesh, Shard<0>{});
    CHECK(is_part_of_counting(x));
    const auto y = from_local(transposed, mesh, Replicate{});
    CHECK(is_part_of_counting(y.redistribute(Shard<1>{})));
  });
}

TEST_CASE("scalars are replicated or partial") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {3}, TestDevice{});
    const Tensor<double, 0, TestDevice> one;
    one.fill_(1.0 + world.rank());
    const auto x = from_local(one, mesh, Partial<Sum>{});
    CHECK(x.full_tensor().item() == 6);
  });
}

TEST_CASE("item is the only element, on every rank and under every placement") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {3}, TestDevice{});
    const Tensor<double, 0, TestDevice> one;
    one.fill_(1.0 + world.rank());
    CHECK(from_local(one, mesh, Partial<Sum>{}).item() == 6);
    CHECK(from_local(one, mesh, Partial<Max>{}).item() == 3);
    CHECK(full<std::int64_t>({1, 1}, 7, mesh, Shard<1>{}).item() == 7);
    const auto x = zeros<float>({2, 3}, mesh, Shard<0>{});
    CHECK(error_of([&] { x.item(); }) ==
          "item: the tensor has 6 elements, not one [shapes [2, 3]; placements (Shard(0)); mesh "
          "tp=3; rank " +
              std::to_string(world.rank()) + "]");
    CHECK(error_of([&] {
            zeros<float>({0}, mesh, Shard<0>{}).item();
          }).starts_with("item: the tensor has 0 elements, not one [shapes [0]"));
    const auto first = init_device_mesh<dp>(world, {1}, {0}, TestDevice{});
    const auto there = full<float>({1}, 2.0f, first, Shard<0>{});
    if (world.rank() == 0) CHECK(there.item() == 2.0f);
    else
      CHECK(error_of([&] {
              there.item();
            }).starts_with("item: this rank is outside the mesh and holds no element [shapes [1]"));
  });
}

TEST_CASE("the global shape may follow the placements, on meshes of one to four axes") {
  on_ranks({1}, [](World& world) {
    const auto part = counting<float>(4, 3).to(TestDevice{});
    const auto line = init_device_mesh<dp>(world, {1}, TestDevice{});
    const auto plane = init_device_mesh<dp, tp>(world, {1, 1}, TestDevice{});
    const auto cube = init_device_mesh<dp, tp, pp>(world, {1, 1, 1}, TestDevice{});
    const auto four = init_device_mesh<dp, tp, pp, cp>(world, {1, 1, 1, 1}, TestDevice{});
    CHECK(is_counting(from_local(part, line, Shard<0>{}, {4, 3}).full_tensor(), 4, 3));
    CHECK(is_counting(from_local(part, plane, Shard<0>{}, Shard<1>{}, {4, 3}).to_local(), 4, 3));
    CHECK(is_counting(
        from_local(part, cube, Shard<0>{}, Shard<-1>{}, Replicate{}, {4, 3}).to_local(), 4, 3));
    CHECK(is_counting(
        from_local(part, four, Shard<0>{}, Shard<1>{}, Replicate{}, Shard<0>{}, {4, 3}).to_local(),
        4, 3));
    const auto row = part.select(0, 1);  // one extent in braces is a shape, not an option
    CHECK(from_local(row, line, Placements<Shard<0>>{}, {3}).extent(0) == 3);
    CHECK(
        error_of([&] { from_local(part, line, Shard<0>{}, {4, 4}); }) ==
        "from_local: the local tensor is [4, 3], this rank owns [4, 4] [shapes [4, 4]; placements "
        "(Shard(0)); mesh dp=1; rank 0]");
    CHECK(error_of([&] { from_local(part, line, Shard<0>{}, {4, -3}); }) ==
          "Tensor: extent -3 of dimension 1 is negative");
  });
}

TEST_CASE("the type of a tensor prints as in source code") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    CHECK(to_string(zeros<float>({1797, 64}, mesh, Shard<0>{}, Shard<1>{})) ==
          "f32[1797@dp, 64@tp] on dp=2 x tp=2");
    CHECK(to_string(zeros<bfloat16>({64, 8}, mesh, Shard<0>{}, Shard<0>{})) ==
          "bf16[64@dp,tp, 8] on dp=2 x tp=2");
    CHECK(to_string(zeros<bool>({8}, mesh, Replicate{}, Replicate{})) == "bool[8] on dp=2 x tp=2");
    const Tensor<double, 2, TestDevice> part({8, 2});
    part.fill_(0);
    CHECK(to_string(from_local(part, mesh, Shard<1>{}, Partial<Sum>{})) ==
          "f64[8, 4@dp] sum over tp on dp=2 x tp=2");
    CHECK(to_string(from_local(part, mesh, Partial<Max>{}, Partial<Max>{})) ==
          "f64[8, 2] max over dp,tp on dp=2 x tp=2");
    CHECK(to_string(from_local(part, mesh, Partial<Avg>{}, Partial<Sum>{})) ==
          "f64[8, 2] sum over tp avg over dp on dp=2 x tp=2");
    CHECK(type_text(part) == "f64[8, 2]");
    CHECK(type_text(Tensor<std::int64_t, 0, TestDevice>()) == "i64[]");
  });
}

TEST_CASE("a sharding is drawn as a table of owners") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    CHECK(visualize_sharding(zeros<float>({5, 6}, mesh, Shard<0>{}, Shard<1>{})) ==
          "    | 0:3 | 3:6\n"
          "0:3 | 0   | 1\n"
          "3:5 | 2   | 3\n");
    CHECK(visualize_sharding(zeros<float>({5, 6}, mesh, Replicate{}, Shard<0>{})) ==
          "    | 0:6\n"
          "0:3 | 0,2\n"
          "3:5 | 1,3\n");
    CHECK(visualize_sharding(zeros<float>({3}, mesh, Shard<0>{}, Shard<0>{})) ==
          " | 0:1 | 1:2 | 2:3\n"
          " | 0   | 1   | 2\n");
    CHECK(to_string(zeros<float>({5, 6}, mesh, Shard<0>{}, Replicate{})) ==
          "f32[5@dp, 6] on dp=2 x tp=2");
  });
}
