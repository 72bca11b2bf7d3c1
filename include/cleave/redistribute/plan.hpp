// The planner: which communication turns one layout into another. Pure constexpr arithmetic on
// values; the compiler evaluates it for types, while tests and printing call it at run time.
//
// Without partials, a plan is one step over the smallest set of axes that must move data:
//
//   R -> S(d)              local            a slice, nothing moves
//   S(d) -> R              all_gather       over all gathered axes at once
//   S(i) -> S(j)           all_to_all       every pair of ranks shares a box
//   anything else          exchange         boxes of index intersections, or products of runs
//
// With partials, each group of axes with the same reduction (the innermost group first) is reduced
// in one step over the flattened axes, by reduce-scatter if the target shards an axis, else by
// all-reduce; the rest is one step as above.
//
//   P(op) -> R             all_reduce
//   P(op) -> S(d)          reduce_scatter
//   R, S(d) -> P(op)       local            identity elements around the value
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <cleave/comm/collective.hpp>
#include <cleave/core/config.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0 {

/// What one step of a plan does: one of the collectives of plans, or one of two local steps.
enum class StepKind : std::uint8_t {
  slice,           ///< keep a part of the local elements; no communication
  to_partial,      ///< make the value one addend of identity elements; no communication
  all_gather,      ///< every rank receives the shards of the others
  all_to_all,      ///< every rank sends every other a part of its shard
  exchange,        ///< every rank receives the elements that it lacks
  reduce_scatter,  ///< reduce, keep a shard
  all_reduce,      ///< reduce, keep everything
};

constexpr bool communicates(StepKind kind) {
  return kind != StepKind::slice && kind != StepKind::to_partial;
}

/// The collective that a step runs. @pre communicates(kind)
constexpr CollectiveKind collective_of(StepKind kind) {
  switch (kind) {
    case StepKind::all_gather: return CollectiveKind::all_gather;
    case StepKind::all_to_all: return CollectiveKind::all_to_all;
    case StepKind::reduce_scatter: return CollectiveKind::reduce_scatter;
    case StepKind::all_reduce: return CollectiveKind::all_reduce;
    default: return CollectiveKind::exchange;
  }
}

constexpr const char* name_of(StepKind kind) {
  if (communicates(kind)) return name_of(collective_of(kind));
  return kind == StepKind::slice ? "slice" : "to_partial";
}

/// A layout, and the order in which its axes apply to a dimension that several of them shard.
///
/// A reduce-scatter shards the local elements, wherever its axes are in the mesh: between two steps
/// they may be last in the order. The layout of a tensor has the order of the mesh.
struct StepLayout {
  Layout layout{};
  std::array<std::int8_t, max_axes> order{0, 1, 2, 3, 4, 5, 6, 7};

  /// Whether what each rank owns is a box of indices.
  constexpr bool is_box() const { return layout.is_box(); }

  friend constexpr bool operator==(const StepLayout&, const StepLayout&) = default;
};

/// One step over the axes of the mask, from one layout to another.
struct Step {
  StepKind kind = StepKind::slice;
  ReduceOp op = ReduceOp::sum;  ///< of a reduction, or of the partial that is made
  unsigned axes = 0;            ///< bit a: axis a takes part
  StepLayout from{};
  StepLayout to{};

  /// Whether ranks do not exchange boxes, but products of runs of indices.
  constexpr bool needs_runs() const { return !from.is_box() || !to.is_box(); }
};

/// The steps from one layout to another, in order.
struct Plan {
  static constexpr int max_steps = 2 * max_axes + 1;
  std::array<Step, max_steps> steps{};
  int count = 0;

  constexpr const Step* begin() const { return steps.data(); }
  constexpr const Step* end() const { return steps.data() + count; }
  constexpr const Step& operator[](int i) const { return steps[std::size_t(i)]; }

  constexpr void append(const Step& step) { steps[std::size_t(count++)] = step; }

  /// How many steps communicate.
  constexpr int communications() const {
    int n = 0;
    for (const Step& step : *this) n += communicates(step.kind);
    return n;
  }
};

namespace detail {

/// The axes that shard one dimension, in the order in which they apply. Refers to the layout.
struct ShardingAxes {
  const Layout* layout;
  std::array<int, max_axes> axis{};
  int count = 0;

