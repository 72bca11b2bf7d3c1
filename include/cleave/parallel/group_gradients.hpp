// Gradients of the whole parameters of a group, on this rank: collected while a backward passes the
// group, summed over ranks together. Knows neither the types of parameters nor how sums are sent.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/grad/record.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/parallel/flat_layout.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::parallel {

/// Where the gradient of one parameter of a group ends.
template <class R>
struct GradientTarget {
  /// Adds this rank's shard of a gradient to a leaf's; it is still to be summed over the axes left.
  using Deliver = void (*)(tape::RecordBase* leaf, const Tensor<R, 1>& shard, AxisMask left);

  tape::Ref<tape::RecordBase> leaf{};  ///< the sharded parameter in the tape
  const unsigned* drops = nullptr;     ///< of the leaf: how often its gradient has been dropped
  Deliver deliver = nullptr;
  AxisMask taken_axes = 0;  ///< over which somebody else sums the leaf's gradient
};

/// A sum over other axes of the mesh than the group's, of what this rank has of some parameters.
struct OtherSum {
  AxisMask axes;
  std::vector<std::size_t> parts;
};

/// @tparam R  elements in which gradients are summed
template <class R>
class GroupGradients {
 public:
  /// @param axis        of the mesh, which shards the group
  /// @param coordinate  of this rank in the mesh
  GroupGradients(const FlatLayout& layout, int axis, const Shape& coordinate)
      : axis_(axis), coordinate_(coordinate), parts_(layout.count()) {}

  void set_target(std::size_t i, GradientTarget<R> target) { parts_[i].target = std::move(target); }

  bool empty() const { return !sums_.has_value(); }
  /// What has arrived goes; the targets stay.
  void clear() {
    sums_.reset();
    for (Part& part : parts_) part.has_arrived = false;
  }
  void free_targets() {
    for (Part& part : parts_) part.target.leaf.reset();
  }
  /// What has arrived, with where it goes.
  GroupGradients take() {
    GroupGradients taken = *this;
    clear();
    return taken;
  }

  /// Puts the gradient of parameter i. @pre none of it has arrived
  /// @param from  how it lies: Partial on the axes over which it is still to be summed
  template <int Rank>
  void put(const FlatLayout& layout, std::size_t i, const Tensor<R, Rank>& gradient,
           const Layout& from) {
    if (layout.is_one_order() && gradient.contiguous()) {  // the flat tensor itself; read only
      sums_.emplace(Tensor<R, 1>::adopt(gradient.data(), {gradient.size()}, gradient.storage()));
      is_shared_ = true;
    } else {
      if (!sums_) sums_.emplace(std::array<index_t, 1>{layout.size()});
      is_shared_ = false;
      layout.cut(gradient.view(), i, sums_->view());
    }
    Part& part = parts_[i];
    part.has_arrived = true;
    part.drops = *part.target.drops;
    part.partial = from.partial_axes();
  }

