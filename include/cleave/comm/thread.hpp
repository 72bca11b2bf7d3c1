// The thread backend: the ranks are threads of one process, and read each other's tensors.
//
// Every rank shows its call, all meet at a door, everybody copies or reduces what it wants straight
// from its peers' memory (beginning with its right neighbour, so that not all read the same one),
// and all meet again before any source may change. Nothing is packed; reductions combine in rank
// order. What a rank gets wrong behind the door fails the call on all ranks of the group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/reduce.hpp>
#include <cleave/comm/thread_group.hpp>
#include <cleave/comm/thread_world.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave {

namespace detail {

/// A rank's seat in a thread world; when its last communicator is gone, it has left.
class ThreadSeat {
 public:
  ThreadSeat(std::shared_ptr<ThreadWorld> world, int rank)
      : world_(std::move(world)), rank_(rank) {}
  ThreadSeat(const ThreadSeat&) = delete;  // one per rank
  ThreadSeat& operator=(const ThreadSeat&) = delete;
  ~ThreadSeat() { world_->leave(rank_); }

 private:
  std::shared_ptr<ThreadWorld> world_;
  int rank_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank, std::string label,
                     std::shared_ptr<RankState> state, std::shared_ptr<ThreadSeat> seat)
      : Communicator(rank, group->size(), std::move(label), std::move(state)),
        group_(std::move(group)),
        seat_(std::move(seat)),
        operands_(std::size_t(size())) {}

