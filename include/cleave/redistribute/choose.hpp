// The choice among plans that reduce partials, where sizes decide.
//
// A reduction may be an all-reduce, or a reduce-scatter along any dimension, which the next step
// exchanges; axes that replicate the addends may first keep a slice each, so that no sum is
// computed twice. Which plan is cheapest depends on extents, latency and bandwidth. The search
// tries all candidates with at most two communications, or with as many as `make_plan`'s if that
// has more; ties go to fewer communications, then to the first candidate.
#pragma once

#include <array>
#include <cstddef>

#include <cleave/redistribute/cost.hpp>
#include <cleave/redistribute/plan.hpp>

namespace cleave::inline v0 {

/// Whether plans other than `make_plan`'s may be cheaper for some shape and mesh.
///
/// False without partials, and if the plan is a single all-reduce and no axis replicates the
/// addends. A reduce-scatter along a dimension that does not divide evenly may cost more.
constexpr bool sizes_decide(const Layout& source, const Layout& target, int dims) {
  const detail::LayoutBeforePartial goal(source, target);
  if (detail::next_partial_group(source, goal.layout) == 0) return false;
  const Plan plan = make_plan(source, goal.layout, dims);
  if (plan.count > 1 || plan[0].kind != StepKind::all_reduce) return true;
  return source.axes_where([](const Placement& p) { return p.is_replicate(); }) != 0;
}

namespace detail {

/// Depth-first search over the candidates of every group; keeps the cheapest plan.
class PlanSearch {
 public:
  constexpr PlanSearch(const Layout& source, const Layout& target, const Shape& shape,
                       const Shape& mesh, std::size_t element_size, const CostModel& model)
      : goal_(source, target),
        target_(target),
        shape_(shape),
        mesh_(mesh),
        element_size_(element_size),
        model_(model),
        max_dims_(dims_to_try(target.axes)) {
    const int plain = make_plan(source, target, shape.dims).communications();
    max_communications_ = plain > 2 ? plain : 2;
    for (int a = 0; a < target.axes; ++a)  // dimensions that the target shards come first
      if (goal_.layout[a].shards()) offer(goal_.layout[a].dim);
    for (int a = 0; a < source.axes; ++a)
      if (source[a].shards()) offer(source[a].dim);
    for (int d = 0; d < shape.dims; ++d) offer(d);
    search(StepLayout{source}, Plan{}, 0);
  }

  constexpr const Plan& best() const { return best_; }

 private:
  /// How many dimensions are tried per axis: all of them for up to five axes, at least three for
  /// more, because there are (1 + dimensions) ^ axes candidates.
  static constexpr int dims_to_try(int axes) {
    const auto candidates = [&](int dims) {
      long n = 1;
      for (int a = 0; a < axes; ++a) n *= 1 + dims;
      return n;
    };
    int dims = max_dims;
    while (candidates(dims) > 65536) --dims;
    return dims;
  }

  /// Calls f(placement) for the ways in which an axis may be sharded on the way.
  template <class F>
  constexpr void each_cut(int axis, const F& f) const {
    if (goal_.layout[axis].is_other_cut()) f(goal_.layout[axis]);
    for (int i = 0; i < dims_; ++i) f(Placement::shard(dim_[std::size_t(i)]));
  }

  constexpr void offer(int dim) {
    for (int i = 0; i < dims_; ++i)
      if (dim_[std::size_t(i)] == dim) return;
    if (dims_ < max_dims_) dim_[std::size_t(dims_++)] = dim;
  }

  constexpr void search(const StepLayout& now, const Plan& plan, double us) {
    const unsigned group = next_partial_group(now.layout, goal_.layout);
    if (group == 0) return finish(now, plan, us);
    const ReduceOp op = op_of(now.layout, group);
    unsigned replicated = 0;  // axes that may keep a slice each before the reduction
    for (int a = 0; a < now.layout.axes; ++a)
      if (now.layout[a].is_replicate() && mesh_[a] > 1) replicated |= 1u << a;
    each_slicing(now, plan, us, group, op, replicated, now, 0);
  }

