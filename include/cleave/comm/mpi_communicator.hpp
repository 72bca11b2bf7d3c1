// A group whose ranks are MPI processes.
//
// Everything runs on duplicates of the user's communicator, so that messages never mix. Processes
// of one node read each other directly (mpi_direct.hpp); others send messages
// (mpi_collectives.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/mpi_collectives.hpp>
#include <cleave/comm/mpi_direct.hpp>
#include <cleave/comm/mpi_handle.hpp>
#include <cleave/comm/mpi_messages.hpp>
#include <cleave/comm/mpi_node.hpp>
#include <cleave/comm/mpi_packed.hpp>
#include <cleave/comm/mpi_watch.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

/// The watch of a world, for threads that communicate otherwise than by MPI.
class MpiAlarm final : public Alarm {
 public:
  explicit MpiAlarm(std::shared_ptr<MpiWatch> watch) : watch_(std::move(watch)) {}

  void raise(int, const char* cause) noexcept override { watch_->announce(cause); }
  std::string heard() noexcept override {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    if (provided != MPI_THREAD_MULTIPLE) return {};
    try {
      watch_->listen();
      return watch_->cause();
    } catch (const std::exception&) {  // MPI itself fails: whoever calls it next says so
      return {};
    }
  }

 private:
  std::shared_ptr<MpiWatch> watch_;
};

