// A group whose ranks are MPI processes.
//
// All messages use duplicates of the user's communicator, so that they never mix with the user's.
// Processes of one node read each other's memory directly (direct.hpp); processes of different
// nodes exchange messages (collectives.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/comm_scope.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/machine.hpp>
#include <cleave/comm/measure_link.hpp>
#include <cleave/comm/mpi/abort_notification.hpp>
#include <cleave/comm/mpi/collectives.hpp>
#include <cleave/comm/mpi/direct.hpp>
#include <cleave/comm/mpi/eager.hpp>
#include <cleave/comm/mpi/failure_detector.hpp>
#include <cleave/comm/mpi/handle.hpp>
#include <cleave/comm/mpi/library.hpp>
#include <cleave/comm/mpi/messages.hpp>
#include <cleave/comm/mpi/network_probe.hpp>
#include <cleave/comm/mpi/node.hpp>
#include <cleave/comm/mpi/node_grid.hpp>
#include <cleave/comm/mpi/packed.hpp>
#include <cleave/comm/mpi/tuning.hpp>
#include <cleave/comm/mpi/two_level.hpp>
#include <cleave/comm/mpi/workspace.hpp>
#include <cleave/comm/require_reduction.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/streaming.hpp>

namespace cleave::detail {

class MpiCommunicator final : public Communicator {
 public:
  /// The group of all ranks of `comm`, as a new world.
  /// @param tuning  the same on all ranks; null: read from the environment
  /// @collective every rank of `comm`
  static std::shared_ptr<MpiCommunicator> world(MPI_Comm comm,
                                                std::shared_ptr<const MpiTuning> tuning = nullptr) {
    if (!mpi_is_running())
      throw Error("mpi_communicator", "MPI is not initialised, or has been finalised");
    if (comm == MPI_COMM_NULL) throw Error("mpi_communicator", "the communicator is null");
    int is_inter = 0;
    mpi_check(MPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter");
    if (is_inter != 0)
      throw Error("mpi_communicator", "an inter-communicator has no single group of ranks");
    Members members;
    members.detector = std::make_shared<MpiFailureDetector>(comm);
    members.comm = MpiComm::duplicate(comm);
    members.signatures = MpiComm::duplicate(comm);
    members.rank = members.detector->rank();
    for (int r = 0; r < members.detector->size(); ++r) members.world_ranks.push_back(r);
    members.node = MpiNode::reaching(comm);
    members.processes = processes_of(comm);
    members.nodes = nodes_of(comm, members.node.get());
    const bool measures = tuning == nullptr && measures_machine();
    members.tuning = tuning != nullptr ? std::move(tuning) : tuning_of(comm);
    const PlaceOnNode place = PlaceOnNode::in(comm);
    mpi_polls() = MpiPolls::of(place.ranks, place.cores);
    if (place.ranks > 1) streaming_array_bytes = shared_streaming_array_bytes;
    auto state = std::make_shared<RankState>(
        RankState::from_environment(members.rank, members.detector->size()));
    state->local_rank = place.rank;
    state->failures = std::make_shared<MpiAbortNotification>(members.detector);
    std::shared_ptr<MpiCommunicator> world(
        new MpiCommunicator(std::move(members), "world", std::move(state)));
    world->members_.eager = eager_bytes_between(
        world->context(world->members_.comm, subgroup_sequence, "run"), world->members_.nodes);
    if (measures) world->state().machine = world->measure_machine();
    return world;
  }

  ~MpiCommunicator() override {
    if (!members_.detector->broken()) return;
    members_.comm.abandon();
    members_.signatures.abandon();
  }

  const char* backend() const noexcept override { return "mpi"; }
  std::string transport() const override {
    if (direct_ != nullptr) return "mpi: shared memory";
    if (grid_.nodes > 0)
      return "mpi: shared memory on each of " + std::to_string(grid_.nodes) +
             " nodes, messages between them";
    const std::string& reason = MpiNode::shortage();
    return "mpi: messages" + (reason.empty() ? "" : ", no shared memory: " + reason);
  }
  bool concurrent() const noexcept override {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    return provided == MPI_THREAD_MULTIPLE;
  }

  /// Runs calls that implement a collective which observers have seen and ranks have compared.
  void relay(std::span<const Collective> calls) {
    if (calls.size() == 1) execute_verified(calls[0]);
    else execute_all(calls);
  }
  /// Whether all members read the memory of this rank at `data` in place.
  bool reads_directly(const void* data) const {
    return direct_ != nullptr && members_.node->arena()->contains(data);
  }

  /// Whether messages of this length between ranks on different nodes go in eager parts.
  bool sends_in_parts(std::size_t bytes) const {
    return bytes_in_parts(bytes, size(), members_.eager) == bytes;
  }

  /// Whether a round trip between nodes takes half a millisecond or more.
  bool is_far() const noexcept { return members_.eager.far; }

  /// @see nodes_of
  const std::vector<int>& nodes() const noexcept { return members_.nodes; }

  /// Shared by all groups of this world.
  const std::shared_ptr<MpiFailureDetector>& detector() const noexcept { return members_.detector; }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    return make_group(ranks, std::move(label), "subgroup");
  }

