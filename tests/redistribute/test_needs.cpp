// What ranks read for their parts of a result, with every rank simulated: values, bytes and
// messages are those of naive loops over global indices.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/redistribute/needs.hpp>

#include "naive.hpp"

namespace needs_tests {

using namespace cleave;
using namespace cleave::redistribution;
using naive::Indices;
using naive::shape_of;

namespace {

index_t naive_floor(index_t a, index_t b) {
  index_t q = -1000;
  while ((q + 1) * b <= a) ++q;
  return q;
}

/// The indices from the first to the last that a list of results reads.
Indices naive_reads(const DimMap& map, const Indices& results) {
  std::set<index_t> read;
  for (const index_t i : results)
    for (index_t j = naive_floor(map.num * i + map.lo, map.den);
         j <= naive_floor(map.num * i + map.hi, map.den); ++j)
      read.insert(j);
  Indices list;
  if (!read.empty())
    for (index_t i = *read.begin(); i <= *read.rbegin(); ++i) list.push_back(i);
  return list;
}

struct Element {
  index_t value = -1;
  int writes = 0;
};

/// The elements of one rank's box of needed elements, row-major.
using Elements = std::map<Indices, Element>;

/// One problem, simulated on all ranks.
class Simulation {
 public:
  Simulation(const Needs& needs, const Indices& mesh)
      : needs_(needs),
        mesh_(mesh),
        operand_(naive::to_indices(needs.operand_shape)),
        result_(naive::to_indices(needs.result_shape)),
        ranks_(naive::all_indices(mesh)) {
    for (const Indices& at : ranks_)
      plans_.push_back(need_transfers(needs, shape_of(mesh), shape_of(at)));
  }

  /// What is wrong; empty if nothing is.
  std::string problem() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (const std::string wrong = problem_of(r); !wrong.empty()) return wrong;
    std::size_t sends = 0, receives = 0;
    for (const Transfers& plan : plans_)
      sends += plan.sends.size(), receives += plan.receives.size();
    return sends == receives ? "" : "transfers are sent that nobody receives";
  }

 private:
  bool owns(const Indices& at, const Indices& index) const {
    for (int d = 0; d < int(index.size()); ++d) {
      const Indices own = naive::owned(needs_.operand.layout, d, operand_, mesh_, at);
      if (std::find(own.begin(), own.end(), index[std::size_t(d)]) == own.end()) return false;
    }
    return true;
  }
  bool exchanges(std::size_t axis) const { return (axes_of(needs_) >> axis & 1u) != 0; }
  /// The rank that has a number in the group of `at`.
  std::size_t member(const Indices& at, int number) const {
    int n = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      bool in_group = true;
      for (std::size_t a = 0; a < at.size(); ++a)
        in_group = in_group && (exchanges(a) || ranks_[r][a] == at[a]);
      if (in_group && n++ == number) return r;
    }
    return ranks_.size();
  }
  index_t value_of(const Indices& index) const {
    index_t value = 0;
    for (std::size_t d = 0; d < index.size(); ++d) value = value * operand_[d] + index[d];
    return value;
  }

