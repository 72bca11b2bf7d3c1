// Unsharded parameters in the tape: records that read them save nothing and all-gather them again
// in backward; their gradients are reduced over ranks once per group.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/grad/gradient_slot.hpp>
#include <cleave/grad/value.hpp>
#include <cleave/parallel/group_gradients.hpp>
#include <cleave/parallel/own_batch.hpp>
#include <cleave/parallel/sharded_group.hpp>

namespace cleave::inline v0::parallel {

/// The record of one call of a module whose parameters form a group: collects the gradients of its
/// unsharded parameters.
///
/// @tparam Group  a ShardedGroup
template <class Group>
class GroupRecord : public tape::RecordBase {
  using R = typename Group::reduce_type;
  using Device = typename Group::device_type;

 public:
  using Whole = typename Group::Whole;

  int uses = 0;  ///< remaining calls of `again` in this backward

  GroupRecord(std::shared_ptr<Group> group, std::shared_ptr<const Whole> whole)
      : RecordBase(&functions),
        group_(std::move(group)),
        changes_(whole->changes),
        part_(group_->part_of(*whole)),
        gradients_(group_->layout, group_->axis(), group_->coordinate()) {
    runs_first = true;
    if (!group_->reshards()) held_ = std::move(whole);
    group_->uses.push_back(&uses);
  }
  ~GroupRecord() { std::erase(group_->uses, &uses); }

  /// @param i  the number of a parameter in the group
  void set_target(std::size_t i, GradientTarget<R, Device> target) {
    gradients_.set_target(i, std::move(target));
  }

  /// The unsharded parameters: gathered at the first call, freed after the last one.
  std::shared_ptr<const Whole> again() {
    if (group_->changes() != changes_)
      throw Error("backward",
                  "a parameter of a fully sharded module was changed in place after the module had "
                  "used it");
    auto whole = std::exchange(held_, nullptr);
    if (whole == nullptr) {
      whole = group_->take();
      group_->order->start_before(group_.get());
    }
    ++asked_;
    if (--uses > 0 || !group_->reshards()) held_ = whole;
    return whole;
  }

  const FlatLayout& layout() const { return group_->layout; }

  /// Takes the gradient of unsharded parameter i.
  /// @param layout  its placements: Partial on the axes over which it has not been reduced yet
  template <int Rank>
  void put(std::size_t i, const Tensor<R, Rank, Device>& gradient, const Layout& layout) {
    if (gradients_.empty()) group_->order->end_reduction();  // one group's gradients at a time
    gradients_.put(group_->layout, i, gradient, layout);
  }

 private:
  void finish() {
    held_.reset();
    group_->let_go();
    uses += std::exchange(asked_, 0);
    if (!gradients_.empty()) Group::take_gradients(group_, gradients_.take());
  }
  /// Called when the tape is freed: there is no further backward.
  void free_all() {
    gradients_.free_targets();
    part_.reset();
    uses = 0;
  }
  /// Called when a backward has failed.
  void forget() {
    held_.reset();
    gradients_.clear();
    group_->drop_gradients();
    uses += std::exchange(asked_, 0);
  }

  static GroupRecord& self(RecordBase* r) { return *static_cast<GroupRecord*>(r); }
  static void destroy_record(RecordBase* r) { delete static_cast<GroupRecord*>(r); }
  static void run_record(RecordBase* r) { self(r).finish(); }
  static void release_record(RecordBase* r) { self(r).free_all(); }
  static void forget_record(RecordBase* r) { self(r).forget(); }
  static constexpr tape::Table functions{&destroy_record, &run_record, &release_record,
                                         &forget_record};