  /// Tries all slices over the axes of `replicated`, each along any dimension or not at all.
  constexpr void each_slicing(const StepLayout& now, const Plan& plan, double us, unsigned group,
                              ReduceOp op, unsigned replicated, const StepLayout& sliced,
                              int axis) {
    if (axis == now.layout.axes) {
      Plan longer = plan;
      if (!(sliced == now)) longer.append(Step{StepKind::slice, op, 0, now, sliced});
      return each_reduction(longer, us, group, op, sliced);
    }
    each_slicing(now, plan, us, group, op, replicated, sliced, axis + 1);
    if (!(replicated >> axis & 1u)) return;
    each_cut(axis, [&](const Placement& cut) {
      StepLayout more = sliced;
      more.layout[axis] = cut;
      move_last(more, 1u << axis, shape_.dims);
      each_slicing(now, plan, us, group, op, replicated, more, axis + 1);
    });
  }

  /// Tries an all-reduce, and reduce-scatters with any dimension for each axis of the group.
  constexpr void each_reduction(const Plan& plan, double us, unsigned group, ReduceOp op,
                                const StepLayout& now) {
    const Step step = all_reduce_step(now, group, op);
    search_behind(plan, us, step);
    if (dims_ > 0) each_scatter(plan, us, group, step, 0);
  }

  constexpr void each_scatter(const Plan& plan, double us, unsigned group, const Step& step,
                              int axis) {
    if (axis == step.from.layout.axes) {
      Step scatter = step;
      scatter.kind = StepKind::reduce_scatter;
      move_last(scatter.to, group, shape_.dims);
      return search_behind(plan, us, scatter);
    }
    if (!(group >> axis & 1u)) return each_scatter(plan, us, group, step, axis + 1);
    each_cut(axis, [&](const Placement& cut) {
      Step next = step;
      next.to.layout[axis] = cut;
      each_scatter(plan, us, group, next, axis + 1);
    });
  }

  constexpr void search_behind(const Plan& plan, double us, const Step& step) {
    const double longer_us = us + cost(step);
    if (longer_us > best_us_) return;
    Plan longer = plan;
    longer.append(step);
    search(step.to, longer, longer_us);
  }

  constexpr void finish(const StepLayout& now, const Plan& plan, double us) {
    Plan whole = plan;
    append_end(whole, now, goal_, target_, shape_.dims);
    for (int i = plan.count; i < whole.count; ++i) us += cost(whole[i]);
    const int communications = whole.communications();
    if (communications > max_communications_) return;
    const bool better = us < best_us_ || (us == best_us_ && communications < best_communications_);
    if (!better && best_.count != 0) return;
    best_ = whole;
    best_us_ = us;
    best_communications_ = communications;
  }

  constexpr double cost(const Step& step) const {
    return estimated_us(step, mesh_, shape_, element_size_, model_);
  }

  LayoutBeforePartial goal_;
  Layout target_;
  Shape shape_;
  Shape mesh_;
  std::size_t element_size_;
  CostModel model_;
  int max_dims_;
  std::array<int, std::size_t(max_dims)> dim_{};
  int dims_ = 0;
  int max_communications_ = 2;
  Plan best_{};
  double best_us_ = 1e300;
  int best_communications_ = 0;
};

}  // namespace detail

/// The cheapest plan for a shape on a mesh; `make_plan`'s where sizes do not decide.
///
/// @param mesh  extents of the axes
/// @cost        grows with axes and dimensions: 0.04 ms for two axes and eight dimensions, 0.2 s
///              for five and eight; keep the result
constexpr Plan choose_plan(const Layout& source, const Layout& target, const Shape& shape,
                           const Shape& mesh, std::size_t element_size,
                           const CostModel& model = {}) {
  if (!sizes_decide(source, target, shape.dims)) return make_plan(source, target, shape.dims);
  return detail::PlanSearch(source, target, shape, mesh, element_size, model).best();
}

}  // namespace cleave::inline v0