  constexpr ShardingAxes(const StepLayout& of, int dim) : layout(&of.layout) {
    for (int i = 0; i < of.layout.axes; ++i)
      if (const int a = of.order[std::size_t(i)]; of.layout[a].shards(dim))
        axis[std::size_t(count++)] = a;
  }

  /// How many leading axes the two have in common, with the same placements.
  static constexpr int common(const ShardingAxes& a, const ShardingAxes& b) {
    int n = 0;
    for (; n < a.count && n < b.count; ++n) {
      const int axis = a.axis[std::size_t(n)];
      if (axis != b.axis[std::size_t(n)] || !((*a.layout)[axis] == (*b.layout)[axis])) break;
    }
    return n;
  }

  /// Whether an axis does not cut into chunks.
  constexpr bool any_other_cut(int first) const {
    for (int i = first; i < count; ++i)
      if ((*layout)[axis[std::size_t(i)]].is_other_cut()) return true;
    return false;
  }

  constexpr unsigned mask_from(int first) const {
    unsigned mask = 0;
    for (int i = first; i < count; ++i) mask |= 1u << axis[std::size_t(i)];
    return mask;
  }
};

/// The single step between two layouts that agree in their partial axes.
constexpr Step move_step(const StepLayout& from, const StepLayout& to, int dims) {
  Step step{StepKind::slice, ReduceOp::sum, 0, from, to};
  unsigned lost = 0, gained = 0;  // axes that shard a dimension only before, or only after
  bool swapped = false;  // a dimension both loses and gains axes, or is not cut into chunks
  for (int d = 0; d < dims; ++d) {
    const ShardingAxes before(from, d), after(to, d);
    const int common = ShardingAxes::common(before, after);
    const unsigned out = before.mask_from(common), in = after.mask_from(common);
    swapped = swapped || (out != 0 && in != 0) || before.any_other_cut(common) ||
              after.any_other_cut(common);
    lost |= out;
    gained |= in;
  }
  if (lost == 0) return step;  // every rank has its elements: a slice over no axes
  step.axes = lost | gained;
  if (gained == 0 && from.is_box() && to.is_box()) step.kind = StepKind::all_gather;
  else if (!swapped && lost == gained) step.kind = StepKind::all_to_all;
  else step.kind = StepKind::exchange;
  return step;
}

/// Moves the axes of the mask to the end of the order; keeps the mesh's order if equivalent.
constexpr void move_last(StepLayout& of, unsigned mask, int dims) {
  const StepLayout before = of;
  int next = 0;
  for (unsigned last = 0; last < 2; ++last)
    for (int i = 0; i < before.layout.axes; ++i)
      if (const std::int8_t a = before.order[std::size_t(i)]; (mask >> a & 1u) == last)
        of.order[std::size_t(next++)] = a;
  bool ordinary = true;
  const StepLayout in_order{of.layout};
  for (int d = 0; d < dims; ++d) {
    const ShardingAxes applied(of, d), plain(in_order, d);
    ordinary = ordinary && ShardingAxes::common(applied, plain) == plain.count;
  }
  if (ordinary) of = StepLayout{of.layout};
}

/// A dimension to scatter along when the target shards none: one that no axis shards keeps the
/// pieces even. -1 if there is no dimension.
constexpr int free_dim(const Layout& layout, int dims) {
  for (int d = 0; d < dims; ++d)
    if (layout.sharding_axes(d) == 0) return d;
  return dims > 0 ? 0 : -1;
}

/// The step that reduces the axes in `group`, all partial under `op`, to replicas.
constexpr Step all_reduce_step(const StepLayout& from, unsigned group, ReduceOp op) {
  Step step{StepKind::all_reduce, op, group, from, from};
  for (int a = 0; a < from.layout.axes; ++a)
    if (group >> a & 1u) step.to.layout[a] = Placement::replicate();
  return step;
}

/// The same to shards: those of `target` on the axes that it shards, else of dimension `dim`.
constexpr Step scatter_step(const StepLayout& from, unsigned group, ReduceOp op, int dims, int dim,
                            const Layout& target) {
  Step step{StepKind::reduce_scatter, op, group, from, from};
  for (int a = 0; a < from.layout.axes; ++a)
    if (group >> a & 1u) step.to.layout[a] = target[a].shards() ? target[a] : Placement::shard(dim);
  move_last(step.to, group, dims);
  return step;
}
constexpr Step scatter_step(const StepLayout& from, unsigned group, ReduceOp op, int dims) {
  const int dim = free_dim(from.layout, dims);
  if (dim < 0) return all_reduce_step(from, group, op);
  return scatter_step(from, group, op, dims, dim, Layout{});
}

/// The step that reduces the axes in `group`, on the way to `target`.
///
/// Axes that the target shards are scattered along its dimensions. The other axes of the group are
/// scattered too, and gathered by the next step: reduce-scatter and all-gather together move no
/// more than an all-reduce, and the remaining work is done on less data.
constexpr Step reduce_step(const StepLayout& from, unsigned group, ReduceOp op,
                           const Layout& target, int dims) {
  int dim = -1;
  bool moves_later = false;  // something else must be exchanged anyway
  for (int a = 0; a < target.axes; ++a) {
    if (group >> a & 1u) {
      if (target[a].shards()) dim = target[a].dim;
    } else if (!from.layout[a].is_partial() && from.layout[a] != target[a]) {
      moves_later = true;
    }
  }
  if (dim < 0 && moves_later) dim = free_dim(from.layout, dims);
  if (dim < 0) return all_reduce_step(from, group, op);
  return scatter_step(from, group, op, dims, dim, target);
}

/// The layout that communication must reach before the last, local steps: axes that become partial
/// stay sharded or become replicated.
struct LayoutBeforePartial {
  Layout layout{};
  unsigned made = 0;  ///< the axes that become partial at the end