class MpiCommunicator final : public Communicator {
 public:
  /// The group of all ranks of `comm`: a world of its own.
  /// @collective every rank of `comm`
  static std::shared_ptr<MpiCommunicator> world(MPI_Comm comm) {
    if (!mpi_is_running())
      throw Error("mpi_communicator", "MPI is not initialised, or has been finalised");
    if (comm == MPI_COMM_NULL) throw Error("mpi_communicator", "the communicator is null");
    int is_inter = 0;
    mpi_check(MPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter");
    if (is_inter != 0)
      throw Error("mpi_communicator", "an inter-communicator has no single group of ranks");
    Members members;
    members.watch = std::make_shared<MpiWatch>(comm);
    members.comm = MpiComm::duplicate(comm);
    members.signatures = MpiComm::duplicate(comm);
    members.rank = members.watch->rank();
    for (int r = 0; r < members.watch->size(); ++r) members.world_ranks.push_back(r);
    members.node = MpiNode::reaching(comm);
    members.processes = processes_of(comm);
    auto state = std::make_shared<RankState>(
        RankState::from_environment(members.rank, members.watch->size()));
    state->local_rank = rank_on_node(comm);
    state->failures = std::make_shared<MpiAlarm>(members.watch);
    return std::shared_ptr<MpiCommunicator>(
        new MpiCommunicator(std::move(members), "world", std::move(state)));
  }

  ~MpiCommunicator() override {
    if (!members_.watch->broken()) return;
    members_.comm.abandon();
    members_.signatures.abandon();
  }

  const char* backend() const noexcept override { return "mpi"; }
  bool concurrent() const noexcept override {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    return provided == MPI_THREAD_MULTIPLE;
  }

  /// What the groups of this world share.
  const std::shared_ptr<MpiWatch>& watch() const noexcept { return members_.watch; }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    Members members;
    members.watch = members_.watch;
    members.node = members_.node;
    members.rank = place_in_subgroup(*this, ranks);
    for (const int r : ranks) {
      members.world_ranks.push_back(members_.world_ranks[std::size_t(r)]);
      members.processes.push_back(members_.processes[std::size_t(r)]);
    }
    const int hash = meet(ranks, members, label);

    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    mpi_check(MPI_Comm_group(members_.comm.get(), &all), "MPI_Comm_group");
    mpi_check(MPI_Group_incl(all, int(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
    mpi_check(MPI_Comm_create_group(members_.comm.get(), some, hash, &comm),
              "MPI_Comm_create_group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    members.comm = MpiComm(comm);
    members.signatures = MpiComm::duplicate(comm);
    return std::shared_ptr<Communicator>(
        new MpiCommunicator(std::move(members), std::move(label), shared_state()));
  }

 protected:
  void execute(const Collective& c) override {
    verify_call(c, rank(), size());
    MpiRoute way = route(members_.comm, calls_++ % meeting, operation_of(c));
    if (direct_ != nullptr && direct_->run(c, way)) return;
    MpiMessages messages(std::move(way));
    switch (c.kind) {
      case CollectiveKind::barrier: return barrier(messages);
      case CollectiveKind::broadcast: return broadcast(c, messages);
      case CollectiveKind::scatter: return scatter(c, messages);
      case CollectiveKind::gather: return gather(c, messages);
      case CollectiveKind::all_gather: return all_gather(c, messages);
      case CollectiveKind::reduce_scatter: return reduce_scatter(c, messages);
      case CollectiveKind::all_reduce: return all_reduce(c, messages);
      case CollectiveKind::all_to_all:
      case CollectiveKind::exchange: return exchange(c, messages);
    }
  }

  void execute_all(std::span<const Collective> calls) override {
    std::vector<Collective> together;
    for (const Collective& c : calls)
      if (MpiDirect::runs_together(c)) together.push_back(c);
    if (together.size() < 2) return Communicator::execute_all(calls);
    for (const Collective& c : calls) {
      verify_call(c, rank(), size());
      if (!MpiDirect::runs_together(c)) execute(c);
    }
    MpiRoute way = route(members_.comm, calls_++ % meeting, operation_of(together[0]));
    if (direct_ != nullptr && direct_->run_all(together, way)) return;
    const auto small = std::stable_partition(
        together.begin(), together.end(),
        [this](const Collective& c) { return !goes_packed(c, size()); });
    MpiMessages messages(std::move(way));
    exchange_packed({small, together.end()}, messages);
    for (auto c = together.begin(); c != small; ++c) execute(*c);
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    MpiMessages messages(
        route(members_.signatures, comparisons_++ % meeting, name_of(CollectiveKind(mine.kind))));
    gather_small(messages, &mine, sizeof mine, all.data());
  }

 private:
  /// What a group consists of, besides its label and the state that all groups share.
  struct Members {
    MpiComm comm;        ///< the messages of `execute`
    MpiComm signatures;  ///< those of `gather_signatures`, which precede them
    std::shared_ptr<MpiWatch> watch;
    std::vector<int> world_ranks;
    std::vector<int> processes;  ///< as ranks of MPI_COMM_WORLD
    std::shared_ptr<MpiNode> node;
    int rank = 0;
  };

  /// Collectives count up to this and begin again; it stands for the meeting before a subgroup.
  static constexpr unsigned meeting = MpiRoute::sequences - 1;

  MpiCommunicator(Members members, std::string label, std::shared_ptr<RankState> state)
      : Communicator(members.rank, int(members.world_ranks.size()), std::move(label),
                     std::move(state)),
        members_(std::move(members)),
        direct_(MpiDirect::create(members_.node, members_.processes,
                                  route(members_.comm, calls_++ % meeting, "subgroup"))) {}

  MpiRoute route(const MpiComm& comm, unsigned sequence, const char* operation) const {
    MpiRoute route;
    route.comm = comm.get();
    route.sequence = sequence;
    route.rank = rank();
    route.size = size();
    route.world_ranks = members_.world_ranks;
    route.watch = members_.watch.get();
    route.label = &label();
    route.operation = operation;
    route.timeout_seconds = state().timeout_seconds;
    return route;
  }

  /// Waits for the listed ranks, as MPI's own call could not be woken, and compares their lists.
  /// @return a tag that tells this list from most others
  int meet(std::span<const int> ranks, const Members& members, const std::string& label) const {
    const std::uint64_t hash = checksum(ranks);
    MpiRoute way = route(members_.comm, meeting, "subgroup");
    way.rank = members.rank;
    way.size = int(ranks.size());
    way.comm_ranks = ranks;
    way.world_ranks = members.world_ranks;
    way.label = &label;
    std::vector<std::uint64_t> hashes(ranks.size());
    MpiMessages messages(std::move(way));
    gather_small(messages, &hash, sizeof hash, hashes.data());
    for (std::size_t i = 0; i < hashes.size(); ++i)
      if (hashes[i] != hashes[0])
        throw Error("subgroup",
                    "ranks " + std::to_string(members.world_ranks[0]) + " and " +
                        std::to_string(members.world_ranks[i]) +
                        " list different members of group '" + label + "'",
                    {.rank = state().world_rank});
    return int(hash % 32768);
  }

  static void barrier(MpiMessages& messages) {
    const std::byte here{};
    std::vector<std::byte> all(std::size_t(messages.size()));
    gather_small(messages, &here, 1, all.data());
  }

  Members members_;
  unsigned calls_ = 0;
  unsigned comparisons_ = 0;
  std::unique_ptr<MpiDirect> direct_;  ///< where all members are on one node
};

}  // namespace cleave::detail
