// Automatic schemas: the placements of a graph's inputs, and requests of its nodes, that take the
// least estimated time on a mesh, with a limit on memory.
//
//     const auto found = find_schemas(graph, mesh.extents(), {.most_bytes = 16'000'000'000});
//     const auto program = expand(with_requests(graph, found.requests), found.schemas);
//
// Graphs of up to `exact_nodes` nodes are searched over all placements of all inputs and results at
// once: Replicate, and Shard of every dimension of more than one element, on every axis. That is
// exact: no schemas and requests of these make a faster program, by `estimated_us`, if `is_exact`
// says that no limit of the search was met. Two things are not counted exactly: placements that the
// body of a composite leaves behind are paid for again, and factories cost nothing.
//
// In larger graphs, values with the same role (of repeated blocks) get the same placements, so that
// a block is searched once; and axes are searched one after another, the others as they are, until
// no axis improves. Both are heuristics, as is the number of states that are kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/estimate.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/passes/memory_plan.hpp>
#include <cleave/spmd/search/schema_network.hpp>
#include <cleave/spmd/search/schema_rows.hpp>
#include <cleave/spmd/search/schema_search.hpp>

namespace cleave::inline v0::spmd {

/// The requested placements of a node's first result.
struct Request {
  int node = 0;
  Layout placed{};

  friend constexpr bool operator==(const Request&, const Request&) = default;
};

/// The graph with these requests in its nodes.
template <AnyGraph G>
constexpr G with_requests(const G& graph, std::span<const Request> requests) {
  G result = graph;
  for (const Request& request : requests) {
    Node& node = result.nodes[std::size_t(request.node)];
    node.asks = true;
    node.asked = request.placed;
  }
  return result;
}

/// Options of `find_schemas`.
struct SearchOptions {
  ProgramCosts costs{};
  /// Of inputs and values of a rank at a time. @see peak_bytes
  index_t most_bytes = std::numeric_limits<index_t>::max();
  bool requests = true;    ///< nodes may be requested under other placements than `expand` chooses
  ExpandOptions expand{};  ///< of the programs that are compared
  int exact_nodes = 24;    ///< of the largest graph that is searched as a whole
  std::size_t most_states = 20000;       ///< kept after each node of such a graph
  std::size_t most_states_of_axis = 12;  ///< the same in larger graphs
  std::size_t most_tried = 20000;        ///< programs that are tried for one that meets all limits
};

/// What `find_schemas` found.
struct FoundSchemas {
  std::vector<Layout> schemas{};                        ///< of the inputs
  std::vector<Request> requests{};                      ///< of nodes
  double us = std::numeric_limits<double>::infinity();  ///< @see estimated_us
  index_t received = 0;                                 ///< bytes. @see received_bytes
  index_t peak = 0;                                     ///< bytes. @see peak_bytes
  bool fits = false;                                    ///< within all limits
  bool is_exact = false;  ///< no other schemas and requests take less time within these limits
};

/// The bytes of a program's inputs and of its memory plan, on the rank whose shards are longest.
template <AnyProgram P>
constexpr index_t peak_bytes(const P& program, const Shape& mesh) {
  index_t bytes = plan_memory(program, mesh, Shape::filled(mesh.dims, 0)).peak();
  for (int i = 0; i < program.inputs; ++i)
    bytes = redistribution::capped_sum(bytes,
                                       detail::longest_bytes(program.values[std::size_t(i)], mesh));
  return bytes;
}

namespace detail {

/// Replicate, and shards along every dimension that is longer than one element, on the axes of the
/// mask; on others as in `base`. None if that is partial.
constexpr std::vector<PackedLayout> choices_of(const Value& value, const Shape& mesh, AxisMask axes,
                                               const Layout& base) {
  std::vector<Layout> layouts{base};
  for (int a = 0; a < mesh.dims; ++a) {
    if (!(axes >> a & 1u)) continue;
    std::vector<Layout> more;
    for (Layout layout : layouts) {
      layout[a] = Placement::replicate();
      more.push_back(layout);
      for (int d = 0; d < value.shape.dims && mesh[a] > 1; ++d) {
        if (value.shape[d] == 1) continue;
        layout[a] = Placement::shard(d);
        more.push_back(layout);
      }
    }
    layouts = static_cast<std::vector<Layout>&&>(more);
  }
  std::vector<PackedLayout> choices;
  for (const Layout& layout : layouts)
    if (!layout.has_partial()) choices.push_back(layout.packed());
  return choices;
}

/// The search for one graph and mesh.
template <AnyGraph G>
class SchemaFinder {
 public:
  constexpr SchemaFinder(const G& graph, const Shape& mesh, const SearchOptions& options)
      : graph_(graph),
        mesh_(mesh),
        options_(options),
        rows_(graph, mesh_, options_.costs, options_.expand) {}