  constexpr LayoutBeforePartial(const Layout& source, const Layout& target) : layout(target) {
    for (int a = 0; a < target.axes; ++a) {
      if (!target[a].is_partial() || source[a] == target[a]) continue;
      made |= 1u << a;
      // A shard can stay if it is a range and no later axis shards the same dimension. For an
      // average it is scaled, which may not commute with an inner reduction.
      bool stays = source[a].shards() && source[a].is_box();
      for (int b = a + 1; b < target.axes; ++b) {
        if (target[b].is_partial() && target[a].op == ReduceOp::avg) stays = false;
        stays = stays && !target[b].shards(source[a].dim) && !source[b].shards(source[a].dim);
      }
      layout[a] = stays ? source[a] : Placement::replicate();
    }
  }
};

/// The axes to reduce together next: the innermost partial axes with the same reduction, up to an
/// axis with another one; 0 if nothing is left to reduce.
constexpr unsigned next_partial_group(const Layout& now, const Layout& goal) {
  unsigned group = 0;
  ReduceOp op{};
  for (int a = now.axes - 1; a >= 0; --a) {
    if (!now[a].is_partial() || goal[a].is_partial()) continue;
    if (group != 0 && now[a].op != op) break;
    op = now[a].op;
    group |= 1u << a;
  }
  return group;
}

/// The reduction of the axes of a group. @pre group != 0
constexpr ReduceOp op_of(const Layout& now, unsigned group) {
  int a = 0;
  while (!(group >> a & 1u)) ++a;
  return now[a].op;
}

/// Appends the steps after all reductions: one move, then the axes that become partial.
constexpr void append_end(Plan& plan, StepLayout now, const LayoutBeforePartial& goal,
                          const Layout& target, int dims) {
  const StepLayout end{goal.layout};
  if (!(now == end)) plan.append(move_step(now, end, dims));
  now = end;
  for (int a = 0; a < target.axes; ++a) {  // an inner partial applies to an outer one's addends
    if (!(goal.made >> a & 1u)) continue;
    Step step{StepKind::to_partial, target[a].op, 1u << a, now, now};
    step.to.layout[a] = target[a];
    plan.append(step);
    now = step.to;
  }
}

}  // namespace detail

/// The plan that turns layout `source` of a tensor with `dims` dimensions into `target`.
///
/// The same on all ranks: it depends on the layouts only. Without partials it is optimal for all
/// shapes and meshes; with partials, `choose_plan` may find a cheaper one if `sizes_decide`.
constexpr Plan make_plan(const Layout& source, const Layout& target, int dims) {
  Plan plan;
  const detail::LayoutBeforePartial goal(source, target);
  StepLayout now{source};
  while (const unsigned group = detail::next_partial_group(now.layout, goal.layout)) {
    plan.append(
        detail::reduce_step(now, group, detail::op_of(now.layout, group), goal.layout, dims));
    now = plan[plan.count - 1].to;
  }
  detail::append_end(plan, now, goal, target, dims);
  return plan;
}

}  // namespace cleave::inline v0
