// The interface between tensors and communication backends: a group of ranks that run collectives.
//
// One small abstract class, so that the type of a distributed tensor does not depend on its
// backend. All calls enter by `run` or `run_all`, which notify observers (traces), compare the call
// across ranks if checks require it, and then make one virtual call.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/machine.hpp>
#include <cleave/comm/rank_slots.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0 {

class Communicator;
namespace detail {
class Worker;
}

/// How much is verified at run time (environment: CLEAVE_CHECK=off|local|collective).
enum class CheckLevel : std::uint8_t {
  off,         ///< only what the backend finds by itself
  local,       ///< what one rank can check alone; the default
  collective,  ///< every collective first compares kind, type, counts and order across its ranks
};

/// Is notified of every collective of a rank before it runs, and of the time that each call took.
/// @see CommTrace
class Observer {
 public:
  virtual ~Observer() = default;
  /// @param joins  whether it runs in one round with the previous collective
  virtual void observe(const Collective& collective, const Communicator& group, bool joins) = 0;
  virtual void observe_time(double seconds) = 0;
};

/// Guards the observers of a rank, which may communicate from two threads.
struct ObserverLock {
  std::mutex mutex{};
  std::atomic<std::size_t> count{0};  ///< of observers: notified only under the mutex
};

/// Tells every rank of a world, whatever it waits for, that a rank has failed.
class AbortNotification {
 public:
  virtual ~AbortNotification() = default;
  virtual void raise(int world_rank, const char* cause) noexcept = 0;
  /// The failure of which this rank has been notified, "rank 3 failed: .."; empty if there is none.
  /// May be called by any thread.
  virtual std::string heard() noexcept { return {}; }
};

/// The state shared by the groups of one rank: its place in the world, its observers, its settings.
struct RankState {
  int world_rank = 0;
  int world_size = 1;
  int local_rank = 0;  ///< among the ranks of its node: selects its device
  CheckLevel check = CheckLevel::local;
  double timeout_seconds = 300;  ///< of any wait for another rank (CLEAVE_TIMEOUT)
  /// Whether sums over ranks on several nodes add in rank order, too, as sums on one node do; this
  /// is slower (CLEAVE_REPRODUCIBLE). The same on all ranks.
  bool reproducible = false;
  MachineCosts machine{};  ///< from the file of CLEAVE_TUNE, or measured
  std::vector<Observer*> observers{};
  /// Held while observers are notified or changed.
  std::shared_ptr<ObserverLock> observing = std::make_shared<ObserverLock>();
  /// Reports and receives failures outside of collectives; null if the rank has no peers.
  std::shared_ptr<AbortNotification> failures{};
  std::shared_ptr<detail::Worker>
      worker{};  ///< the rank's thread for asynchronous work, once created
  /// What other layers keep with the rank.
  std::shared_ptr<detail::RankSlots> slots = std::make_shared<detail::RankSlots>();

  /// @throws Error for an invalid value of CLEAVE_CHECK, CLEAVE_TIMEOUT, CLEAVE_REPRODUCIBLE or
  /// CLEAVE_TUNE
  static RankState from_environment(int rank, int size);
};

/// The values that ranks compare before a collective runs; trivially copyable, sent as bytes.
struct Signature {
  std::uint64_t sequence = 0;  ///< how many collectives the group has run before
  index_t count = 0;
  std::uint8_t kind = 0;
  std::uint8_t dtype = 0;
  std::uint8_t op = 0;
  std::uint8_t unused = 0;
  std::int32_t root = 0;
  std::uint64_t detail = 0;
  /// Which call of the user's it is for, and where it was made: not compared; ends with a 0.
  std::array<char, 160> caller{};

  friend bool operator==(const Signature& a, const Signature& b) {
    return a.sequence == b.sequence && a.count == b.count && a.kind == b.kind &&
           a.dtype == b.dtype && a.op == b.op && a.root == b.root && a.detail == b.detail;
  }
};