  const char* backend() const noexcept override { return "thread"; }
  bool concurrent() const noexcept override { return true; }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    const int place = place_in_subgroup(*this, ranks);
    std::uint64_t occurrence = 0;
    for (const std::vector<int>& earlier : subgroups_)
      occurrence += std::equal(earlier.begin(), earlier.end(), ranks.begin(), ranks.end());
    subgroups_.emplace_back(ranks.begin(), ranks.end());
    return std::make_shared<ThreadCommunicator>(group_->subgroup(ranks, occurrence), place,
                                                std::move(label), shared_state(), seat_);
  }

 protected:
  void execute(const Collective& c) override {
    verify_call(c, rank(), size());
    if (size() > 1) {
      Published& mine = group_->shown(rank(), round_);
      mine.compares = false;
      mine.collective = c;
      mine.error.clear();
      pass_door(operation_of(c));
      verify_peers(c);
    }
    switch (c.kind) {
      case CollectiveKind::barrier: return;
      case CollectiveKind::all_reduce: return all_reduce(c);
      default: break;
    }
    std::exception_ptr error;
    attempt(error, [&] { receive(c); });
    finish(c, error);
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    Published& shown = group_->shown(rank(), round_);
    shown.compares = true;
    shown.signature = mine;
    pass_door(name_of(CollectiveKind(mine.kind)));
    for (int r = 0; r < size(); ++r) {
      const Published& theirs = group_->shown(r, round_ - 1);
      if (!theirs.compares) disagree("compares its calls (CLEAVE_CHECK)", "does not", r);
      all[std::size_t(r)] = theirs.signature;
    }
  }

 private:
  void pass_door(const char* operation) {
    group_->pass_door({rank(), round_, operation, &label(), state().timeout_seconds});
    ++round_;
  }

  /// What a peer asks for in the collective that is under way.
  const Collective& call_of(int r) const { return group_->shown(r, round_ - 1).collective; }

  /// Every rank compares the same calls and comes to the same verdict: all throw, or none.
  void verify_peers(const Collective& c) const {
    for (int r = 0; r < size(); ++r) {
      if (group_->shown(r, round_ - 1).compares)
        disagree("does not compare its calls (CLEAVE_CHECK)", "does", r);
      if (const Collective& first = call_of(0), &theirs = call_of(r); !agree(first, theirs))
        throw Error(operation_of(c),
                    "ranks of group '" + label() + "' disagree: rank 0 runs " + text_of(first) +
                        ", rank " + std::to_string(r) + " runs " + text_of(theirs),
                    {.rank = state().world_rank});
    }
  }

  [[noreturn]] void disagree(const char* mine, const char* theirs, int r) const {
    throw Error("collective",
                "ranks of group '" + label() + "' disagree: rank " + std::to_string(rank()) + " " +
                    mine + ", rank " + std::to_string(r) + " " + theirs,
                {.rank = state().world_rank});
  }

  /// Work behind the door: what it throws waits until no peer reads this rank's memory.
  template <class Work>
  void attempt(std::exception_ptr& error, Work work) noexcept {
    try {
      work();
    } catch (const std::exception& e) {
      error = std::current_exception();
      if (size() > 1) group_->report(rank(), round_ - 1, e.what());
    }
  }

  void take_step() noexcept {
    if (size() > 1) group_->take_step(rank(), step_++);
  }

  /// The last step; throws what went wrong behind the door, here or at a peer.
  void finish(const Collective& c, const std::exception_ptr& error) {
    take_step();
    if (error != nullptr) std::rethrow_exception(error);
    if (size() == 1) return;
    if (RankFailure failure = group_->failure_behind_door(round_ - 1); failure.rank >= 0)
      throw PeerError(operation_of(c), std::move(failure), state().world_rank);
  }

  /// The peers, the right neighbour first and this rank last.
  template <class Visitor>
  void for_peers(const Collective& c, Visitor visit) const {
    for (int k = 1; k <= size(); ++k) {
      const int r = (rank() + k) % size();
      visit(r, size() > 1 ? call_of(r) : c);
    }
  }

  void receive(const Collective& c) {
    const Box* pieces = c.pieces.data();
    switch (c.kind) {
      case CollectiveKind::broadcast:
        if (rank() != c.root) copy_checked(c, call_of(c.root).source, c.destination);
        return;
      case CollectiveKind::scatter: {
        const Collective& root = size() > 1 ? call_of(c.root) : c;
        const Box& piece = root.pieces[std::size_t(rank())];
        if (!piece.empty()) copy_checked(c, root.source[piece], c.destination);
        return;
      }
      case CollectiveKind::gather:
        if (rank() != c.root) return;
        [[fallthrough]];
      case CollectiveKind::all_gather:
        return for_peers(c, [&](int r, const Collective& theirs) {
          if (!pieces[r].empty()) copy_checked(c, theirs.source, c.destination[pieces[r]]);
        });
      case CollectiveKind::reduce_scatter: {
        const Box& piece = pieces[rank()];
        if (piece.empty()) return;
        for_peers(c, [&](int r, const Collective& theirs) {
          operands_[std::size_t(r)] = theirs.source[piece];
        });
        return reduce_range(c.op, operands_, c.destination, 0, c.destination.size());
      }
      case CollectiveKind::all_to_all:
      case CollectiveKind::exchange:
        return for_peers(c, [&](int r, const Collective& theirs) {
          if (state().check == CheckLevel::collective)
            verify_transfers(c, theirs.sends, rank(), c.receives, r);
          for (const Transfer& t : c.receives) {
            if (t.peer != r || t.destination.empty()) continue;
            verify_box(c, t.source, theirs.source.extents, "source");
            copy_checked(c, theirs.source[t.source], c.destination[t.destination]);
          }
        });
      case CollectiveKind::barrier:
      case CollectiveKind::all_reduce: return;
    }
  }

  /// Each rank reduces its share of the elements and copies the others'; small calls save a step:
  /// each rank reduces everything. Either way element i has the same bits on all ranks.
  void all_reduce(const Collective& c) {
    const index_t count = c.source.size();
    const auto reduce = [&](const View& result, index_t begin, index_t end) {
      for_peers(c, [&](int r, const Collective& theirs) {
        operands_[std::size_t(r)] = theirs.source;
      });
      reduce_range(c.op, operands_, result, begin, end);
    };
    std::exception_ptr error;
    if (c.source.bytes() <= block_bytes) {
      alignas(64) std::byte block[block_bytes];  // the destination may be a source that others read
      const View result = View::dense(block, c.dtype(), c.source.extents);
      attempt(error, [&] { reduce(result, 0, count); });
      finish(c, error);
      return strided_copy(result, c.destination);
    }
    const index_t line = 64 / index_t(size_of(c.dtype()));
    const index_t share = ((count + size() - 1) / size() + line - 1) / line * line;
    const auto begin_of = [&](int r) { return std::min(share * r, count); };
    attempt(error, [&] { reduce(c.destination, begin_of(rank()), begin_of(rank() + 1)); });
    take_step();
    if (size() > 1 && error == nullptr) {
      attempt(error, [&] {
        for_peers(c, [&](int r, const Collective& theirs) {
          if (r == rank()) return;
          copy_range(theirs.destination, c.destination, begin_of(r), begin_of(r + 1));
        });
      });
    }
    finish(c, error);
  }

  std::shared_ptr<ThreadGroup> group_;
  std::shared_ptr<ThreadSeat> seat_;
  std::vector<ConstView> operands_;
  std::vector<std::vector<int>> subgroups_;  ///< the lists this rank has made subgroups of
  std::uint64_t round_ = 0;                  ///< of the door
  std::uint64_t step_ = 0;                   ///< behind it
};

/// The communicators of all ranks of a new thread world.
inline std::vector<std::shared_ptr<Communicator>> thread_communicators(
    const std::shared_ptr<ThreadWorld>& world) {
  std::vector<int> members;
  for (int r = 0; r < world->size(); ++r) members.push_back(r);
  const auto group = std::make_shared<ThreadGroup>(world, members);
  std::vector<std::shared_ptr<Communicator>> communicators;
  for (int r = 0; r < world->size(); ++r) {
    auto state = std::make_shared<RankState>(RankState::from_environment(r, world->size()));
    communicators.push_back(std::make_shared<ThreadCommunicator>(
        group, r, "world", std::move(state), std::make_shared<ThreadSeat>(world, r)));
  }
  return communicators;
}

}  // namespace detail

/// One communicator for each of `ranks` threads, for programs that start their own; `run` and
/// `run_threads` do all of this.
///
/// Each is to be used by one thread. A rank whose communicators are all destroyed has left: peers
/// that wait for it get an Error.
///
/// @throws Error if `ranks` is not positive
inline std::vector<std::shared_ptr<Communicator>> thread_communicators(int ranks) {
  if (ranks < 1)
    throw Error("thread_communicators", std::to_string(ranks) + " ranks; there must be at least 1");
  return detail::thread_communicators(std::make_shared<detail::ThreadWorld>(ranks));
}

}  // namespace cleave