  std::shared_ptr<Group> group_;
  unsigned changes_;  ///< the parameters' count of in-place changes when the module used them
  std::shared_ptr<const Whole> held_{};
  std::shared_ptr<const typename Group::Whole> part_;  ///< kept between forward and backward
  int asked_ = 0;                                      ///< calls of `again` in this backward
  GroupGradients<R, Device> gradients_;
};

/// The slot of an unsharded parameter: how it is gathered again, and where its gradient goes.
///
/// @tparam F   the gathered parameter on the mesh of the sharded one
/// @tparam X   the sharded one
/// @tparam On  the mesh on which it is used, see `batch_mesh`
template <class F, class X, class Group, class On>
class GatheredSlot : public tape::Slot<typename OwnPart<F, On>::type> {
  using Own = OwnPart<F, On>;
  using R = typename Group::reduce_type;
  using Record = GroupRecord<Group>;

 public:
  using Value = typename Own::type;

  /// @param at  the parameter's number in the group
  GatheredSlot(const Value& whole, Record* record, std::size_t at, const X& sharded, const On& on)
      : tape::Slot<Value>(&functions, tape::hollow(whole)),
        record_(record),
        at_(at),
        sharded_(tape::hollow(sharded)),
        on_(on) {
    this->operands = &record_;
    this->operand_count = 1;
    this->runs_first = true;
    this->uses = &record->uses;
    this->again = [](tape::Slot<Value>* slot) {
      GatheredSlot& self = *static_cast<GatheredSlot*>(slot);
      if (!self.record_)
        throw Error("backward",
                    "the tape has been freed by an earlier backward; evaluate the function again, "
                    "or call backward(loss, retain)");
      return gathered(*self.record().again(), self.record().layout(), self.at_, self.sharded_,
                      self.on_);
    };
  }

  /// Parameter `at` of the unsharded group. @param sharded  its shard
  static Value gathered(const typename Record::Whole& whole, const FlatLayout& layout,
                        std::size_t at, const X& sharded, const On& on) {
    const auto local =
        F::local_type::adopt(whole.elements.data() + layout.whole_begin(at),
                             to_array<F::dims>(layout.whole_extents(at)), whole.elements.storage());
    if constexpr (std::is_same_v<On, WholeBatch>)
      return F::unchecked(local, sharded.mesh(), sharded.shape());
    else return Own::of(local, sharded.shape(), on);
  }

  /// Adds to the gradient of the sharded parameter.
  static void deliver(tape::RecordBase* record,
                      const Tensor<R, 1, typename Group::device_type>& shard, AxisMask left) {
    auto& leaf = *static_cast<tape::Leaf<X>*>(record);
    Layout layout = X::layout;
    for (int a = 0; a < layout.axes; ++a)
      if (left >> a & 1u) layout[a] = Placement::partial(ReduceOp::sum);
    const auto local = elements_as<typename X::value_type>(shard);
    leaf.sum.put({layout, X::local_type::adopt(local.data(), leaf.like.to_local().shape(),
                                               local.storage())});
    leaf.complete();
  }

 private:
  Record& record() const { return *static_cast<Record*>(record_.get()); }

  void pass_on() {
    if (this->sum.empty()) return;
    // the group reduces over ranks: for all parameters at once, on shards
    const auto part = [&] {
      if constexpr (is_dtensor<Value>) return this->sum.collect(this->like, ~AxisMask(0));
      else
        return tape::PlacedLocal<typename Value::value_type, Value::dims,
                                 typename Value::device_type>{{}, this->sum.settle(this->like)};
    }();
    this->sum.clear();
    record().put(at_, Own::addend(elements_as<R>(part.local), sharded_.mesh()),
                 Own::widened(part.layout));
  }

  static void destroy_slot(tape::RecordBase* r) { delete static_cast<GatheredSlot*>(r); }
  static void run_slot(tape::RecordBase* r) { static_cast<GatheredSlot*>(r)->pass_on(); }
  static void release_slot(tape::RecordBase* r) { static_cast<GatheredSlot*>(r)->record_.reset(); }
  static constexpr tape::Table functions{&destroy_slot, &run_slot, &release_slot,
                                         &tape::Slot<Value>::forget};

  tape::Ref<tape::RecordBase> record_;
  std::size_t at_;
  X sharded_;  ///< hollow
  On on_;
};

}  // namespace cleave::inline v0::parallel