/// A group of ranks. Every member makes the same calls in the same order.
///
/// A communicator belongs to one rank and is used by one thread at a time.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;  // a handle of one rank: share it by shared_ptr
  Communicator& operator=(const Communicator&) = delete;

  /// This rank's place in the group.
  int rank() const noexcept { return rank_; }
  /// How many ranks the group has.
  int size() const noexcept { return size_; }
  /// What the group is for: "world", or the mesh axes that it spans ("tp", "dp.tp").
  const std::string& label() const noexcept { return label_; }
  /// "thread", "mpi", "dry", ..
  virtual const char* backend() const noexcept = 0;
  /// Whether the ranks are threads of this process: an address of one is valid in all.
  virtual bool ranks_are_threads() const noexcept { return false; }
  /// Whether it executes nothing. @see dry_communicator
  virtual bool is_dry() const noexcept { return false; }
  /// The transport of its collectives, for users: "mpi: shared memory", or why there is none.
  virtual std::string transport() const { return backend(); }
  /// The costs among ranks of one node, for plans, if the machine's are not known; unknown where
  /// the model's defaults fit.
  virtual LinkCosts typical_costs() const noexcept { return {}; }
  /// For each rank of the group a number that the ranks of its node share; empty if ranks share no
  /// memory or nodes are unknown.
  virtual std::vector<int> nodes() const { return {}; }

  /// The same ranks for host memory: this group itself, unless it is for a device's memory.
  virtual Communicator& host() noexcept { return *this; }

  /// The same ranks for the memory of a device: created by `make(*this)` at the first call and kept
  /// by this group, which lives as long as the result.
  ///
  /// @collective the first call: every rank of the group
  /// @throws Error if this communicator is not held by a shared_ptr
  template <class Make>
  std::shared_ptr<Communicator> device_communicator(Make make) {
    std::shared_ptr<Communicator> self = weak_from_this().lock();
    if (self == nullptr) throw Error("Communicator", "a communicator must be held by a shared_ptr");
    if (device_communicator_ == nullptr) device_communicator_ = make(*this);
    return {std::move(self), device_communicator_.get()};
  }

  RankState& state() const noexcept { return *state_; }
  const std::shared_ptr<RankState>& shared_state() const noexcept { return state_; }

  /// Runs a collective; returns when the destination is complete and the source may change.
  ///
  /// @collective every rank of the group, in the same order
  /// @throws Error if ranks disagree (CLEAVE_CHECK=collective), or one has failed, has left, or
  /// does not arrive within the time-out
  void run(const Collective& collective) { run_all({&collective, 1}); }

  /// Runs several collectives as one round: they start together and end together, with one
  /// synchronisation where the backend can.
  ///
  /// @pre        no call reads what another one writes
  /// @collective every rank of the group, with the same kinds in the same order
  void run_all(std::span<const Collective> collectives);

  /// The group of the listed ranks (of this group), in that order.
  ///
  /// @collective the listed ranks, and only they, with the same list
  virtual std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) = 0;

  /// Splits this group into several, and returns the one that contains this rank; `ranks` lists its
  /// members. For backends that create groups faster if all ranks take part.
  ///
  /// @collective every rank of this group, each with its own list
  virtual std::shared_ptr<Communicator> split(std::span<const int> ranks, std::string label) {
    return subgroup(ranks, std::move(label));
  }

  /// Whether groups should be created as early as possible, by all ranks that may need them.
  virtual bool splits_early() const noexcept { return false; }

  /// The group of the listed ranks, created at the first call with a list and kept for later ones;
  /// this group itself if the list names all of its ranks in order.
  ///
  /// @collective the first call with a list: the listed ranks, and only they
  Communicator& cached_subgroup(const std::vector<int>& ranks, const std::string& label);

  /// Whether another thread of this rank may use a duplicate of this group at the same time.
  virtual bool concurrent() const noexcept { return false; }

  /// A separate group of the same ranks, for asynchronous work: its collectives do not mix with
  /// this group's. Created at the first call.
  ///
  /// @collective the first call: every rank of the group
  const std::shared_ptr<Communicator>& duplicate();

 protected:
  Communicator(int rank, int size, std::string label, std::shared_ptr<RankState> state)
      : rank_(rank), size_(size), label_(std::move(label)), state_(std::move(state)) {}

  /// Runs collectives as one round.
  virtual void execute(std::span<const Collective> collectives) = 0;

  /// Fills all[r] with the signature of rank r. Must work whatever calls the ranks make afterwards.
  virtual void gather_signatures(const Signature& mine, std::span<Signature> all) = 0;

  /// For a communicator that stages the memory of collectives for another one of the same ranks.
  static void pass_on(Communicator& to, std::span<const Collective> collectives) {
    to.execute(collectives);
  }
  static void pass_on(Communicator& to, const Signature& mine, std::span<Signature> all) {
    to.gather_signatures(mine, all);
  }

  /// Compares a call across ranks, if CLEAVE_CHECK requires it. For calls that no user has made;
  /// `run` compares all others.
  void agree_on_call(const Collective& collective);

 private:
  /// @param joins  whether it runs in one round with the previous collective
  /// @return       whether there are observers
  bool prepare(const Collective& collective, bool joins);

  /// Throws the same error on all ranks if they have not all made the same call.
  void compare(const Collective& collective);

  static index_t agreed_count(const Collective& c);

  /// "; before: barrier of ..": what all ranks called before they disagreed.
  std::string history() const;

  /// A cached group of listed ranks.
  struct Cached {
    std::vector<int> ranks;
    std::shared_ptr<Communicator> group;
  };

  int rank_;
  int size_;
  std::string label_;
  std::shared_ptr<RankState> state_;
  std::uint64_t sequence_ = 0;
  std::vector<Signature> agreed_;  ///< the last calls that all ranks made, if they compare calls
  std::shared_ptr<Communicator> duplicate_;
  std::shared_ptr<Communicator> device_communicator_;
  std::vector<Cached> cached_;
};

/// The group of the same ranks for a device's memory. @see the overloads of devices
inline Communicator& communicator_on(Host, Communicator& group) { return group.host(); }
inline std::shared_ptr<Communicator> communicator_on(Host,
                                                     const std::shared_ptr<Communicator>& group) {
  return group;
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/comm/communicator_body.hpp>
#endif
