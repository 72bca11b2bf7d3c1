// Gathered parameters in the tape: records that read them keep nothing, they ask for them again; what
// arrives of their gradients is summed over ranks once per group.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/grad/slot.hpp>
#include <cleave/grad/value.hpp>
#include <cleave/parallel/sharded_group.hpp>

namespace cleave::parallel {

/// One call of a module whose parameters are a group, in the tape: where the gradients of its whole
/// parameters end.
///
/// @tparam Group  a ShardedGroup
template <class Group>
class GroupRecord : public tape::RecordBase {
  using C = typename Group::compute_type;
  using R = typename Group::reduce_type;

 public:
  using Whole = typename Group::Whole;
  /// Adds this rank's part of a gradient, which begins at an element, to a leaf's.
  using Deliver = void (*)(tape::RecordBase* leaf, const Tensor<R, 1>& part, AxisMask left);

  int askers = 0;  ///< records that will ask for the whole

  GroupRecord(std::shared_ptr<Group> group, std::shared_ptr<const Whole> whole)
      : RecordBase(&functions),
        group_(std::move(group)),
        changes_(whole->changes),
        targets_(group_->layout.count()) {
    runs_first = true;
    if (!group_->reshards) held_ = std::move(whole);
    group_->askers.push_back(&askers);
  }
  ~GroupRecord() { std::erase(group_->askers, &askers); }

  /// @param i           the number of a parameter in the group
  /// @param leaf        the sharded parameter in the tape
  /// @param taken_axes  over which somebody else sums the leaf's gradient
  void set_target(std::size_t i, tape::RecordBase* leaf, Deliver f, AxisMask taken_axes) {
    targets_[i].leaf = tape::Ref<tape::RecordBase>(leaf);
    targets_[i].deliver = f;
    targets_[i].taken_axes = taken_axes;
  }

  /// The whole parameters: gathered for the first that asks, kept until all gradients have come.
  const Whole& again() {
    if (group_->changes() != changes_)
      throw Error("backward",
                  "a parameter of a fully sharded module was changed in place after the module had "
                  "used it");
    if (held_ == nullptr) {
      held_ = group_->take();
      group_->order->start_before(group_.get());
    }
    return *held_;
  }

  const FlatLayout& layout() const { return group_->layout; }

  /// Takes the gradient of whole parameter i over.
  /// @param axis    the group's
  /// @param layout  of the gradient: Partial on the axes over which it is still to be summed
  void put(std::size_t i, const View& gradient, const Layout& layout, int axis) {
    if (!sums_) {
      group_->order->end_reduction();  // the memory of one group's gradients at a time
      sums_.emplace(std::array<index_t, 1>{group_->layout.size()});
    }
    group_->layout.cut(gradient, i, sums_->view());
    Target& target = targets_[i];
    target.has_arrived = true;
    target.is_partial = layout[axis].is_partial();
    target.other_axes = 0;
    for (int a = 0; a < layout.axes; ++a)
      if (a != axis && layout[a].is_partial()) target.other_axes |= AxisMask(1) << a;
  }

 private:
  struct Target {
    tape::Ref<tape::RecordBase> leaf{};
    Deliver deliver = nullptr;
    AxisMask taken_axes = 0;
    bool has_arrived = false;
    bool is_partial = false;  ///< on the group's axis
    AxisMask other_axes = 0;  ///< on which the gradient is partial, too
  };

  /// Fills what nobody gives here: gradients that have not arrived, and those that are whole already
  /// on every rank of the axis, which the first one gives.
  bool complete_sums() {
    const bool is_partial =
        std::any_of(targets_.begin(), targets_.end(),
                    [](const Target& t) { return t.has_arrived && t.is_partial; });
    const bool gives_whole = !is_partial || group_->rank() == 0;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const Target& target = targets_[i];
      if (target.has_arrived && (target.is_partial || gives_whole)) continue;
      for (index_t r = 0; r < group_->layout.ranks(); ++r)
        if (const View part = group_->layout.by_rank(sums_->view(), i, r); part.size() > 0)
          strided_fill(Host{}, part, R(0));
    }
    return is_partial;
  }

