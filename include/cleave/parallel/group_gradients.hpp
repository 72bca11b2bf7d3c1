// The gradients of a group's unsharded parameters on this rank: collected during backward, then
// reduced over ranks together. Independent of the types of parameters and of communication.
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
#include <cleave/kernels/host/update_elements.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/parallel/flat_layout.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::parallel {

/// The destination of the gradient of one parameter of a group.
template <class R, class Device>
struct GradientTarget {
  /// Adds this rank's shard to the gradient of a leaf, which still has to reduce it over `left`.
  using Deliver = void (*)(tape::RecordBase* leaf, const Tensor<R, 1, Device>& shard,
                           AxisMask left);

  tape::Ref<tape::RecordBase> leaf{};  ///< the sharded parameter in the tape
  const unsigned* drops = nullptr;     ///< of the leaf: how often its gradient has been dropped
  Deliver deliver = nullptr;
  AxisMask taken_axes = 0;  ///< over which the leaf's receiver reduces the gradient
};

/// A reduction over mesh axes other than the group's, of this rank's shards of some gradients.
struct OtherSum {
  AxisMask axes;
  std::vector<std::size_t> parts;
};

/// Adds two arrays of gradients, or one of them, or none. @see update_elements
template <class R>
struct SumStep {
  bool keeps, adds;

  CLEAVE_HOST_DEVICE void operator()(R& sum, const R& x) const {
    using A = accumulator_t<R>;
    sum = R((keeps ? A(sum) : A(0)) + (adds ? A(x) : A(0)));
  }
};

/// @tparam R       element type in which gradients are reduced
/// @tparam Device  of the gradients
template <class R, class Device>
class GroupGradients {
  using Flat = Tensor<R, 1, Device>;
  using Target = GradientTarget<R, Device>;

 public:
  /// @param axis        of the mesh, which shards the group
  /// @param coordinate  of this rank in the mesh
  GroupGradients(const FlatLayout& layout, int axis, const Shape& coordinate)
      : axis_(axis), coordinate_(coordinate), parts_(layout.count()) {}

  void set_target(std::size_t i, Target target) { parts_[i].target = std::move(target); }

  bool empty() const { return !sums_.has_value(); }
  /// Drops the gradients; the targets stay.
  void clear() {
    sums_.reset();
    for (Part& part : parts_) part.has_arrived = false;
  }
  void free_targets() {
    for (Part& part : parts_) part.target.leaf.reset();
  }
  /// Moves out the gradients that have arrived, with their targets.
  GroupGradients take() {
    GroupGradients taken = *this;
    clear();
    return taken;
  }

  /// Stores the gradient of parameter i. @pre it has not arrived yet
  /// @param from  its placements: Partial on the axes over which it has not been reduced yet
  template <int Rank>
  void put(const FlatLayout& layout, std::size_t i, const Tensor<R, Rank, Device>& gradient,
           const Layout& from) {
    if (layout.is_one_order() && gradient.contiguous()) {  // the flat tensor itself; read only
      sums_.emplace(Flat::adopt(gradient.data(), {gradient.size()}, gradient.storage()));
      is_shared_ = true;
    } else {
      if (!sums_) sums_.emplace(std::array<index_t, 1>{layout.size()});
      is_shared_ = false;
      layout.cut(Device{}, gradient.view(), i, sums_->view());
    }
    Part& part = parts_[i];
    part.has_arrived = true;
    part.drops = *part.target.drops;
    part.partial = from.partial_axes();
  }

  /// Adds gradients of an earlier backward. If one of two gradients is Partial on an axis and the
  /// other one is replicated there, only the first rank of the axis contributes the latter.
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
        update_elements(kernels::On<Device>{}, "fully_shard", SumStep<R>{keeps, adds}, n, to, from);
      });
      if (!part.has_arrived) part.target = before.target, part.drops = before.drops;
      part.has_arrived = true;
      part.partial = both;
    }
  }

  /// Copies shared elements, so that they can be changed.
  void own() {
    if (std::exchange(is_shared_, false)) sums_.emplace(sums_->clone());
  }

  /// Removes gradients that were dropped since they arrived. @return whether any are left
  bool drop_stale() {
    bool any = false;
    for (Part& part : parts_) {
      part.has_arrived = part.has_arrived && part.drops == *part.target.drops;
      any = any || part.has_arrived;
    }
    return any;
  }

  /// Prepares one reduction over the axis: sets the parts that this rank does not contribute to 0.
  /// @return whether ranks of the axis have different contributions
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
          strided_fill(Device{}, piece, R(0));
    }
    return is_partial;
  }

  /// Groups the parameters by the other axes over which their shards must be reduced.
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

  /// [n]: the gradients of all parameters, in by-rank order.
  const Flat& sums() const { return *sums_; }
  /// Moves out the elements; the state and the targets of the parameters stay.
  Flat take_sums() { return *std::exchange(sums_, std::nullopt); }

  /// Passes reduced gradients to the leaves.
  /// @param mine  this rank's shards
  void deliver(const FlatLayout& layout, const Flat& mine) const {
    const index_t rank = coordinate_[axis_];
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Target& target = parts_[i].target;
      if (!parts_[i].has_arrived || !target.leaf) continue;
      const index_t at = layout.begin(i, rank);
      target.deliver(target.leaf.get(), mine.slice(0, at, at + layout.extents(i, rank).product()),
                     other_axes(parts_[i]) & target.taken_axes);
    }
  }

 private:
  struct Part {
    Target target{};
    bool has_arrived = false;
    AxisMask partial = 0;  ///< axes on which ranks have different contributions
    unsigned drops = 0;    ///< of the leaf's gradient, when this one arrived
  };

  AxisMask other_axes(const Part& part) const { return part.partial & ~(AxisMask(1) << axis_); }

  /// Whether this rank contributes a gradient that is replicated on some axes: the first one does.
  bool gives(AxisMask axes) const {
    bool gives = true;
    for (int a = 0; a < coordinate_.dims; ++a)
      gives = gives && ((axes >> a & 1u) == 0 || coordinate_[a] == 0);
    return gives;
  }

  /// Calls f(to, from, n) for each rank's shard of parameter i.
  template <class F>
  static void each_piece(const FlatLayout& layout, std::size_t i, const Flat& to, const Flat& from,
                         const F& f) {
    for (index_t r = 0; r < layout.ranks(); ++r) {
      const View piece = layout.by_rank(to.view(), i, r);
      f(static_cast<R*>(piece.data), static_cast<const R*>(layout.by_rank(from.view(), i, r).data),
        piece.size());
    }
  }

  int axis_;
  Shape coordinate_;
  std::vector<Part> parts_;
  std::optional<Flat> sums_{};
  bool is_shared_ = false;  ///< the elements may be shared with a gradient
};

}  // namespace cleave::inline v0::parallel