  std::string problem_of(std::size_t r) const {
    const Indices& at = ranks_[r];
    const int dims = int(operand_.size());
    std::vector<Indices> parts, needed;
    Indices extents, begin;
    for (int d = 0; d < dims; ++d) {
      parts.push_back(naive::owned(needs_.result.layout, d, result_, mesh_, at));
      needed.push_back(naive_reads(needs_.maps[std::size_t(d)], parts.back()));
    }
    for (const Indices& part : parts)
      if (part.empty()) needed.assign(std::size_t(dims), {});
    for (const Indices& list : needed) {
      extents.push_back(index_t(list.size()));
      begin.push_back(list.empty() ? 0 : list.front());
    }
    Elements want, have;
    NeedCounts counts;
    std::set<std::size_t> owners;
    for (const Indices& place : naive::all_indices(extents)) {
      Indices source;
      int beyond = 0;
      bool inside = true, moved = false;
      for (std::size_t d = 0; d < place.size(); ++d) {
        const index_t i = needed[d][std::size_t(place[d])];
        beyond += std::find(parts[d].begin(), parts[d].end(), i) == parts[d].end();
        index_t j = i;
        if (needs_.maps[d].beyond == Beyond::wrap && operand_[d] > 0) {
          while (j < 0) j += operand_[d];
          while (j >= operand_[d]) j -= operand_[d];
        }
        moved = moved || i != j;
        inside = inside && j >= 0 && j < operand_[d];
        source.push_back(j);
      }
      const bool read = inside && (!needs_.star || beyond <= 1);
      want[place] = {read ? value_of(source) : -1, int(read)};
      if (!read) continue;
      if (owns(at, source)) {
        if (needs_.own_in_place && !moved) have[place] = {value_of(source), 1};
        else ++counts.own;
        continue;
      }
      ++counts.elements;
      for (std::size_t o = 0;; ++o)
        if (const std::size_t owner = member(at, int(o)); owns(ranks_[owner], source)) {
          owners.insert(owner);
          break;
        }
    }
    counts.messages = int(owners.size());
    if (!(need_counts(needs_, shape_of(mesh_), shape_of(at)) == counts)) return "counts";
    std::map<int, std::size_t> taken;
    index_t received = 0, own = 0;
    for (const Transfer& t : plans_[r].receives) {
      const std::size_t peer = member(at, t.peer);
      const Transfer* sent = nullptr;
      std::size_t number = taken[t.peer]++;
      for (const Transfer& s : plans_[peer].sends)
        if (member(ranks_[peer], s.peer) == r && number-- == 0) sent = &s;
      if (sent == nullptr) return "a transfer that nobody sends";
      if (!(sent->source == t.source) || !(sent->destination == t.destination))
        return "sender and receiver differ";
      (peer == r ? own : received) += t.source.volume();
      Indices origin;
      for (int d = 0; d < dims; ++d) {
        const Indices list = naive::owned(needs_.operand.layout, d, operand_, mesh_, ranks_[peer]);
        origin.push_back(list.empty() ? 0 : list.front());
      }
      for (const Indices& k : naive::all_indices(naive::to_indices(t.source.extents()))) {
        Indices from = origin, to = k;
        for (int d = 0; d < dims; ++d) {
          from[std::size_t(d)] += t.source.begin[d] + k[std::size_t(d)];
          to[std::size_t(d)] += t.destination.begin[d];
        }
        if (!owns(ranks_[peer], from)) return "an element that the sender does not have";
        Element& element = have[to];
        element.value = value_of(from);
        ++element.writes;
      }
    }
    if (received != counts.elements || own != counts.own) return "bytes";
    for (const auto& [place, element] : want)
      if (have[place].value != element.value || have[place].writes != element.writes)
        return "an element is wrong, missing, or received twice";
    return have.size() == want.size() ? "" : "an element beyond the needed box";
  }

  Needs needs_;
  Indices mesh_, operand_, result_;
  std::vector<Indices> ranks_;
  std::vector<Transfers> plans_;
};

Needs needs_of(const Layout& operand, const Indices& operand_shape, const Layout& result,
               const Indices& result_shape, const std::vector<DimMap>& maps) {
  Needs needs{{operand}, {result}, shape_of(operand_shape), shape_of(result_shape)};
  for (std::size_t d = 0; d < maps.size(); ++d) needs.maps[d] = maps[d];
  return needs;
}

const std::vector<Indices> meshes{{1}, {2}, {3}, {4}, {7}, {2, 2}, {2, 3}, {3, 2}};

Layout random_layout(std::mt19937& random, int axes, int dims) {
  Layout layout = Layout::replicated(axes);
  for (int a = 0; a < axes; ++a)
    if (const int c = int(random() % unsigned(2 * dims + 1)); c > 0)
      layout[a] = Placement::shard((c - 1) % dims);
  return layout;
}

}  // namespace

TEST_CASE("ranks receive exactly what affine maps of any stride read") {
  std::mt19937 random(20261126);
  const auto between = [&](int low, int high) {
    return index_t(low + int(random() % unsigned(high - low + 1)));
  };
  for (int i = 0; i < 4000; ++i) {
    const Indices& mesh = meshes[random() % meshes.size()];
    const int dims = int(between(1, i % 8 == 0 ? 3 : 2));
    Indices from, to;
    std::vector<DimMap> maps;
    for (int d = 0; d < dims; ++d) {
      const int most = dims == 3 ? 4 : 9;
      from.push_back(between(0, most));
      to.push_back(between(0, most));
      DimMap map{between(-3, 3), between(1, 3), between(-5, 5)};
      const bool may_skip = map.num == 1 || map.num == -1;  // results that read nothing
      map.hi = map.lo + between(may_skip ? 1 - int(map.den) : 0, 5);
      map.beyond = between(0, 1) != 0 ? Beyond::wrap : Beyond::clip;
      maps.push_back(map);
    }
    const int axes = int(mesh.size());
    const Simulation all(needs_of(random_layout(random, axes, dims), from,
                                  random_layout(random, axes, dims), to, maps),
                         mesh);
    CAPTURE(i);
    REQUIRE(all.problem() == "");
  }
}