  /// Adds gradients of an earlier backward. What is whole on an axis where the other addend is
  /// Partial is given by the first rank of the axis.
  void add(const FlatLayout& layout, const GroupGradients& earlier) {
    own();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& before = earlier.parts_[i];
      if (!before.has_arrived || before.drops != *before.target.drops) continue;
      Part& part = parts_[i];
      if (part.target.leaf && part.target.leaf.get() != before.target.leaf.get())
        throw Error("fully_shard",
                    "deferred gradients belong to parameters of another requires_grad");
      const AxisMask both = (part.has_arrived ? part.partial : 0) | before.partial;
      const bool keeps = part.has_arrived && gives(both & ~part.partial);
      const bool adds = gives(both & ~before.partial);
      each_piece(layout, i, *sums_, *earlier.sums_, [&](R* to, const R* from, index_t n) {
        for (index_t k = 0; k < n; ++k) to[k] = sum_of(keeps, to[k], adds, from[k]);
      });
      if (!part.has_arrived) part.target = before.target, part.drops = before.drops;
      part.has_arrived = true;
      part.partial = both;
    }
  }

  /// Makes the elements this object's own, so that they can be added to.
  void own() {
    if (std::exchange(is_shared_, false)) sums_.emplace(sums_->clone());
  }

  /// Forgets those that have been dropped since they arrived. @return whether others are left
  bool drop_stale() {
    bool any = false;
    for (Part& part : parts_) {
      part.has_arrived = part.has_arrived && part.drops == *part.target.drops;
      any = any || part.has_arrived;
    }
    return any;
  }

  /// Prepares all for one sum over the axis: fills with zeros what this rank does not give.
  /// @return whether ranks of the axis have different addends
  bool complete(const FlatLayout& layout) {
    const AxisMask own_axis = AxisMask(1) << axis_;
    const bool is_partial = std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
      return part.has_arrived && (part.partial & own_axis) != 0;
    });
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const AxisMask missing = is_partial ? own_axis & ~part.partial : 0;
      if (part.has_arrived && gives(missing)) continue;
      for (index_t r = 0; r < layout.ranks(); ++r)
        if (const View piece = layout.by_rank(sums_->view(), i, r); piece.size() > 0)
          std::fill_n(static_cast<R*>(piece.data), piece.size(), R(0));
    }
    return is_partial;
  }

  /// Parameters by the axes over which their shards are to be summed, too.
  std::vector<OtherSum> other_sums() const {
    std::vector<OtherSum> sums;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const AxisMask axes = other_axes(parts_[i]) & ~parts_[i].target.taken_axes;
      if (!parts_[i].has_arrived || axes == 0) continue;
      auto at = std::find_if(sums.begin(), sums.end(),
                             [&](const OtherSum& sum) { return sum.axes == axes; });
      if (at == sums.end()) at = sums.insert(at, {axes, {}});
      at->parts.push_back(i);
    }
    return sums;
  }

  /// [n]: of all parameters, by rank.
  const Tensor<R, 1>& sums() const { return *sums_; }
  /// The elements go; what has arrived and where it goes stays known.
  Tensor<R, 1> take_sums() { return *std::exchange(sums_, std::nullopt); }

  /// Gives the leaves what is summed.
  /// @param mine  this rank's shards
  void deliver(const FlatLayout& layout, const Tensor<R, 1>& mine) const {
    const index_t rank = coordinate_[axis_];
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const GradientTarget<R>& target = parts_[i].target;
      if (!parts_[i].has_arrived || !target.leaf) continue;
      const index_t at = layout.begin(i, rank);
      target.deliver(target.leaf.get(), mine.slice(0, at, at + layout.extents(i, rank).product()),
                     other_axes(parts_[i]) & target.taken_axes);
    }
  }

 private:
  struct Part {
    GradientTarget<R> target{};
    bool has_arrived = false;
    AxisMask partial = 0;  ///< axes on which ranks have different addends
    unsigned drops = 0;    ///< of the leaf's gradient, when this one arrived
  };

  AxisMask other_axes(const Part& part) const { return part.partial & ~(AxisMask(1) << axis_); }

  /// Whether this rank gives what is the same on all ranks of some axes: the first of them does.
  bool gives(AxisMask axes) const {
    bool gives = true;
    for (int a = 0; a < coordinate_.dims; ++a)
      gives = gives && ((axes >> a & 1u) == 0 || coordinate_[a] == 0);
    return gives;
  }

  /// Calls f(to, from, n) for what each rank has of parameter i.
  template <class F>
  static void each_piece(const FlatLayout& layout, std::size_t i, const Tensor<R, 1>& to,
                         const Tensor<R, 1>& from, const F& f) {
    for (index_t r = 0; r < layout.ranks(); ++r) {
      const View piece = layout.by_rank(to.view(), i, r);
      f(static_cast<R*>(piece.data), static_cast<const R*>(layout.by_rank(from.view(), i, r).data),
        piece.size());
    }
  }

  static R sum_of(bool has_a, R a, bool has_b, R b) {
    using A = accumulator_t<R>;
    return R((has_a ? A(a) : A(0)) + (has_b ? A(b) : A(0)));
  }

  int axis_;
  Shape coordinate_;
  std::vector<Part> parts_;
  std::optional<Tensor<R, 1>> sums_{};
  bool is_shared_ = false;  ///< the elements are those of a gradient that others may hold
};

}  // namespace cleave::parallel
