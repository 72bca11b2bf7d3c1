// A rule over all placements of its operands, simulated in one process: ranks are a loop, shards
// are lists of indices, the operation is a naive function of whole arrays. The operation on
// operands placed as the solver requires, combined as the solver says, must equal the naive
// function of the global arrays.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/rules/explain_solution.hpp>
#include <cleave/rules/solver.hpp>

#include "naive.hpp"

namespace cleave::testing {

using naive::Indices;

struct Array {
  Indices shape;
  std::vector<double> values;

  explicit Array(Indices extents = {}) : shape(std::move(extents)) {
    index_t n = 1;
    for (const index_t e : shape) n *= e;
    values.assign(std::size_t(n), std::nan(""));
  }
  double& at(const Indices& index) {
    std::size_t n = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      n = n * std::size_t(shape[d]) + std::size_t(index[d]);
    return values[n];
  }
  double at(const Indices& index) const { return const_cast<Array*>(this)->at(index); }
};

using Operation = std::function<Array(const std::vector<Array>&)>;

inline double combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::max: return std::max(a, b);
    case ReduceOp::min: return std::min(a, b);
    case ReduceOp::product: return a * b;
    default: return a + b;
  }
}

/// Arrays per coordinate; only the coordinates on partial axes make a difference.
using Addends = std::vector<Array>;

/// The addends reduced over those axes, innermost first; every coordinate gets the result.
inline Addends reduced(Addends addends, const Layout& layout, const std::vector<bool>& which,
                       const Indices& mesh) {
  for (int a = layout.axes - 1; a >= 0; --a) {
    if (!which[std::size_t(a)]) continue;
    Addends next = addends;
    const std::vector<Indices> all = naive::all_indices(mesh);
    for (std::size_t c = 0; c < all.size(); ++c) {
      Array sum;
      for (std::size_t p = 0; p < all.size(); ++p) {
        Indices own = all[c], peer = all[p];
        own[std::size_t(a)] = peer[std::size_t(a)] = 0;
        if (own != peer) continue;
        if (sum.values.size() != addends[p].values.size() || all[p][std::size_t(a)] == 0) {
          sum = addends[p];
          continue;
        }
        for (std::size_t i = 0; i < sum.values.size(); ++i)
          sum.values[i] = combine(layout[a].op, sum.values[i], addends[p].values[i]);
      }
      if (layout[a].op == ReduceOp::avg)
        for (double& v : sum.values) v /= double(mesh[std::size_t(a)]);
      next[c] = sum;
    }
    addends = next;
  }
  return addends;
}

inline Addends random_addends(const Layout& layout, const Indices& shape, const Indices& mesh,
                              int seed, bool positive) {
  Addends result;
  for (const Indices& coordinate : naive::all_indices(mesh)) {
    Array array(shape);
    Indices at = naive::partial_coordinate(layout, coordinate);
    at.push_back(seed);
    for (const Indices& index : naive::all_indices(shape)) {
      const int n = naive::addend(index, at);
      array.at(index) = n == 0 ? 0.5 : positive ? std::abs(n) : n;
    }
    result.push_back(array);
  }
  return result;
}

inline std::vector<bool> partial_axes(const Layout& layout) {
  std::vector<bool> axes;
  for (int a = 0; a < layout.axes; ++a) axes.push_back(layout[a].is_partial());
  return axes;
}

/// The elements that a rank owns, as a contiguous array.
inline Array local_part(const Array& global, const Layout& layout, const Indices& mesh,
                        const Indices& coordinate) {
  Indices extents;
  for (int d = 0; d < int(global.shape.size()); ++d)
    extents.push_back(index_t(naive::owned(layout, d, global.shape, mesh, coordinate).size()));
  Array local(extents);
  const auto elements = naive::elements(layout, global.shape, mesh, coordinate);
  for (std::size_t i = 0; i < elements.size(); ++i) local.values[i] = global.at(elements[i]);
  return local;
}

inline bool close(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-9 * (1 + std::abs(a) + std::abs(b));
}

struct Case {
  const Rule& rule;
  Operation operation;
  std::vector<std::vector<Indices>> shapes;  ///< some sets of operand shapes
  std::vector<bool> partials{};              ///< which operands may be partial; empty: all
  bool positive = false;                     ///< whether values must be positive
};