TEST_CASE("stencils receive what is beyond their part, star stencils no corners") {
  std::mt19937 random(20261127);
  const auto below = [&](unsigned n) { return index_t(random() % n); };
  for (int i = 0; i < 3000; ++i) {
    const Indices& mesh = meshes[random() % meshes.size()];
    const int dims = 1 + int(below(2));
    Indices shape;
    std::vector<DimMap> maps;
    for (int d = 0; d < dims; ++d) {
      shape.push_back(below(11));
      maps.push_back({1, 1, -below(6), below(6), below(2) != 0 ? Beyond::wrap : Beyond::clip});
    }
    const Layout layout = random_layout(random, int(mesh.size()), dims);
    Needs needs = needs_of(layout, shape, layout, shape, maps);
    needs.star = below(2) != 0;
    needs.own_in_place = below(2) != 0;
    CAPTURE(i);
    REQUIRE(Simulation(needs, mesh).problem() == "");
  }
}

TEST_CASE("the counts of a plan are constants where extents are") {
  // 8 x 6 elements over 2 x 2 ranks, 4 x 3 each; rank (0, 0) in a periodic domain, reach 1
  constexpr Layout layout = layout_of<Placements<Shard<0>, Shard<1>>, 2>;
  constexpr Shape shape(std::array<index_t, 2>{8, 6}), mesh(std::array<index_t, 2>{2, 2});
  constexpr Needs box = [&] {
    Needs needs{{layout}, {layout}, shape, shape};
    needs.maps[0] = needs.maps[1] = {1, 1, -1, 1, Beyond::wrap};
    needs.own_in_place = true;
    return needs;
  }();
  constexpr Needs star = [&] {
    Needs needs = box;
    needs.star = true;
    return needs;
  }();
  constexpr Shape first(std::array<index_t, 2>{0, 0});
  static_assert(need_counts(box, mesh, first) == NeedCounts{18, 0, 3});   // 6 * 5 - 4 * 3
  static_assert(need_counts(star, mesh, first) == NeedCounts{14, 0, 2});  // without four corners
  CHECK(need_counts(star, mesh, first).messages == 2);
}

TEST_CASE("ranks exchange over the axes that shard a dimension of which they read more") {
  constexpr auto axes = [](const Layout& operand, const Layout& result, const DimMap& rows) {
    const Shape shape(std::array<index_t, 2>{8, 6});
    Needs needs{{operand}, {result}, shape, shape};
    needs.maps[0] = rows;
    return axes_of(needs);
  };
  constexpr Layout crossed = layout_of<Placements<Shard<0>, Shard<1>>, 2>;
  constexpr Layout nested = layout_of<Placements<Shard<0>, Shard<0>>, 2>;
  constexpr Layout columns = layout_of<Placements<Replicate, Shard<1>>, 2>;
  constexpr DimMap own{1, 1, 0, 0}, above{1, 1, -1, 0};
  static_assert(axes(crossed, crossed, own) == 0);
  static_assert(axes(crossed, crossed, above) == 1);
  static_assert(axes(nested, nested, above) == 3);
  static_assert(axes(columns, columns, above) == 0);
  static_assert(axes(columns, crossed, own) == 0);
  static_assert(axes(crossed, columns, own) == 1);
  CHECK(axes(crossed, nested, own) == 3);
}

TEST_CASE("planning a stencil takes no longer on more ranks") {
  const Layout layout = layout_of<Placements<Shard<0>, Shard<1>>, 2>;
  const Shape mesh(std::array<index_t, 2>{1024, 1024});
  const Shape shape(std::array<index_t, 2>{1 << 20, 1 << 20});
  Needs needs{{layout}, {layout}, shape, shape};
  needs.maps[0] = needs.maps[1] = {1, 1, -2, 2, Beyond::wrap};
  needs.own_in_place = true;
  const Transfers plan = need_transfers(needs, mesh, Shape(std::array<index_t, 2>{0, 511}));
  CHECK(plan.sends.size() == 8);  // among a million ranks: the test would not end in its time
  CHECK(plan.receives.size() == 8);
}

}  // namespace needs_tests