  /// Parameters by the axes over which they are to be summed besides the group's.
  std::vector<typename Group::OtherSum> other_sums() const {
    std::vector<typename Group::OtherSum> sums;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const AxisMask axes = targets_[i].other_axes & ~targets_[i].taken_axes;
      if (!targets_[i].has_arrived || axes == 0) continue;
      auto at = std::find_if(sums.begin(), sums.end(),
                             [&](const auto& sum) { return sum.axes == axes; });
      if (at == sums.end()) at = sums.insert(at, {axes, {}});
      at->parts.push_back(i);
    }
    return sums;
  }

  void finish() {
    held_.reset();
    group_->let_go();
    askers = 0;
    if (!sums_) return;
    const bool is_partial = complete_sums();
    auto part = std::make_shared<Async<Tensor<R, 1>>>(
        group_->reduce(*std::exchange(sums_, std::nullopt), is_partial, other_sums()));
    GroupOrder::take_reduction(group_->order, [part, group = group_, targets = targets_](bool complete) {
      if (complete) deliver(*group, targets, part->wait());
    });
    for (Target& target : targets_) target.has_arrived = false;
  }
  static void deliver(const Group& group, const std::vector<Target>& targets,
                      const Tensor<R, 1>& mine) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const Target& target = targets[i];
      if (!target.has_arrived || !target.leaf) continue;
      const index_t at = group.layout.begin(i, group.rank());
      const index_t size = group.layout.extents(i, group.rank()).product();
      target.deliver(target.leaf.get(), mine.slice(0, at, at + size),
                     target.other_axes & target.taken_axes);
    }
  }

  void free_targets() {
    for (Target& target : targets_) target.leaf.reset();
  }

  static void destroy_record(RecordBase* r) { delete static_cast<GroupRecord*>(r); }
  static void run_record(RecordBase* r) { static_cast<GroupRecord*>(r)->finish(); }
  static void release_record(RecordBase* r) { static_cast<GroupRecord*>(r)->free_targets(); }
  static void forget_record(RecordBase* r) {
    GroupRecord& self = *static_cast<GroupRecord*>(r);
    self.held_.reset();
    self.sums_.reset();
    for (Target& target : self.targets_) target.has_arrived = false;
  }
  static constexpr tape::Table functions{&destroy_record, &run_record, &release_record,
                                         &forget_record};

  std::shared_ptr<Group> group_;
  unsigned changes_;  ///< of the parameters when the module used them
  std::shared_ptr<const Whole> held_{};
  std::vector<Target> targets_;  ///< of the parameters of the group
  std::optional<Tensor<R, 1>> sums_{};  ///< gradients of the whole parameters, by rank
};

/// A whole parameter: what it is made of again, and where its gradient goes.
///
/// @tparam F  the gathered parameter
/// @tparam X  the sharded one
template <class F, class X, class Group, int Axis>
class GatheredSlot : public tape::Slot<F> {
  using R = typename Group::reduce_type;
  using Record = GroupRecord<Group>;

 public:
  /// @param at  the parameter's number in the group
  GatheredSlot(const F& whole, Record* record, std::size_t at)
      : tape::Slot<F>(&functions, tape::hollow(whole)), record_(record), at_(at) {
    this->operands = &record_;
    this->operand_count = 1;
    this->runs_first = true;
    this->askers = &record->askers;
    this->again = [](tape::Slot<F>* slot) {
      GatheredSlot& self = *static_cast<GatheredSlot*>(slot);
      if (!self.record_)
        throw Error("backward",
                    "the tape has been freed by an earlier backward; evaluate the function again, "
                    "or call backward(loss, retain)");
      return gathered(static_cast<Record*>(self.record_.get())->again(), self.group_layout(),
                      self.at_, self.like);
    };
  }

  /// Parameter `at` in the whole group. @param like  of its mesh and global extents
  static F gathered(const typename Record::Whole& whole, const FlatLayout& layout, std::size_t at,
                    const auto& like) {
    return F::unchecked(
        F::local_type::adopt(whole.elements.data() + layout.whole_begin(at),
                             to_array<F::dims>(layout.whole_extents(at)), whole.elements.storage()),
        like.mesh(), like.shape());
  }

  /// Adds to the gradient of the sharded parameter.
  static void deliver(tape::RecordBase* record, const Tensor<R, 1>& part, AxisMask left) {
    auto& leaf = *static_cast<tape::Leaf<X>*>(record);
    Layout layout = X::layout;
    for (int a = 0; a < layout.axes; ++a)
      if (left >> a & 1u) layout[a] = Placement::partial(ReduceOp::sum);
    const auto local = converted<typename X::value_type>(part);
    leaf.sum.put({layout, X::local_type::adopt(local.data(), leaf.like.local().shape(),
                                               local.storage())});
    leaf.complete();
  }

 private:
  const FlatLayout& group_layout() const {
    return static_cast<Record*>(record_.get())->layout();
  }

  void pass_on() {
    if (this->sum.empty()) return;
    // sums over ranks are left to the group: it makes them of shards, all at once
    const auto part = this->sum.collect(this->like, ~AxisMask(0));
    this->sum.clear();
    const auto local = converted<R>(part.local);
    static_cast<Record*>(record_.get())->put(at_, local.view(), part.layout, Axis);
  }

  static void destroy_slot(tape::RecordBase* r) { delete static_cast<GatheredSlot*>(r); }
  static void run_slot(tape::RecordBase* r) { static_cast<GatheredSlot*>(r)->pass_on(); }
  static void release_slot(tape::RecordBase* r) { static_cast<GatheredSlot*>(r)->record_.reset(); }
  static constexpr tape::Table functions{&destroy_slot, &run_slot, &release_slot,
                                         &tape::Slot<F>::forget};

  tape::Ref<tape::RecordBase> record_;
  std::size_t at_;
};

}  // namespace cleave::parallel