/// Runs one call on all ranks. @return an error message; empty if all is well
inline std::string simulate(const Case& c, const OperandLayouts& layouts,
                            const std::vector<Indices>& shapes, const Indices& mesh,
                            const Layout* asked = nullptr) {
  const Rule& rule = c.rule;
  const Solution solution = solve(rule, layouts, asked);
  if (asked != nullptr && !(solution.result[0] == *asked)) return "the result is not as asked for";
  std::vector<Array> global;
  std::vector<Addends> operands;
  for (int i = 0; i < rule.operands; ++i) {
    const Layout& from = layouts[std::size_t(i)];
    const Layout& to = solution.required[std::size_t(i)];
    const Addends addends = random_addends(from, shapes[std::size_t(i)], mesh, i, c.positive);
    global.push_back(reduced(addends, from, partial_axes(from), mesh)[0]);
    std::vector<bool> now = partial_axes(from);
    for (int a = 0; a < from.axes; ++a) {
      if (to[a].is_partial() && !(to[a] == from[a])) return "a partial was made";
      now[std::size_t(a)] = now[std::size_t(a)] && !to[a].is_partial();
    }
    operands.push_back(reduced(addends, from, now, mesh));
  }
  const Array expected = c.operation(global);

  const std::vector<Indices> ranks = naive::all_indices(mesh);
  const Layout& layout = solution.computed[0];
  Addends results(ranks.size(), Array(expected.shape));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::vector<Array> locals;
    for (std::size_t i = 0; i < operands.size(); ++i)
      locals.push_back(local_part(operands[i][r], solution.required[i], mesh, ranks[r]));
    const Array local = c.operation(locals);
    const auto elements = naive::elements(layout, expected.shape, mesh, ranks[r]);
    if (elements.size() != local.values.size()) return "a local result has the wrong extents";
    // ranks that differ only in the coordinate of their addends have the same shards
    for (std::size_t p = 0; p < ranks.size(); ++p) {
      if (naive::partial_coordinate(layout, ranks[p]) !=
          naive::partial_coordinate(layout, ranks[r]))
        continue;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        double& value = results[p].at(elements[i]);
        if (!std::isnan(value) && !close(value, local.values[i])) return "replicas differ";
        value = local.values[i];
      }
    }
  }
  const Array found = reduced(results, layout, partial_axes(layout), mesh)[0];
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    if (!close(found.values[i], expected.values[i])) return "the values are wrong";
  return {};
}

/// All placements of an operand on one axis.
inline std::vector<Placement> choices(int dims, bool partials) {
  std::vector<Placement> result{Placement::replicate()};
  for (int d = 0; d < dims; ++d) result.push_back(Placement::shard(d));
  if (partials)
    for (int op = 0; op <= int(ReduceOp::product); ++op)
      result.push_back(Placement::partial(ReduceOp(op)));
  return result;
}

/// Calls f(layouts) for all placements of the operands of a case.
template <class F>
void each_layouts(const Case& c, int axes, const F& f) {
  OperandLayouts layouts{};
  for (Layout& layout : layouts) layout.axes = axes;
  const auto walk = [&](auto& self, int operand, int axis) -> void {
    if (operand == c.rule.operands) {
      f(layouts);
    } else if (axis == axes) {
      self(self, operand + 1, 0);
    } else {
      const bool partials = c.partials.empty() || c.partials[std::size_t(operand)];
      for (const Placement& p : choices(c.rule.operand[std::size_t(operand)].dims, partials)) {
        layouts[std::size_t(operand)][axis] = p;
        self(self, operand, axis + 1);
      }
    }
  };
  walk(walk, 0, 0);
}

inline void check(const Case& c, int axes, const std::vector<Indices>& meshes) {
  index_t calls = 0, wrong = 0;
  std::string first;
  const auto note = [&](const std::string& fault, const OperandLayouts& layouts,
                        const Layout* asked) {
    ++calls;
    if (fault.empty()) return;
    if (wrong++ == 0)
      first = fault + "\n" + explain(c.rule, layouts, solve(c.rule, layouts, asked));
  };
  each_layouts(c, axes, [&](const OperandLayouts& layouts) {
    for (const auto& shapes : c.shapes) {
      for (const Indices& mesh : meshes) {
        note(simulate(c, layouts, shapes, mesh), layouts, nullptr);
        if (axes > 1) continue;
        for (const Placement& p : choices(c.rule.result[0].dims, false)) {
          Layout asked;
          asked.axes = 1;
          asked[0] = p;
          note(simulate(c, layouts, shapes, mesh, &asked), layouts, &asked);
        }
      }
    }
  });
  CAPTURE(to_string(c.rule));
  CAPTURE(first);
  CHECK(calls > 0);
  CHECK(wrong == 0);
}

}  // namespace cleave::testing
