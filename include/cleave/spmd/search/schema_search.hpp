// The search for placements of least cost: dynamic programming over the calls of a network.
//
// After some calls, what the others cost depends only on the variables that both relate: on their
// placements, and on which other placements of them have been paid for. A state is an assignment of
// these; of equal states the cheapest is kept (Bellman 1957). That is exact as long as no state is
// dropped. With a limit, the cheapest are kept: a beam search.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/spmd/search/hash_index.hpp>
#include <cleave/spmd/search/schema_network.hpp>
#include <cleave/spmd/search/schema_rows.hpp>
#include <cleave/spmd/search/search_space.hpp>

namespace cleave::inline v0::spmd::detail {

template <AnyGraph G>
class SchemaSearch {
 public:
  constexpr SchemaSearch(const G& graph, const SchemaNetwork& network, SchemaRows<G>& rows,
                         const Shape& mesh, const SearchSpace& space)
      : graph_(graph),
        network_(network),
        rows_(rows),
        mesh_(mesh),
        space_(space),
        layouts_(network.variables.size()),
        left_(network.variables.size(), 0) {
    for (const SchemaCall& call : network.calls)
      each_variable(call, [&](int v) { ++left_[at(v)]; });
    steps_.push_back({});
    steps_[0].states.push_back({{}, -1, -1});
    for (const SchemaCall& call : network.calls) advance(call);
  }

  constexpr bool is_exact() const { return !is_truncated_; }

  /// The cheapest solution; its time is infinite if there is none.
  constexpr SearchSolution best() const {
    SearchSolution solution;
    if (steps_.back().states.empty()) return solution;
    solution.us = steps_.back().states[0].cost.us;
    solution.rows.resize(network_.calls.size());
    int state = 0;
    for (std::size_t s = steps_.size(); s-- > 1;) {
      solution.rows[s - 1] = steps_[s].states[at(state)].row;
      state = steps_[s].states[at(state)].parent;
    }
    return solution;
  }

  /// Calls f with all solutions, from the cheapest on, until it returns false; without those whose
  /// inputs and largest value need more memory.
  template <class F>
  constexpr void each_solution(double most_bytes, const F& f) const {
    struct Tail {  // a solution without its first steps
      double us, after;
      double inputs, largest;  // bytes
      int step, state, next, row;
    };
    if (steps_.back().states.empty()) return;
    std::vector<Tail> tails;
    std::vector<int> heap;
    const auto later = [&](int a, int b) { return tails[at(a)].us > tails[at(b)].us; };
    const auto push = [&](const Tail& tail) {
      tails.push_back(tail);
      heap.push_back(int(tails.size()) - 1);
      std::push_heap(heap.begin(), heap.end(), later);
    };
    push({steps_.back().states[0].cost.us, 0, 0, 0, int(steps_.size()) - 1, 0, -1, -1});
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      const int first = heap.back();
      heap.pop_back();
      const Tail tail = tails[at(first)];
      if (tail.step == 0) {
        SearchSolution solution;
        solution.us = tail.us;
        for (int t = first; tails[at(t)].next >= 0; t = tails[at(t)].next)
          solution.rows.push_back(tails[at(t)].row);
        if (!f(solution)) return;
        continue;
      }
      for (const Edge& edge : steps_[at(tail.step)].edges)
        if (edge.to == tail.state) {
          const double after = tail.after + edge.us, inputs = tail.inputs + edge.inputs;
          const double largest = std::max(tail.largest, edge.largest);
          if (inputs + largest <= most_bytes)
            push({steps_[at(tail.step - 1)].states[at(edge.from)].cost.us + after, after, inputs,
                  largest, tail.step - 1, edge.from, first, edge.row});
        }
    }
  }

 private:
  /// The placements of a variable, as a place in its list: low bits; others that have been paid
  /// for, as a set of such places: high bits.
  using Slot = std::uint64_t;
  static constexpr int place_bits = 6;
  static constexpr std::size_t most_layouts = 64 - place_bits;