  constexpr FoundSchemas find(std::span<const std::vector<Layout>> candidates) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Fault fault = expand(graph_, candidates[i], options_.expand).fault;
      if (fault)
        throw Error("spmd::find_schemas",
                    "candidate " + std::to_string(i) + " cannot be expanded: " + to_string(fault));
      const FoundSchemas known = evaluated(candidates[i], {});
      if (known.fits) most_received_ = std::min(most_received_, known.received);
    }
    for (const std::vector<Layout>& candidate : candidates) consider(candidate, {});
    if (int(graph_.nodes.size()) <= options_.exact_nodes) search_whole();
    else search_axes(candidates);
    if (best_.schemas.empty())
      throw Error("spmd::find_schemas",
                  "no schemas were found with which the graph can be expanded on a mesh of " +
                      to_string(mesh_));
    return static_cast<FoundSchemas&&>(best_);
  }

 private:
  static constexpr index_t no_limit = std::numeric_limits<index_t>::max();
  static constexpr int role_steps = 4;   ///< nodes that a role depends on
  static constexpr int most_sweeps = 3;  ///< over all axes
  static constexpr int most_penalties = 8;

  static constexpr std::size_t at(int i) { return std::size_t(i); }

  constexpr FoundSchemas evaluated(const std::vector<Layout>& schemas,
                                   const std::vector<Request>& requests) const {
    FoundSchemas found;
    const G asked = with_requests(graph_, std::span(requests));
    const Program program = expand(asked, schemas, options_.expand);
    if (program.fault) return found;
    found.schemas = schemas;
    found.requests = requests;
    found.us = estimated_us(program, mesh_, options_.costs);
    found.received = received_bytes(program, mesh_, options_.costs.communication);
    found.peak = peak_bytes(program, mesh_);
    found.fits = found.peak <= options_.most_bytes && found.received <= most_received_;
    return found;
  }

  /// Takes schemas if they are better than the best so far. @return whether they are within limits
  constexpr bool consider(const std::vector<Layout>& schemas,
                          const std::vector<Request>& requests) {
    FoundSchemas found = evaluated(schemas, requests);
    if (found.schemas.empty()) return false;
    const bool fits = found.fits;
    const bool better = found.fits != best_.fits ? found.fits
                        : !found.fits            ? best_.schemas.empty() || found.peak < best_.peak
                                      : detail::SearchCost{found.us, double(found.peak)} <
                                            detail::SearchCost{best_.us, double(best_.peak)};
    if (better) best_ = static_cast<FoundSchemas&&>(found);
    return fits;
  }
  constexpr bool consider(const SchemaNetwork& network, const SearchSolution& solution) {
    if (solution.rows.size() != network.calls.size()) return false;  // there is none
    std::vector<Layout> schemas(graph_.inputs.size(), Layout::replicated(mesh_.dims));
    const std::vector<PackedLayout> layouts = layouts_of(network, solution);
    for (std::size_t i = 0; i < schemas.size(); ++i)
      schemas[i] = Layout::unpacked(layouts[at(network.variable_of[at(graph_.inputs[i].value)])],
                                    mesh_.dims);
    std::vector<Request> requests;
    for (std::size_t c = 0; c < network.calls.size(); ++c)
      if (const SchemaRow& row = rows_[solution.rows[c]]; row.request != no_request)
        for (const int node : network.calls[c].nodes)
          requests.push_back({node, Layout::unpacked(row.request, mesh_.dims)});
    std::sort(requests.begin(), requests.end(),
              [](const Request& a, const Request& b) { return a.node < b.node; });
    return consider(schemas, requests);
  }

  /// The placements of all variables in a solution.
  constexpr std::vector<PackedLayout> layouts_of(const SchemaNetwork& network,
                                                 const SearchSolution& solution) const {
    std::vector<PackedLayout> layouts(network.variables.size(), 0);
    for (std::size_t c = 0; c < network.calls.size(); ++c) {
      const SchemaCall& call = network.calls[c];
      const SchemaRow& row = rows_[solution.rows[c]];
      for (int i = 0; i < call.ins; ++i) layouts[at(call.in[at(i)])] = row.in[at(i)];
      for (int k = 0; k < call.outs; ++k)
        if (call.used >> k & 1u) layouts[at(call.out[at(k)])] = row.out[at(k)];
    }
    return layouts;
  }

  constexpr void search_whole() {
    const SchemaNetwork network = NetworkBuilder<G>(graph_, -1).take();
    SearchSpace space;
    for (const SchemaVariable& v : network.variables)
      space.choices.push_back(choices_of(graph_.values[at(v.value)], mesh_, every_axis,
                                         Layout::replicated(mesh_.dims)));
    space.requests = options_.requests ? Requests::all : Requests::none;
    space.most_states = options_.most_states;
    const SchemaSearch<G> searched(graph_, network, rows_, mesh_, space);
    bool is_exact = searched.is_exact();
    if (!consider(network, searched.best())) {
      search_penalised(network, space);
      space.us_per_byte = 0;
      space.move_weight = 1;
      space.keeps_edges = true;
      const SchemaSearch<G> all(graph_, network, rows_, mesh_, space);
      std::size_t tried = 0;
      is_exact = false;
      all.each_solution(double(options_.most_bytes), [&](const SearchSolution& solution) {
        is_exact = consider(network, solution);
        return !is_exact && ++tried < options_.most_tried;
      });
      is_exact = is_exact && all.is_exact();
    }
    best_.is_exact = is_exact && best_.fits;
  }

