// Placements as types and as values.
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/placement/placement.hpp>

using namespace cleave;

TEST_CASE("negative dimensions count from the end") {
  using List = Placements<Shard<-1>, Shard<0>, Shard<-2>>;
  static_assert(std::is_same_v<normalized_t<List, 2>, Placements<Shard<1>, Shard<0>, Shard<0>>>);
  static_assert(layout_of<List, 2>[0].shards(1));
  CHECK(to_string(layout_of<List, 3>) == "(Shard(2), Shard(0), Shard(1))");
}

TEST_CASE("a layout survives packing into 64 bits and back to types") {
  using List = Placements<Shard<7>, Replicate, Partial<Sum>, Partial<Avg>, Partial<Max>,
                          Partial<Min>, Partial<Product>, Shard<0>>;
  static_assert(std::is_same_v<normalized_t<List, 8>, List>);
  constexpr Layout layout = layout_of<List, 8>;
  static_assert(Layout::of_codes(layout.codes(), 8) == layout && layout.packs());
  static_assert(Layout::unpacked(layout.packed(), 8) == layout);
  constexpr Layout cut = layout_of<Placements<BlockCyclic<0, 64>, Owned<3, 1>, Balanced<-1>>, 2>;
  static_assert(cut.packs() && Layout::unpacked(cut.packed(), 3) == cut);
  static_assert(!layout_of<Placements<BlockCyclic<0, 8192>, Shard<0>, Shard<0>>, 1>.packs());
  CHECK(to_string(layout) ==
        "(Shard(7), Replicate, Partial(sum), Partial(avg), Partial(max), Partial(min), "
        "Partial(product), Shard(0))");
}

TEST_CASE("placements are empty types") {
  static_assert(std::is_empty_v<Shard<3>> && std::is_empty_v<Replicate> &&
                std::is_empty_v<Partial<Max>> && std::is_empty_v<Placements<Shard<0>, Replicate>>);
  static_assert(PlacementType<Shard<-1>> && !PlacementType<int> && !PlacementType<Sum>);
  CHECK(std::string(name_of(ReduceOp::product)) == "product");
}