  /// Placements of a variable, and the bytes of its values.
  struct Placed {
    PackedLayout layout;
    double bytes;
  };
  struct State {
    SearchCost cost;
    int parent, row;
  };
  struct Edge {
    int to, from, row;
    double us;
    double inputs, largest;  ///< bytes: of new inputs, of the largest value that is computed
  };
  /// The states after a call.
  struct Step {
    std::vector<int> variables{};  ///< that calls before and after relate
    std::vector<Slot> slots{};     ///< of these, state after state
    std::vector<State> states{};
    std::vector<Edge> edges{};
  };
  static constexpr int most_touched = SchemaCall::most_in + max_results;
  using Slots = std::array<Slot, std::size_t(most_touched)>;

  /// The variables of a call, and where they are in the states before and after.
  struct Touched {
    int count = 0;
    std::array<int, std::size_t(most_touched)> variable{}, before{};
    std::array<int, std::size_t(SchemaCall::most_in)> in{};  ///< places in `variable`
    std::array<int, std::size_t(max_results)> out{};         ///< likewise
    std::vector<int> opened{};  ///< operands without placements: inputs; places in `in`
    std::vector<int> kept{};    ///< of the states after: places before; else ~place in `variable`
  };

  static constexpr std::size_t at(int i) { return std::size_t(i); }

  template <class F>
  static constexpr void each_variable(const SchemaCall& call, const F& f) {
    for (int i = 0; i < call.ins; ++i) f(call.in[at(i)]);
    for (int k = 0; k < call.outs; ++k)
      if (call.used >> k & 1u) f(call.out[at(k)]);
  }

  /// The place of placements among those of a variable; -1 if there is none left.
  constexpr int place_of(int variable, PackedLayout layout) {
    std::vector<Placed>& known = layouts_[at(variable)];
    for (std::size_t i = 0; i < known.size(); ++i)
      if (known[i].layout == layout) return int(i);
    if (known.size() == most_layouts) {
      is_truncated_ = true;
      return -1;
    }
    const SchemaVariable& v = network_.variables[at(variable)];
    const Value& value = graph_.values[at(v.value)];
    const PlacedValue placed{value.dtype, value.shape, Layout::unpacked(layout, mesh_.dims)};
    known.push_back({layout, v.values * double(longest_bytes(placed, mesh_))});
    return int(known.size()) - 1;
  }
  constexpr PackedLayout layout_in(int variable, Slot slot) const {
    return layouts_[at(variable)][slot & ((Slot(1) << place_bits) - 1)].layout;
  }

