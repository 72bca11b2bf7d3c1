// The groups of a fully sharded module, in the order of its members: which is gathered next, and
// whose gradients are summed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <cleave/grad/record.hpp>

namespace cleave::parallel {

/// What groups of other element types know of a group.
class GroupLink : public std::enable_shared_from_this<GroupLink> {
 public:
  int number = 0;  ///< among the groups of the module

  virtual ~GroupLink() = default;
  /// Starts to gather, unless that is under way or done.
  /// @collective the ranks of the group's axis
  virtual void start() = 0;
  /// Whether a tape will ask for the whole.
  virtual bool is_wanted() const = 0;
  /// Gives up what was gathered for nobody.
  virtual void drop() = 0;
  /// Sums gradients that were kept back by earlier backwards, if there are any.
  /// @collective the ranks of the group's axis
  virtual void reduce_kept() = 0;
};

/// The groups of one module, in the order of its members: which is gathered next, and the one
/// reduction of gradients that may be under way.
class GroupOrder {
 public:
  bool prefetches = true;
  bool sums_gradients = true;  ///< over ranks, in backward; they are kept on each rank otherwise

  int module_number = 0;  ///< among the fully sharded modules of the mesh

  void add(const std::shared_ptr<GroupLink>& group) {
    groups_.push_back(group);
    group->number = int(groups_.size());
  }

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
  /// The end of a sweep in which reductions were started.
  struct Ends {
    GroupOrder& order;
    ~Ends() { order.ends_with_sweep_ = false; }
  };

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

}  // namespace cleave::parallel
