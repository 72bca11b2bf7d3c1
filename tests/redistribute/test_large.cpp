// More elements than a 32-bit integer can count.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include <cleave/mesh/device_mesh.hpp>
#include <cleave/redistribute/redistribute_local.hpp>

#include "device.hpp"
#include "effort.hpp"
#include "ranks.hpp"

using namespace cleave;

namespace {

double available_gigabytes() {
  return double(sysconf(_SC_AVPHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)) * 1e-9;
}

/// Rows of bytes: element (i, j) is (i * 31 + j * 7) % 113. Row i equals row i + 113.
class Pattern {
 public:
  explicit Pattern(index_t columns) : columns_(columns), rows_(std::size_t(113 * columns)) {
    for (index_t i = 0; i < 113; ++i)
      for (index_t j = 0; j < columns; ++j)
        rows_[std::size_t(i * columns + j)] = std::int8_t((i * 31 + j * 7) % 113);
  }
  const std::int8_t* row(index_t i) const { return &rows_[std::size_t(i % 113 * columns_)]; }

 private:
  index_t columns_;
  std::vector<std::int8_t> rows_;
};

/// The number of rows of the block that differ from the box of the pattern.
index_t wrong_rows(const redistribution::Block& block, const Box& box, const Pattern& pattern) {
  index_t wrong = 0;
  const auto* read = static_cast<const std::int8_t*>(block.view.data);
  const auto width = std::size_t(box.extent(1));
  for (index_t i = box.begin[0]; i < box.end[0]; ++i, read += width)
    wrong += std::memcmp(read, pattern.row(i) + box.begin[1], width) != 0;
  return wrong;
}

}  // namespace

TEST_CASE("a tensor of more than 2^31 elements is redistributed element by element") {
  if (!cleave::testing::thorough()) return skip("takes long: CLEAVE_TEST_THOROUGH=1 runs it");
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
      return redistribution::run<TestDevice>(nullptr, from, to, std::move(block),
                                             {mesh.state(), shape, "redistribute"});
    };
    const Box mine = owned_box(by_rows, shape, mesh.extents(), mesh.coordinate());
    redistribution::Block block = redistribution::allocate<TestDevice>(DType::int8, mine.extents());
    const Pattern pattern(columns);
    auto* data = static_cast<std::int8_t*>(block.view.data);
    for (index_t i = mine.begin[0]; i < mine.end[0]; ++i, data += columns)
      std::memcpy(data, pattern.row(i), std::size_t(columns));

    block = move(std::move(block), by_rows, by_columns);
    const Box now = owned_box(by_columns, shape, mesh.extents(), mesh.coordinate());
    REQUIRE(block.view.size() == now.volume());
    CHECK(wrong_rows(block, now, pattern) == 0);

    Layout replicated;
    replicated.axes = 1;
    block = move(std::move(block), by_columns, replicated);
    REQUIRE(block.view.size() == rows * columns);
    CHECK(wrong_rows(block, Box::of(shape), pattern) == 0);
  });
}