  constexpr Touched touch(const SchemaCall& call, Step& next) {
    const std::vector<int>& before = steps_.back().variables;
    Touched touched;
    const auto place = [&](int variable) {
      for (int i = 0; i < touched.count; ++i)
        if (touched.variable[at(i)] == variable) return i;
      const auto found = std::find(before.begin(), before.end(), variable);
      touched.variable[at(touched.count)] = variable;
      touched.before[at(touched.count)] = found == before.end() ? -1 : int(found - before.begin());
      return touched.count++;
    };
    for (int i = 0; i < call.ins; ++i) {
      const int known = touched.count;
      touched.in[at(i)] = place(call.in[at(i)]);
      if (touched.in[at(i)] == known && touched.before[at(known)] < 0) touched.opened.push_back(i);
    }
    for (int k = 0; k < call.outs; ++k)
      if (call.used >> k & 1u) touched.out[at(k)] = place(call.out[at(k)]);
    each_variable(call, [&](int v) { --left_[at(v)]; });
    const auto keep = [&](int variable, int kept) {
      if (left_[at(variable)] == 0) return;
      touched.kept.push_back(kept);
      next.variables.push_back(variable);
    };
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto* begin = touched.variable.data();
      const auto* found = std::find(begin, begin + touched.count, before[i]);
      keep(before[i], found == begin + touched.count ? int(i) : ~int(found - begin));
    }
    for (int i = 0; i < touched.count; ++i)
      if (touched.before[at(i)] < 0) keep(touched.variable[at(i)], ~i);
    return touched;
  }

  constexpr void advance(const SchemaCall& call) {
    Step next;
    const Touched touched = touch(call, next);
    const Step& last = steps_.back();
    std::vector<State> tried;
    for (std::size_t s = 0; s < last.states.size(); ++s) {
      const Slot* from = last.slots.data() + s * last.variables.size();
      SchemaRow key;
      for (int i = 0; i < call.ins; ++i)
        if (const int b = touched.before[at(touched.in[at(i)])]; b >= 0)
          key.in[at(i)] = layout_in(call.in[at(i)], from[b]);
      std::vector<std::size_t> choice(touched.opened.size(), 0);
      do {
        for (std::size_t i = 0; i < choice.size(); ++i) {
          const int variable = call.in[at(touched.opened[i])];
          for (int j = 0; j < call.ins; ++j)
            if (call.in[at(j)] == variable) key.in[at(j)] = space_.choices[at(variable)][choice[i]];
        }
        try_rows(call, touched, key, from, int(s), tried);
      } while (next_choice(call, touched, choice));
    }
    std::sort(tried.begin(), tried.end(), [](const State& a, const State& b) {
      if (a.cost.us != b.cost.us) return a.cost.us < b.cost.us;
      if (a.cost.ties != b.cost.ties) return a.cost.ties < b.cost.ties;
      return a.parent < b.parent || (a.parent == b.parent && a.row < b.row);
    });
    add_states(call, touched, tried, next);
    steps_.push_back(static_cast<Step&&>(next));
  }

  constexpr bool next_choice(const SchemaCall& call, const Touched& touched,
                             std::vector<std::size_t>& choice) const {
    for (std::size_t i = choice.size(); i-- > 0;) {
      if (++choice[i] < space_.choices[at(call.in[at(touched.opened[i])])].size()) return true;
      choice[i] = 0;
    }
    return false;
  }

  /// Whether a request of a node's placements has an effect, and is not the user's.
  constexpr bool can_request(const SchemaCall& call) const {
    if (call.kind != SchemaCall::Kind::node || !(call.used & 1u)) return false;
    const Node& node = graph_.nodes[at(call.nodes[0])];
    return node.body == nullptr && node.op->stencil == nullptr && node.operands() > 0 &&
           !node.asks && node.like < 0 && !node.is_placement && !node.is_explicit && node.axis < 0;
  }

  constexpr void try_rows(const SchemaCall& call, const Touched& touched, SchemaRow key,
                          const Slot* from, int parent, std::vector<State>& tried) {
    const auto attempt = [&](int row) {
      State state{steps_.back().states[at(parent)].cost, parent, row};
      Slots slots{};
      if (apply(call, touched, from, row, slots, state.cost)) tried.push_back(state);
    };
    const int plain = rows_.find(call, key);
    attempt(plain);
    if (space_.requests == Requests::none || !can_request(call)) return;
    const PackedLayout made = rows_[plain].out[0];
    if (space_.requests == Requests::of_partials && rows_[plain].is_possible &&
        !Layout::unpacked(made, mesh_.dims).has_partial())
      return;
    for (const PackedLayout request : space_.choices[at(call.out[0])]) {
      key.request = request;
      attempt(rows_.find(call, key));
    }
  }

  /// Adds the cost of a row; `slots` become those of the call's variables.
  /// @return false if the row does not fit the placements so far
  constexpr bool apply(const SchemaCall& call, const Touched& touched, const Slot* from, int place,
                       Slots& slots, SearchCost& cost) {
    const SchemaRow row = rows_[place];
    if (!row.is_possible) return false;
    const auto add = [&](int variable, int made, Slot& slot) {
      if (made < 0) return false;
      const double bytes = layouts_[at(variable)][at(made)].bytes;
      slot = Slot(made);
      cost.ties += bytes;
      cost.us += space_.us_per_byte * bytes;
      return true;
    };
    for (int i = 0; i < touched.count; ++i)
      if (touched.before[at(i)] >= 0) slots[at(i)] = from[touched.before[at(i)]];
    for (const int i : touched.opened)
      if (!add(call.in[at(i)], place_of(call.in[at(i)], row.in[at(i)]),
               slots[at(touched.in[at(i)])]))
        return false;
    const double times = double(call.nodes.size());
    cost.us += times * (row.us + space_.move_weight * row.move_us);
    cost.ties += row.request == no_request ? 0 : times;
    for (int i = 0; i < row.needs; ++i) {
      const SchemaRow::Need need = rows_.need(row, i);
      const int variable = call.in[at(need.in)];
      Slot& slot = slots[at(touched.in[at(need.in)])];
      const int to = place_of(variable, need.to);
      if (to < 0) return false;
      const Slot paid = Slot(1) << (place_bits + to);
      if (slot & paid) continue;
      const double move_us =
          rows_.move_us(network_.variables[at(variable)], layout_in(variable, slot), need.to);
      cost.us += times * space_.move_weight * move_us;
      if (move_us > 0) slot |= paid;
    }
    for (int k = 0; k < call.outs; ++k) {
      if (!(call.used >> k & 1u)) continue;
      const int variable = call.out[at(k)], t = touched.out[at(k)];
      const int made = place_of(variable, row.out[at(k)]);
      const bool is_known = touched.before[at(t)] >= 0;  // by another block
      if (is_known ? layout_in(variable, slots[at(t)]) != row.out[at(k)]
                   : !add(variable, made, slots[at(t)]))
        return false;
    }
    return true;
  }

  /// Adds what has been tried, the cheapest first.
  constexpr void add_states(const SchemaCall& call, const Touched& touched,
                            const std::vector<State>& tried, Step& next) {
    const Step& last = steps_.back();
    const std::size_t width = touched.kept.size();
    HashIndex index;
    for (const State& state : tried) {
      const Slot* from = last.slots.data() + at(state.parent) * last.variables.size();
      Slots slots{};
      SearchCost unused;
      apply(call, touched, from, state.row, slots, unused);
      const std::size_t begin = next.slots.size();
      cleave::detail::Checksum sum;
      for (const int kept : touched.kept) {
        next.slots.push_back(kept >= 0 ? from[kept] : slots[at(~kept)]);
        sum.add(next.slots.back());
      }
      int known = index.find(sum.sum, [&](int i) {
        return std::equal(next.slots.begin() + std::ptrdiff_t(begin), next.slots.end(),
                          next.slots.begin() + std::ptrdiff_t(at(i) * width));
      });
      if (known < 0 && next.states.size() < space_.most_states) {
        known = int(next.states.size());
        next.states.push_back(state);
        index.add(sum.sum);
      } else {
        next.slots.resize(begin);
        is_truncated_ = is_truncated_ || known < 0;
        if (known < 0 && !space_.keeps_edges) return;
        if (known >= 0 && state.cost < next.states[at(known)].cost) next.states[at(known)] = state;
      }
      if (space_.keeps_edges && known >= 0)
        next.edges.push_back(edge_of(call, touched, state, known));
    }
  }

  constexpr Edge edge_of(const SchemaCall& call, const Touched& touched, const State& state,
                         int to) {
    const SchemaRow row = rows_[state.row];
    Edge edge{to, state.parent, state.row, 0, 0, 0};
    edge.us = state.cost.us - steps_.back().states[at(state.parent)].cost.us;
    const auto bytes = [&](int variable, PackedLayout layout) {
      return layouts_[at(variable)][at(place_of(variable, layout))].bytes;
    };
    for (const int i : touched.opened) edge.inputs += bytes(call.in[at(i)], row.in[at(i)]);
    if (call.kind != SchemaCall::Kind::node) return edge;
    const Node& node = graph_.nodes[at(call.nodes[0])];
    if (node.body != nullptr || node.is_placement || node.operands() == 0 || node.op->is_view ||
        node.op->regrouping.result > 0)
      return edge;
    for (int k = 0; k < call.outs; ++k)
      if (call.used >> k & 1u)
        edge.largest = std::max(edge.largest, bytes(call.out[at(k)], row.out[at(k)]));
    return edge;
  }

  const G& graph_;
  const SchemaNetwork& network_;
  SchemaRows<G>& rows_;
  const Shape& mesh_;
  const SearchSpace& space_;
  std::vector<std::vector<Placed>> layouts_;  ///< of each variable, in order of appearance
  std::vector<int> left_;                     ///< calls that have not been searched
  std::vector<Step> steps_{};
  bool is_truncated_ = false;
};

}  // namespace cleave::inline v0::spmd::detail
