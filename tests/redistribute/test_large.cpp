// More elements than 32 bits can count.
#include <doctest/doctest.h>

#include <cleave/mesh/device_mesh.hpp>
#include <cleave/redistribute/execute.hpp>

#include <unistd.h>

#include <array>
#include <cstdint>

#include "ranks.hpp"
#include "sanitizer.hpp"

using namespace cleave;

namespace {

double available_gigabytes() {
  return double(sysconf(_SC_AVPHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)) * 1e-9;
}

/// A byte that depends on row and column.
std::int8_t element(index_t i, index_t j) { return std::int8_t((i * 31 + j * 7) % 113); }

}  // namespace

TEST_CASE("a tensor of more than 2^31 elements is redistributed element by element") {
  if (cleave::testing::sanitized) return skip("too slow under a sanitizer");
  if (available_gigabytes() < 8) return skip("needs 8 GB of free memory");
  on_ranks({2}, [](World& world) {
    // 65,537 x 32,771 = 2,147,713,027 > 2^31 bytes: shards of 1.07 GB
    constexpr index_t rows = 65537, columns = 32771;
    static_assert(rows * columns > index_t(1) << 31);
    const auto mesh = init_device_mesh<axes::tp>(world, {2});
    const Shape shape(std::array<index_t, 2>{rows, columns});
    Layout by_rows, by_columns;
    by_rows.axes = by_columns.axes = 1;
    by_rows[0] = Placement::shard(0);
    by_columns[0] = Placement::shard(1);
    const auto move = [&](redistribution::Block block, const Layout& from, const Layout& to) {
      return redistribution::run(nullptr, from, to, std::move(block),
                                 {mesh.state(), shape, "redistribute"});
    };
    const Box mine = owned_box(by_rows, shape, mesh.extents(), mesh.coordinate());
    redistribution::Block block = redistribution::allocate(DType::int8, mine.extents());
    auto* data = static_cast<std::int8_t*>(block.view.data);
    for (index_t i = mine.begin[0]; i < mine.end[0]; ++i)
      for (index_t j = 0; j < columns; ++j) *data++ = element(i, j);

    block = move(std::move(block), by_rows, by_columns);
    const Box now = owned_box(by_columns, shape, mesh.extents(), mesh.coordinate());
    REQUIRE(block.view.size() == now.volume());
    index_t wrong = 0;
    const auto* read = static_cast<const std::int8_t*>(block.view.data);
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = now.begin[1]; j < now.end[1]; ++j) wrong += *read++ != element(i, j);
    CHECK(wrong == 0);

    Layout replicated;
    replicated.axes = 1;
    block = move(std::move(block), by_columns, replicated);
    REQUIRE(block.view.size() == rows * columns);
    wrong = 0;
    read = static_cast<const std::int8_t*>(block.view.data);
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) wrong += *read++ != element(i, j);
    CHECK(wrong == 0);
  });
}
