// Parameters that are gathered together: this rank's part of them in one flat tensor, and the whole
// while somebody uses it. Knows neither modules nor the placements of what it holds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/async.hpp>
#include <cleave/grad/record.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/select.hpp>
#include <cleave/parallel/flat_layout.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::parallel {

/// What groups of other element types know of a group.
class GroupLink : public std::enable_shared_from_this<GroupLink> {
 public:
  virtual ~GroupLink() = default;
  /// Starts to gather, unless that is under way or done.
  /// @collective the ranks of the group's axis
  virtual void start() = 0;
  /// Whether a tape will ask for the whole.
  virtual bool is_wanted() const = 0;
  /// Gives up what was gathered for nobody.
  virtual void drop() = 0;
};

/// The groups of one module, in the order of its members: which is gathered next, and the one
/// reduction of gradients that may be under way.
class GroupOrder {
 public:
  bool prefetches = true;

  void add(const std::shared_ptr<GroupLink>& group) { groups_.push_back(group); }

  void start_after(const GroupLink* group) const { start(group, 1); }
  /// The next one in backward, if it is wanted there.
  void start_before(const GroupLink* group) const { start(group, -1); }

  /// Ends the reduction of gradients that is under way, if one is.
  void end_reduction(bool complete = true) {
    if (const auto finish = std::exchange(finish_, nullptr)) finish(complete);
  }
  /// Takes a reduction that has been started, and ends the one before; the next one, or the end of
  /// the backward, ends it.
  ///
  /// @param finish  waits for it; called with false if the backward has failed
  static void take_reduction(const std::shared_ptr<GroupOrder>& self,
                             std::function<void(bool)> finish) {
    self->end_reduction();
    self->finish_ = std::move(finish);
    if (std::exchange(self->ends_with_sweep_, true)) return;
    tape::Sweep::current()->at_end.push_back([self](bool complete) {
      self->ends_with_sweep_ = false;
      self->end_reduction(complete);
      for (const auto& link : self->groups_)
        if (const auto group = link.lock()) group->drop();
    });
  }

 private:
  void start(const GroupLink* group, int step) const {
    if (!prefetches) return;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].lock().get() != group) continue;
      const std::size_t other = i + std::size_t(step);
      if (other >= groups_.size()) return;  // also before the first
      if (const auto next = groups_[other].lock();
          next != nullptr && (step > 0 || next->is_wanted()))
        next->start();
      return;
    }
  }

  std::vector<std::weak_ptr<GroupLink>> groups_;
  std::function<void(bool)> finish_;
  bool ends_with_sweep_ = false;
};

/// x with elements To; x itself if it has them.
template <class To, class X>
auto converted(const X& x) {
  if constexpr (std::is_same_v<To, typename X::value_type>) return x;
  else return cast<To>(x);
}

/// @tparam T  elements of the parameters
/// @tparam C  elements that they are gathered and computed with
/// @tparam R  elements in which gradients are summed over ranks
template <class T, class C, class R>
class ShardedGroup final : public GroupLink {
 public:
  using stored_type = T;
  using compute_type = C;
  using reduce_type = R;

  /// The whole parameters, as they were at a time.
  struct Whole {
    Tensor<C, 1> elements;
    unsigned changes;
  };

  FlatLayout layout;
  bool reshards = true;  ///< after forward; the tape keeps the whole otherwise
  std::shared_ptr<GroupOrder> order;
  std::vector<const int*> askers{};  ///< of each tape: how many records will ask for the whole

  /// @collective every rank of the mesh
  template <class Mesh>
  ShardedGroup(const Mesh& mesh, int axis, std::shared_ptr<GroupOrder> of)
      : layout(mesh.extents()[axis]), order(std::move(of)), axis_(axis) {
    const auto held = std::make_shared<const Mesh>(mesh);
    mesh_ = {held, &held->state()};
    duplicated_mesh_ = mesh_->twin();
    group_ = duplicated_mesh_->group(mask());
  }

  AxisMask mask() const { return AxisMask(1) << axis_; }
  index_t rank() const { return mesh_->coordinate()[axis_]; }
  index_t own_size() const { return layout.size(rank()); }

  /// Memory for this rank's parts. @pre all parameters have been added to the layout
  void allocate() {
    // never empty: what counts changes of the elements is the same on all ranks
    shard_ = Tensor<T, 1>({std::max<index_t>(1, own_size())});
  }
  /// Where this rank's part of parameter i lies.
  T* part(std::size_t i) const { return shard_.data() + layout.begin(i, rank()); }
  const std::shared_ptr<void>& storage() const { return shard_.storage(); }

  /// How often the parameters have been changed in place.
  unsigned changes() const { return changes_in(Host{}, shard_.storage()); }

  void start() override {
    if (is_fresh(whole_.lock())) return;
    if (gather_ && gather_changes_ == changes()) return;
    gather_.reset();
    gather_changes_ = changes();
    const Tensor<C, 1> mine = converted<C>(shard_.slice(0, 0, own_size()));
    if (layout.ranks() == 1) {  // nothing moves
      gather_.emplace(start_async(Host{}, mesh_->group(), [mine] { return mine; }));
      return;
    }
    const Tensor<C, 1> all({layout.size()});
    gather_.emplace(start_async(Host{}, mesh_->group(),
                                [mine, all, pieces = layout.pieces(), group = group_,
                                 name = mesh_->label(mask())] {
                                  Collective call;
                                  call.kind = CollectiveKind::all_gather;
                                  call.source = mine.view();
                                  call.destination = all.view();
                                  call.pieces = pieces;
                                  call.global_count = all.size();
                                  call.even = are_equal(pieces);
                                  call.operation = "fully_shard";
                                  call.axes = name.c_str();
                                  group->run(call);
                                  return all;
                                }));
  }