 protected:
  void execute(const Collective& c) override {
    verify_call(c, rank(), size());
    execute_verified(c);
  }

  void execute_all(std::span<const Collective> calls) override {
    const auto together = std::size_t(std::ranges::count_if(calls, MpiDirect::runs_together));
    if (together < 2) return Communicator::execute_all(calls);
    for (const Collective& c : calls) verify_call(c, rank(), size());
    if (together == calls.size()) return execute_together(calls);
    std::vector<Collective> rest;
    for (const Collective& c : calls) {
      if (MpiDirect::runs_together(c)) rest.push_back(c);
      else execute_verified(c);
    }
    execute_together(rest);
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    MpiOpContext way = context(members_.signatures, comparisons_++ % subgroup_sequence,
                               name_of(CollectiveKind(mine.kind)));
    way.caller = mine.caller.data();
    if (direct_ != nullptr && gather_directly(mine, all, way)) return;
    MpiMessages messages(way);
    gather_small(messages, &mine, sizeof mine, all.data());
  }

 private:
  /// @pre verify_call(c)
  void execute_verified(const Collective& c) {
    MpiOpContext way = context(members_.comm, calls_++ % subgroup_sequence, operation_of(c));
    way.site = c.site;
    if (direct_ != nullptr && direct_->run(c, way)) return;
    switch (algorithm_for(c)) {
      case MpiAlgorithm::two_level: return two_level(c).run(c, way);
      case MpiAlgorithm::library: return MpiLibrary(way).run(c);
      case MpiAlgorithm::messages: break;
    }
    MpiMessages messages(way);
    switch (c.kind) {
      case CollectiveKind::barrier: return detail::barrier(messages);
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

  /// @pre MpiDirect::runs_together(c) for every call c; all calls have been verified
  void execute_together(std::span<const Collective> calls) {
    MpiOpContext way = context(members_.comm, calls_++ % subgroup_sequence, operation_of(calls[0]));
    way.site = calls[0].site;
    if (direct_ != nullptr && direct_->run_all(calls, way)) return;
    std::vector<Collective> alone, packed, gathers, scatters;
    index_t bytes = 0;  // of the arrays that two levels would gather or scatter
    for (const Collective& c : calls) {
      const bool levels = goes_packed(c, size()) && algorithm_for(c) == MpiAlgorithm::two_level;
      const bool gathers_or_scatters = levels && (c.kind == CollectiveKind::all_gather ||
                                                  c.kind == CollectiveKind::reduce_scatter);
      if (gathers_or_scatters) bytes += c.global_count * index_t(size_of(c.dtype()));
      if (!goes_packed(c, size())) alone.push_back(c);
      else if (!gathers_or_scatters) packed.push_back(c);
      else (c.kind == CollectiveKind::all_gather ? gathers : scatters).push_back(c);
    }
    if (bytes < two_level_packed_bytes) {
      packed.insert(packed.end(), gathers.begin(), gathers.end());
      packed.insert(packed.end(), scatters.begin(), scatters.end());
      gathers.clear(), scatters.clear();
    }
    if (!packed.empty()) {
      MpiMessages messages(way);
      exchange_packed(packed, messages);
    }
    if (!gathers.empty() || !scatters.empty()) two_level(calls[0]).run_together(gathers, scatters);
    for (const Collective& c : alone) execute_verified(c);
  }

  /// @return the same on all ranks
  /// @collective every rank of this world
  MachineCosts measure_machine() {
    MachineCosts costs;
    if (direct_ != nullptr || size() == 1) {
      costs.inside = measure_link(*this, *this);
      return costs;
    }
    if (grid_.nodes > 0) {
      const auto node = make_group(grid_.row(), "node", "run");
      costs.inside = measure_link(*node, *this);
    }
    costs.between = measure_link(*this, *this);
    costs.ranks_per_node = std::max(1, grid_.places);
    return costs;
  }

  /// @throws Error if a rank cannot read its table, or the tables of two ranks differ
  /// @collective every rank of `comm`
  static std::shared_ptr<const MpiTuning> tuning_of(MPI_Comm comm) {
    std::shared_ptr<const MpiTuning> tuning;
    std::exception_ptr error;
    try {
      tuning = std::make_shared<const MpiTuning>(MpiTuning::from_environment());
    } catch (const std::exception&) {
      error = std::current_exception();
    }
    const std::uint64_t sum = tuning != nullptr ? tuning->checksum() : 0;
    const std::uint64_t mine[2] = {sum, ~sum};
    std::uint64_t most[2] = {};
    mpi_check(MPI_Allreduce(mine, most, 2, MPI_UINT64_T, MPI_MAX, comm), "MPI_Allreduce");
    if (error != nullptr) std::rethrow_exception(error);
    if (most[0] != ~most[1])
      throw Error("run", "the files that CLEAVE_TUNE names differ between ranks");
    return tuning;
  }

  /// The state of a group, except its label and the state that all groups share.
  struct Members {
    MpiComm comm;        ///< for the messages of `execute`
    MpiComm signatures;  ///< for those of `gather_signatures`, which come first
    std::shared_ptr<MpiFailureDetector> detector;
    std::vector<int> world_ranks;
    std::vector<int> processes;  ///< the members' ranks in MPI_COMM_WORLD
    std::vector<int> nodes;      ///< @see nodes_of
    std::shared_ptr<MpiNode> node;
    std::shared_ptr<const MpiTuning> tuning;
    EagerBytes eager{};
    int rank = 0;
    const char* operation = "subgroup";  ///< the call that creates the group, for errors
  };

  /// Sequence numbers of collectives wrap around before this value, which `meet` uses.
  static constexpr unsigned subgroup_sequence = MpiOpContext::sequences - 1;

  MpiCommunicator(Members members, std::string label, std::shared_ptr<RankState> state)
      : Communicator(members.rank, int(members.world_ranks.size()), std::move(label),
                     std::move(state)),
        members_(std::move(members)),
        grid_(NodeGrid::of(members_.nodes, rank())) {
    if (members_.nodes.empty() || std::ranges::count(members_.nodes, members_.nodes[0]) == size())
      direct_ = MpiDirect::create(
          members_.node, members_.processes,
          context(members_.comm, calls_++ % subgroup_sequence, members_.operation));
    members_.operation = nullptr;
  }

  MpiOpContext context(const MpiComm& comm, unsigned sequence, const char* operation) {
    MpiOpContext context;
    context.comm = comm.get();
    context.sequence = sequence;
    context.rank = rank();
    context.size = size();
    context.world_ranks = members_.world_ranks;
    context.detector = members_.detector.get();
    context.workspace = &workspace_;
    context.label = &label();
    context.operation = operation;
    context.site = CommPlace::current().site;
    context.timeout_seconds = state().timeout_seconds;
    context.eager = members_.eager;
    return context;
  }

  /// The algorithm of a call: the same on all ranks of the group.
  MpiAlgorithm algorithm_for(const Collective& c) const {
    const bool reduces =
        c.kind == CollectiveKind::all_reduce || c.kind == CollectiveKind::reduce_scatter;
    index_t count = c.global_count;
    if (reduces) count = c.source.size();
    if (c.kind == CollectiveKind::all_gather) count = c.destination.size();
    const bool in_order = reduces && !reduces_in_any_order(c.dtype(), c.op);
    const auto possible = [&](MpiAlgorithm algorithm) {
      if (algorithm == MpiAlgorithm::messages) return true;
      if (in_order) return false;
      return algorithm == MpiAlgorithm::library ? MpiLibrary::has(c) : grid_.nodes > 0;
    };
    return members_.tuning->choose(c.kind, size(), count * index_t(size_of(c.dtype())), possible);
  }

  /// Whether a node's partial result may be rounded before it is combined with other nodes'.
  bool reduces_in_any_order(DType type, ReduceOp op) const {
    if (op == ReduceOp::avg) return false;
    const bool rounds = !is_integer_dtype(type) && type != DType::boolean &&
                        (op == ReduceOp::sum || op == ReduceOp::product);
    const bool is_short = type == DType::float16 || type == DType::bfloat16;
    return !rounds || !(is_short || state().reproducible);
  }

  /// Created at the first use. @param c  the call that needs it, for errors
  MpiTwoLevel<MpiCommunicator>& two_level(const Collective& c) {
    if (two_level_ == nullptr) {
      auto node = make_group(grid_.row(), label(), operation_of(c));
      auto column = make_group(grid_.column(), label(), operation_of(c));
      two_level_ =
          std::make_unique<MpiTwoLevel<MpiCommunicator>>(grid_, std::move(node), std::move(column));
    }
    return *two_level_;
  }

  /// @param operation  the call that creates the group, for errors
  std::shared_ptr<MpiCommunicator> make_group(std::span<const int> ranks, std::string label,
                                              const char* operation) {
    Members members;
    members.detector = members_.detector;
    members.node = members_.node;
    members.tuning = members_.tuning;
    members.eager = members_.eager;
    members.operation = operation;
    members.rank = place_in_subgroup(*this, ranks);
    for (const int r : ranks) {
      members.world_ranks.push_back(members_.world_ranks[std::size_t(r)]);
      members.processes.push_back(members_.processes[std::size_t(r)]);
      if (!members_.nodes.empty()) members.nodes.push_back(members_.nodes[std::size_t(r)]);
    }
    const int hash = compare_members(ranks, members, label);

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
    return std::shared_ptr<MpiCommunicator>(
        new MpiCommunicator(std::move(members), std::move(label), shared_state()));
  }

  /// Waits for the listed ranks, because a wait inside MPI_Comm_create_group could not be
  /// interrupted, and compares their lists.
  /// @return a tag that tells this list from most others
  int compare_members(std::span<const int> ranks, const Members& members,
                      const std::string& label) {
    const std::uint64_t hash = checksum(ranks);
    MpiOpContext way = context(members_.comm, subgroup_sequence, members.operation);
    way.rank = members.rank;
    way.size = int(ranks.size());
    way.comm_ranks = ranks;
    way.world_ranks = members.world_ranks;
    way.label = &label;
    std::vector<std::uint64_t> hashes(ranks.size());
    MpiMessages messages(way);
    gather_small(messages, &hash, sizeof hash, hashes.data());
    for (std::size_t i = 0; i < hashes.size(); ++i)
      if (hashes[i] != hashes[0])
        throw Error(members.operation,
                    "ranks " + std::to_string(members.world_ranks[0]) + " and " +
                        std::to_string(members.world_ranks[i]) +
                        " list different members of group '" + label + "'",
                    {.rank = state().world_rank});
    return int(hash % 32768);
  }

  /// Gathers signatures as a short all-gather. @return false, on all ranks, without memory for it
  bool gather_directly(const Signature& mine, std::span<Signature> all, const MpiOpContext& way) {
    constexpr auto each = index_t(sizeof(Signature));
    if (signature_pieces_.empty())
      for (index_t r = 0; r < size(); ++r)
        signature_pieces_.push_back({Shape::filled(1, r * each), Shape::filled(1, (r + 1) * each)});
    Collective c;
    c.kind = CollectiveKind::all_gather;
    c.source = ConstView::dense(&mine, DType::uint8, Shape::filled(1, each));
    c.destination = View::dense(all.data(), DType::uint8, Shape::filled(1, size() * each));
    c.pieces = signature_pieces_;
    return direct_->run(c, way);
  }

  Members members_;
  std::unique_ptr<MpiWorkspace> workspace_;  ///< kept after a call by messages
  unsigned calls_ = 0;
  unsigned comparisons_ = 0;
  std::unique_ptr<MpiDirect> direct_;  ///< only if all members are on one node
  std::vector<Box> signature_pieces_;
  NodeGrid grid_;
  std::unique_ptr<MpiTwoLevel<MpiCommunicator>> two_level_;  ///< created at the first use
};

}  // namespace cleave::detail