  /// Searches with growing penalties of memory and of redistributions, until something is found
  /// within the limits.
  constexpr void search_penalised(const SchemaNetwork& network, SearchSpace& space) {
    for (int penalty = 0; penalty < most_penalties; ++penalty) {
      penalise(space, penalty);
      if (consider(network, SchemaSearch<G>(graph_, network, rows_, mesh_, space).best())) return;
    }
  }
  constexpr void penalise(SearchSpace& space, int penalty) const {
    const bool limits_memory = options_.most_bytes < no_limit;
    space.us_per_byte = limits_memory ? 1e-6 : 0;
    space.move_weight = most_received_ < no_limit ? 2 : 1;
    for (int i = 0; i < penalty; ++i) {
      space.us_per_byte *= 8;
      space.move_weight *= 2;
    }
  }

  constexpr void search_axes(std::span<const std::vector<Layout>> candidates) {
    const SchemaNetwork network = NetworkBuilder<G>(graph_, role_steps).take();
    const std::vector<Layout> replicated(graph_.inputs.size(), Layout::replicated(mesh_.dims));
    SearchSpace space;
    for (int penalty = -1; penalty < most_penalties; ++penalty) {
      if (penalty >= 0) penalise(space, penalty);
      bool fits = improve(network, space, replicated, true);
      if (mesh_.dims > 1) fits = improve(network, space, replicated, false) || fits;
      for (const std::vector<Layout>& candidate : candidates)
        fits = improve(network, space, candidate, true) || fits;
      if (fits) return;
    }
  }

  /// Improves schemas axis by axis. @return whether the result is within the limits
  constexpr bool improve(const SchemaNetwork& network, SearchSpace& space,
                         const std::vector<Layout>& schemas, bool ascending) {
    space.requests = Requests::none;
    space.most_states = options_.most_states_of_axis;
    space.choices.assign(network.variables.size(), {});
    for (std::size_t i = 0; i < schemas.size(); ++i)
      space.choices[at(network.variable_of[at(graph_.inputs[i].value)])] = {schemas[i].packed()};
    const auto search = [&] {
      return SchemaSearch<G>(graph_, network, rows_, mesh_, space).best();
    };
    SearchSolution now = search();
    if (now.rows.empty()) return false;
    if (options_.requests) space.requests = Requests::of_partials;
    for (int i = 0, kept = 0; i < most_sweeps * mesh_.dims && kept < mesh_.dims; ++i) {
      const int axis = ascending ? i % mesh_.dims : mesh_.dims - 1 - i % mesh_.dims;
      const std::vector<PackedLayout> layouts = layouts_of(network, now);
      for (std::size_t v = 0; v < layouts.size(); ++v)
        space.choices[v] =
            choices_of(graph_.values[at(network.variables[v].value)], mesh_, AxisMask(1) << axis,
                       Layout::unpacked(layouts[v], mesh_.dims));
      SearchSolution found = search();
      ++kept;
      if (!SearchCost::less(found.us, now.us)) continue;
      kept = 1;
      now = static_cast<SearchSolution&&>(found);
    }
    return consider(network, now);
  }

  const G& graph_;
  const Shape mesh_;
  const SearchOptions& options_;
  SchemaRows<G> rows_;
  index_t most_received_ = no_limit;
  FoundSchemas best_{};
};

}  // namespace detail

/// Finds schemas and requests of least estimated time.
///
/// @param mesh        extents of its axes
/// @param candidates  schemas, one per input each, that the result is compared with: it receives no
///                    more bytes than any of them within the limit of memory, and takes no more
///                    time than the one of these that receives the fewest
/// @return            `fits` is false if nothing was found within the limit of memory; then the
///                    schemas are those of least memory among all tried
/// @throws Error      if a candidate, or the graph with any schemas, cannot be expanded; a compile
///                    error in constant expressions
/// @cost              for a graph of up to `exact_nodes` nodes it grows with placements to the
///                    power of the values that live at a time; for larger ones linear in the nodes
///                    of a block
template <AnyGraph G>
constexpr FoundSchemas find_schemas(const G& graph, const Shape& mesh,
                                    const SearchOptions& options = {},
                                    std::span<const std::vector<Layout>> candidates = {}) {
  return detail::SchemaFinder<G>(graph, mesh, options).find(candidates);
}

}  // namespace cleave::inline v0::spmd
