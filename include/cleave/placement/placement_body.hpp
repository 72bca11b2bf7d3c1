// Placements as text, and the table of all cut points of a process.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/core/error.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Number n is entry n - 2^k of list k, for k = floor(log2 n): lists never move, so that ranks read
/// them without a lock.
struct CutPointsTable {
  struct Known {
    std::uint64_t checksum;
    std::int32_t number;
  };

  std::mutex mutex{};          ///< of `known`, and of writes to `lists`
  std::vector<Known> known{};  ///< ascending by checksum
  std::array<std::atomic<CutPoints*>, 31> lists{};

  static CutPointsTable& all() {
    static auto* const table = new CutPointsTable;  // used until the last thread has ended
    return *table;
  }
  std::atomic<CutPoints*>& list(std::int32_t number) {
    return lists[std::size_t(std::bit_width(std::uint32_t(number)) - 1)];
  }
  CutPoints& at(std::int32_t number) {
    return list(number).load(
        std::memory_order_acquire)[std::uint32_t(number) - std::bit_floor(std::uint32_t(number))];
  }
};

CLEAVE_INLINE const CutPoints& cut_points(std::int32_t number) {
  if (number <= 0) throw Error("Cuts", "there are no cut points yet");
  return CutPointsTable::all().at(number);
}

CLEAVE_INLINE std::int32_t number_of_points(std::span<const index_t> points) {
  if (points.size() < 2 || points[0] != 0 || !std::is_sorted(points.begin(), points.end())) {
    std::string text;
    for (const index_t point : points) text += (text.empty() ? "" : ", ") + std::to_string(point);
    throw Error("Cuts",
                "cut points are the begin of each rank's part, and the extent: at least two "
                "numbers, from 0 on, ascending; these are [" +
                    text + "]");
  }
  CutPointsTable& table = CutPointsTable::all();
  const std::uint64_t sum = checksum(points);
  const std::lock_guard lock(table.mutex);
  auto place = std::lower_bound(
      table.known.begin(), table.known.end(), sum,
      [](const CutPointsTable::Known& k, std::uint64_t other) { return k.checksum < other; });
  for (; place != table.known.end() && place->checksum == sum; ++place) {
    const CutPoints& there = table.at(place->number);
    if (std::equal(points.begin(), points.end(), there.at, there.at + there.parts + 1))
      return place->number;
  }
  const auto number = std::int32_t(table.known.size()) + 1;
  if (std::atomic<CutPoints*>& list = table.list(number); list.load() == nullptr)
    list.store(new CutPoints[std::bit_floor(std::uint32_t(number))]);
  auto* const kept = new index_t[points.size()];
  std::copy(points.begin(), points.end(), kept);
  table.at(number) = {kept, index_t(points.size()) - 1, sum};
  table.known.insert(place, {sum, number});
  return number;
}

}  // namespace detail

CLEAVE_INLINE std::string to_string(const Placement& p) {
  const auto number = [&] { return p.number == 0 ? "" : ", " + std::to_string(p.number); };
  switch (p.kind) {
    case PlacementKind::replicate: return "Replicate";
    case PlacementKind::shard: return "Shard(" + std::to_string(int(p.dim)) + ")";
    case PlacementKind::balanced: return "Balanced(" + std::to_string(int(p.dim)) + ")";
    case PlacementKind::block_cyclic:
      return "BlockCyclic(" + std::to_string(int(p.dim)) + number() + ")";
    case PlacementKind::cuts: {
      std::string text = "Cuts(" + std::to_string(int(p.dim));
      if (p.number == 0) return text + ")";
      const detail::CutPoints& cuts = detail::cut_points(p.number);
      constexpr index_t most = 16;  // points that are printed
      for (index_t i = 0; i <= cuts.parts; ++i)
        if (i < most || i == cuts.parts)
          text += (i == 0 ? ", [" : i > most ? ", .., " : ", ") + std::to_string(cuts.at[i]);
      return text + "])";
    }
    case PlacementKind::owned:
      return "Owned(" + std::to_string(p.number) + ", " + std::to_string(int(p.dim)) + ")";
    case PlacementKind::partial: return std::string("Partial(") + name_of(p.op) + ")";
  }
  return {};
}

CLEAVE_INLINE std::string to_string(const Layout& layout) {
  std::string text = "(";
  for (int a = 0; a < layout.axes; ++a) text += (a ? ", " : "") + to_string(layout[a]);
  return text + ")";
}

}  // namespace cleave::inline v0
