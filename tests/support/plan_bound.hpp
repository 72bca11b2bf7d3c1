// The minimum number of elements that a redistribution can receive, by exhaustive search:
// independent of the planner, it counts with lists of indices.
//
// Without partials, each rank receives the elements that it must own and does not. With partials of
// one reduction, the search tries any slicing of the axes that replicate the addends (along any
// dimension), then an all-reduce over all partial axes or a reduce-scatter with any dimension for
// each of them, then one exchange. Ranks proceed in step, so a step counts the maximum over the
// ranks.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "naive.hpp"

namespace cleave::naive {

/// A shard of a dimension by an axis. A sequence of cuts describes what a rank owns.
struct Cut {
  int axis;
  int dim;
};
using Cuts = std::vector<Cut>;

class BoundSearch {
 public:
  BoundSearch(Indices mesh, Indices shape)
      : mesh_(std::move(mesh)), shape_(std::move(shape)), ranks_(all_indices(mesh_)) {}

  /// Elements received by the busiest rank of each step, in total. @pre one op at most
  index_t least(const Layout& from, const Layout& to) const {
    Cuts have = cuts_of(from);
    const Cuts want = cuts_of(to);
    std::vector<int> partial, replicated;
    index_t group = 1;
    for (int a = 0; a < from.axes; ++a) {
      if (from[a].is_partial()) {
        partial.push_back(a);
        group *= mesh_[std::size_t(a)];
      }
      if (from[a].is_replicate()) replicated.push_back(a);
    }
    if (partial.empty()) return max_lacking(have, want);
    index_t least = -1;
    const int dims = int(shape_.size());
    for (const Indices& slices : all_indices(Indices(replicated.size(), dims + 1))) {
      Cuts sliced = have;
      for (std::size_t i = 0; i < replicated.size(); ++i)
        if (slices[i] > 0) sliced.push_back({replicated[i], int(slices[i] - 1)});
      const index_t volume = max_owned(sliced);
      const auto keep = [&](index_t received) {
        if (least < 0 || received < least) least = received;
      };
      keep(2 * (group - 1) * volume / group + max_lacking(sliced, want));
      for (const Indices& scatter : all_indices(Indices(partial.size(), dims))) {
        Cuts scattered = sliced;
        for (std::size_t i = 0; i < partial.size(); ++i)
          scattered.push_back({partial[i], int(scatter[i])});
        keep((group - 1) * max_owned(scattered) + max_lacking(scattered, want));
      }
    }
    return least;
  }

 private:
  static Cuts cuts_of(const Layout& layout) {
    Cuts cuts;
    for (int a = 0; a < layout.axes; ++a)
      if (layout[a].shards()) cuts.push_back({a, layout[a].dim});
    return cuts;
  }

  /// The indices of one dimension as a range [first, last): cuts keep them consecutive.
  std::pair<index_t, index_t> range(const Cuts& cuts, int dim, const Indices& rank) const {
    index_t first = 0, count = shape_[std::size_t(dim)];
    for (const Cut& cut : cuts) {
      if (cut.dim != dim) continue;
      index_t chunk = 0;
      while (chunk * mesh_[std::size_t(cut.axis)] < count) ++chunk;
      for (index_t i = 0; i < rank[std::size_t(cut.axis)]; ++i) {  // drop one chunk per iteration
        const index_t taken = std::min(chunk, count);
        first += taken;
        count -= taken;
      }
      count = std::min(chunk, count);
    }
    return {first, first + count};
  }

  index_t max_owned(const Cuts& cuts) const {
    index_t most = 0;
    for (const Indices& rank : ranks_) {
      index_t owned = 1;
      for (int d = 0; d < int(shape_.size()); ++d) {
        const auto [begin, end] = range(cuts, d, rank);
        owned *= end - begin;
      }
      most = std::max(most, owned);
    }
    return most;
  }

  index_t max_lacking(const Cuts& have, const Cuts& want) const {
    index_t most = 0;
    for (const Indices& rank : ranks_) {
      index_t wanted = 1, common = 1;
      for (int d = 0; d < int(shape_.size()); ++d) {
        const auto [begin, end] = range(have, d, rank);
        const auto [first, last] = range(want, d, rank);
        wanted *= last - first;
        common *= std::max<index_t>(0, std::min(end, last) - std::max(begin, first));
      }
      most = std::max(most, wanted - common);
    }
    return most;
  }

  Indices mesh_;
  Indices shape_;
  std::vector<Indices> ranks_;
};

/// The result of comparing the planner with the bound over many pairs of layouts.
struct BoundReport {
  long pairs = 0;
  long over_bound = 0;
  int max_steps_without_partial = 0;
  int max_steps_with_partial = 0;
};

}  // namespace cleave::naive
