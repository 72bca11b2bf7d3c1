// A separate source file, compiled with optimisation: tests spend much of their time here.
#include "naive.hpp"

namespace cleave::naive {

std::vector<Indices> all_indices(const Indices& extents) {
  std::vector<Indices> result{{}};
  for (const index_t extent : extents) {
    std::vector<Indices> longer;
    for (const Indices& head : result)
      for (index_t i = 0; i < extent; ++i) {
        longer.push_back(head);
        longer.back().push_back(i);
      }
    result = longer;
  }
  return result;
}

std::vector<Indices> chunks(const Indices& list, index_t parts) {
  std::vector<Indices> result(std::size_t(parts), Indices{});
  std::size_t size = 0;
  while (size * std::size_t(parts) < list.size()) ++size;
  for (std::size_t i = 0; i < list.size(); ++i) result[i / size].push_back(list[i]);
  return result;
}

std::vector<Indices> cut(const Indices& list, index_t parts, const Placement& how) {
  if (how.kind == PlacementKind::shard) return chunks(list, parts);
  std::vector<Indices> result(std::size_t(parts), Indices{});
  std::size_t next = 0;
  for (index_t part = 0; how.kind == PlacementKind::balanced && part < parts; ++part) {
    std::size_t left = list.size() - next;  // the most equal parts of what is left
    while (left % std::size_t(parts - part) != 0) ++left;
    for (std::size_t i = 0; i < left / std::size_t(parts - part); ++i)
      result[std::size_t(part)].push_back(list[next++]);
  }
  for (; how.kind == PlacementKind::cuts && next < list.size(); ++next) {
    const detail::CutPoints& points = detail::cut_points(how.number);
    index_t part = 0;  // its end, and the last one of the axis, take all that is left
    while (part + 1 < parts && part + 1 < points.parts && index_t(next) >= points.at[part + 1])
      ++part;
    result[std::size_t(part)].push_back(list[next]);
  }
  if (how.kind == PlacementKind::owned) result[std::size_t(how.number)] = list;
  while (how.kind == PlacementKind::block_cyclic && next < list.size())
    for (index_t part = 0; part < parts; ++part)
      for (int i = 0; i < how.number && next < list.size(); ++i)
        result[std::size_t(part)].push_back(list[next++]);
  return result;
}

Indices owned(const Layout& layout, int d, const Indices& shape, const Indices& mesh,
              const Indices& coordinate) {
  Indices list;
  for (index_t i = 0; i < shape[std::size_t(d)]; ++i) list.push_back(i);
  for (int a = 0; a < layout.axes; ++a) {
    if (!layout[a].shards() || layout[a].dim != d) continue;
    const Indices piece =
        cut(list, mesh[std::size_t(a)], layout[a])[std::size_t(coordinate[std::size_t(a)])];
    list = piece;
  }
  return list;
}

std::vector<Indices> elements(const Layout& layout, const Indices& shape, const Indices& mesh,
                              const Indices& coordinate) {
  std::vector<Indices> lists;
  Indices extents;
  for (int d = 0; d < int(shape.size()); ++d) {
    lists.push_back(owned(layout, d, shape, mesh, coordinate));
    extents.push_back(index_t(lists.back().size()));
  }
  std::vector<Indices> result = all_indices(extents);
  for (Indices& at : result)
    for (std::size_t d = 0; d < at.size(); ++d) at[d] = lists[d][std::size_t(at[d])];
  return result;
}

Indices to_indices(const Shape& shape) { return Indices(shape.begin(), shape.end()); }

Shape shape_of(const Indices& values) {
  Shape shape;
  for (const index_t value : values) shape[shape.dims++] = value;
  return shape;
}

std::vector<Layout> layouts_over(const std::vector<std::vector<Placement>>& alphabets) {
  std::vector<Layout> result;
  Indices sizes;
  for (const auto& alphabet : alphabets) sizes.push_back(index_t(alphabet.size()));
  for (const Indices& choice : all_indices(sizes)) {
    Layout layout;
    layout.axes = int(alphabets.size());
    for (int a = 0; a < layout.axes; ++a)
      layout[a] = alphabets[std::size_t(a)][std::size_t(choice[std::size_t(a)])];
    result.push_back(layout);
  }
  return result;
}

std::vector<Layout> layouts_over(int axes, const std::vector<Placement>& alphabet) {
  return layouts_over(std::vector(std::size_t(axes), alphabet));
}

int addend(const Indices& index, const Indices& partial_coordinate) {
  std::uint64_t hash = 1469598103934665603ull;
  for (const index_t i : index) hash = (hash ^ std::uint64_t(i + 1)) * 1099511628211ull;
  for (const index_t i : partial_coordinate)
    hash = (hash ^ std::uint64_t(i + 17)) * 1099511628211ull;
  return int((hash >> 33) % 9) - 4;
}

Indices partial_coordinate(const Layout& layout, const Indices& coordinate) {
  Indices result = coordinate;
  for (int a = 0; a < layout.axes; ++a)
    if (!layout[a].is_partial()) result[std::size_t(a)] = 0;
  return result;
}

}  // namespace cleave::naive