  /// The whole parameters, as they are now.
  /// @collective the ranks of the axis
  std::shared_ptr<const Whole> take() {
    if (auto whole = whole_.lock(); is_fresh(whole)) return whole;
    start();
    auto gather = std::move(*gather_);
    gather_.reset();
    Tensor<C, 1> elements = std::move(gather).wait();
    if (!layout.is_one_order()) {
      const Tensor<C, 1> joined({layout.size()});
      layout.join(elements.view(), joined.view());
      elements = joined;
    }
    auto whole = std::make_shared<const Whole>(Whole{std::move(elements), gather_changes_});
    whole_ = whole;
    return whole;
  }

  bool is_wanted() const override {
    return std::any_of(askers.begin(), askers.end(), [](const int* count) { return *count > 0; });
  }

  /// Keeps the whole while a backward calls the module once more: it is asked for at once.
  void keep(std::shared_ptr<const Whole> whole) {
    if (kept_ == nullptr)
      tape::Sweep::current()->at_end.push_back(
          [self = weak_from_this()](bool) {
            if (const auto group = self.lock()) group->drop();
          });
    kept_ = std::move(whole);
  }
  void let_go() { kept_.reset(); }
  void drop() override {
    kept_.reset();
    gather_.reset();
  }

  /// Sums of gradients over other axes of the mesh than the group's, on what is left of them here.
  struct OtherSum {
    AxisMask axes;
    std::vector<std::size_t> parts;  ///< of those parameters
  };

  /// Starts the sum over ranks of gradients that lie by rank; the result is this rank's part.
  ///
  /// @param is_partial  whether ranks of the axis have different addends; if not, nothing is sent
  /// @collective        the ranks of the axis, and those of the other sums
  Async<Tensor<R, 1>> reduce(const Tensor<R, 1>& sums, bool is_partial,
                             std::vector<OtherSum> others) const {
    const Tensor<R, 1> mine({own_size()});
    return start_async(
        Host{}, mesh_->group(),
        [sums, mine, is_partial, others = std::move(others), layout = layout, rank = rank(),
         group = group_, mesh = duplicated_mesh_, mask = mask()] {
          const std::vector<Box> pieces = layout.pieces();
          if (is_partial && layout.ranks() > 1) {
            Collective call;
            call.kind = CollectiveKind::reduce_scatter;
            call.op = ReduceOp::sum;
            call.source = sums.view();
            call.destination = mine.view();
            call.pieces = pieces;
            call.global_count = sums.size();
            call.even = are_equal(pieces);
            call.operation = "fully_shard";
            call.axes = mesh->label(mask).c_str();
            group->run(call);
          } else if (mine.size() > 0) {
            mine.copy_(sums[pieces[std::size_t(rank)]]);
          }
          for (const OtherSum& other : others) sum_over(*mesh, other, layout, rank, mine);
          return mine;
        });
  }

 private:
  static bool are_equal(const std::vector<Box>& pieces) {
    return std::all_of(pieces.begin(), pieces.end(),
                       [&](const Box& box) { return box.extent(0) == pieces[0].extent(0); });
  }

  bool is_fresh(const std::shared_ptr<const Whole>& whole) const {
    return whole != nullptr && whole->changes == changes();
  }

  /// One all-reduce of the parts of several parameters; in place if they are all there are.
  static void sum_over(const MeshState& mesh, const OtherSum& other, const FlatLayout& layout,
                       index_t rank, const Tensor<R, 1>& mine) {
    const auto part = [&](std::size_t i) {
      const index_t at = layout.begin(i, rank);
      return mine.slice(0, at, at + layout.extents(i, rank).product());
    };
    const bool is_all = other.parts.size() == layout.count();
    index_t size = 0;
    for (const std::size_t i : other.parts) size += part(i).size();
    if (size == 0) return;  // for all ranks of those axes
    const Tensor<R, 1> packed = is_all ? mine : Tensor<R, 1>({size});
    const auto each = [&](const auto& move) {
      index_t at = 0;
      for (const std::size_t i : other.parts) {
        const Tensor<R, 1> here = part(i);
        move(here, packed.slice(0, at, at + here.size()));
        at += here.size();
      }
    };
    if (!is_all) each([](const auto& here, const auto& there) { there.copy_(here); });
    Collective call;
    call.kind = CollectiveKind::all_reduce;
    call.op = ReduceOp::sum;
    call.source = packed.view();
    call.destination = packed.view();
    call.global_count = packed.size();
    call.operation = "fully_shard";
    call.axes = mesh.label(other.axes).c_str();
    mesh.group(other.axes)->run(call);
    if (!is_all) each([](const auto& here, const auto& there) { here.copy_(there); });
  }

  int axis_;
  std::shared_ptr<const MeshState> mesh_;
  std::shared_ptr<const MeshState> duplicated_mesh_;  ///< for what runs beside the rank
  std::shared_ptr<Communicator> group_;    ///< of the axis, likewise
  Tensor<T, 1> shard_;
  std::weak_ptr<const Whole> whole_;
  std::shared_ptr<const Whole> kept_;
  std::optional<Async<Tensor<C, 1>>> gather_;
  unsigned gather_changes_ = 0;  ///< of the elements that it reads
};

}  // namespace cleave::parallel
