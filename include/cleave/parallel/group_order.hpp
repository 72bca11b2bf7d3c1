// The groups of a fully sharded module in the order of its members: decides which group is
// prefetched next, and tracks the gradient reduction in progress.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <cleave/grad/record.hpp>

namespace cleave::inline v0::parallel {

/// The interface of a group that does not depend on its element types.
class GroupLink : public std::enable_shared_from_this<GroupLink> {
 public:
  int number = 0;  ///< among the groups of the module

  virtual ~GroupLink() = default;
  /// Starts the all-gather, unless it is in progress or done.
  /// @collective the ranks of the group's axis
  virtual void start() = 0;
  /// Whether a backward will need the unsharded parameters.
  virtual bool is_wanted() const = 0;
  /// Frees unsharded parameters that are kept or prefetched.
  virtual void drop() = 0;
  /// Reduces the unreduced gradients of earlier backwards, if there are any.
  /// @collective the ranks of the group's axis
  virtual void reduce_kept() = 0;
};

/// The groups of one module in the order of its members, and the one gradient reduction that may be
/// in progress.
class GroupOrder {
 public:
  bool prefetches = true;
  bool sums_gradients = true;  ///< backward reduces gradients over ranks; else each rank keeps them

  int module_number = 0;  ///< among the fully sharded modules of the mesh

  void add(const std::shared_ptr<GroupLink>& group) {
    groups_.push_back(group);
    group->number = int(groups_.size());
  }

  /// Prefetches the next group in forward.
  void start_after(const GroupLink* group) const { start(group, 1); }
  /// Prefetches the next group in backward, if backward needs it.
  void start_before(const GroupLink* group) const { start(group, -1); }

  /// Ends the gradient reduction in progress, if there is one.
  void end_reduction(bool complete = true) {
    if (const auto finish = std::exchange(finish_, nullptr)) finish(complete);
  }
  /// Registers a reduction that has been started, and ends the previous one. The next reduction, or
  /// the end of the backward, ends it.
  ///
  /// @param finish  waits for it; called with false if the backward has failed
  static void take_reduction(const std::shared_ptr<GroupOrder>& self,
                             std::function<void(bool)> finish) {
    self->end_reduction();
    self->finish_ = std::move(finish);
    if (std::exchange(self->ends_with_sweep_, true)) return;
    tape::Sweep::current()->at_end.push_back([self](bool complete) {
      const Ends ends{*self};
      self->end_reduction(complete);
      for (const auto& link : self->groups_) {
        const auto group = link.lock();
        if (group == nullptr) continue;
        group->drop();
        if (complete) group->reduce_kept();
      }
      self->end_reduction(complete);
    });
  }

 private:
  /// Resets `ends_with_sweep_` at the end of a sweep in which reductions were started.
  struct Ends {
    GroupOrder& order;
    ~Ends() { order.ends_with_sweep_ = false; }
  };

  void start(const GroupLink* group, int step) const {
    if (!prefetches) return;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].lock().get() != group) continue;
      const std::size_t other = i + std::size_t(step);
      if (other >= groups_.size()) return;  // past the last, or before the first
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

}  // namespace cleave::inline v0::parallel
