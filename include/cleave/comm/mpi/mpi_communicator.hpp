// A group whose ranks are MPI processes.
//
// All messages use duplicates of the user's communicator, so that they never mix with the user's.
// schedule/select.hpp chooses how a collective is carried out, `communicate` runs the steps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/comm_scope.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/machine.hpp>
#include <cleave/comm/measure_link.hpp>
#include <cleave/comm/mpi/direct.hpp>
#include <cleave/comm/mpi/library.hpp>
#include <cleave/comm/mpi/messages.hpp>
#include <cleave/comm/mpi/mpi_failure_detector.hpp>
#include <cleave/comm/mpi/mpi_handle.hpp>
#include <cleave/comm/mpi/node.hpp>
#include <cleave/comm/schedule/run_schedule.hpp>
#include <cleave/comm/schedule/schedule_for.hpp>
#include <cleave/comm/schedule/topology.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/streaming.hpp>

namespace cleave::inline v0::detail {

class MpiCommunicator final : public Communicator {
 public:
  /// The group of all ranks of `comm`, as a new world.
  /// @collective every rank of `comm`
  static std::shared_ptr<MpiCommunicator> world(MPI_Comm comm, const ScheduleLimits& limits = {}) {
    if (!mpi_is_running())
      throw Error("mpi_communicator", "MPI is not initialised, or has been finalised");
    if (comm == MPI_COMM_NULL) throw Error("mpi_communicator", "the communicator is null");
    int is_inter = 0;
    mpi_check(MPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter");
    if (is_inter != 0)
      throw Error("mpi_communicator", "an inter-communicator has no single group of ranks");
    Members members;
    members.comm = MpiComm::duplicate(comm);
    members.signatures = MpiComm::duplicate(comm);
    members.node = MpiNode::reaching(comm);
    members.processes = processes_of(comm);
    members.nodes = nodes_of(comm, members.node.get(), limits.ranks_per_node);
    members.detector = MpiFailureDetector::create(comm, board_of(comm, members));
    members.rank = members.detector->rank();
    for (int r = 0; r < members.detector->size(); ++r) members.world_ranks.push_back(r);
    members.limits = limits;
    const PlaceOnNode place = PlaceOnNode::in(comm);
    members.polls = MpiPolls::of(place.ranks, place.cores);
    if (place.ranks > 1) streaming_array_bytes = shared_streaming_array_bytes;
    auto state = std::make_shared<RankState>(state_of(comm, members));
    state->local_rank = place.rank;
    state->failures = members.detector;
    std::shared_ptr<MpiCommunicator> world(
        new MpiCommunicator(std::move(members), "world", std::move(state)));
    if (measures_machine()) world->state().machine = world->measure_machine();
    return world;
  }

  ~MpiCommunicator() override {
    if (!members_.detector->broken()) return;
    members_.comm.abandon();
    members_.signatures.abandon();
    handle_.abandon();
  }

  const char* backend() const noexcept override { return "mpi"; }
  std::string transport() const override {
    if (direct_ != nullptr) return "mpi: shared memory";
    if (topology_.grid.nodes > 0)
      return "mpi: shared memory on each of " + std::to_string(topology_.grid.nodes) +
             " nodes, messages between them";
    const std::string& reason = MpiNode::shortage();
    return "mpi: messages" + (reason.empty() ? "" : ", no shared memory: " + reason);
  }
  LinkCosts typical_costs() const noexcept override { return {15, 5000}; }
  std::vector<int> nodes() const override { return members_.nodes; }
  bool concurrent() const noexcept override {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    return provided == MPI_THREAD_MULTIPLE;
  }

  /// Runs a step of communication of a schedule.
  void communicate(const ScheduleStep& step) {
    MpiCommunicator& ranks = ranks_of(step.level);
    if (step.action == StepAction::direct) return ranks.read_directly(step.calls);
    const Collective& c = step.calls[0];
    const MpiOpContext way = ranks.context_for(c);
    if (step.action == StepAction::library) MpiLibrary(way).run(c);
    else exchange(c, way);
  }

  /// @see mpi_handle
  MPI_Comm handle() {
    if (handle_.get() == MPI_COMM_NULL) {
      // MPI_Comm_dup would wait for a failed rank
      const Collective meeting = Collective{}.named("mpi_handle");
      agree_on_call(meeting);
      execute({&meeting, 1});
      handle_ = MpiComm::duplicate(members_.comm.get());
    }
    return handle_.get();
  }

  /// Shared by all groups of this world.
  const std::shared_ptr<MpiFailureDetector>& detector() const noexcept { return members_.detector; }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    return make_group(ranks, std::move(label), "subgroup");
  }

 protected:
  void execute(std::span<const Collective> calls) override {
    for (const Collective& c : calls) verify_call(c, rank(), size());
    std::vector<Collective> together;
    for (const Collective& c : calls) {
      if (calls.size() > 1 && MpiDirect::runs_together(c)) together.push_back(c);
      else run_calls({&c, 1});
    }
    if (!together.empty()) run_calls(together);
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    MpiOpContext way = context(members_.signatures, comparisons_++ % subgroup_sequence,
                               name_of(CollectiveKind(mine.kind)));
    way.caller = mine.caller.data();
    constexpr auto each = index_t(sizeof(Signature));
    if (signature_pieces_.empty()) signature_pieces_ = flat_pieces(size() * each, size());
    const Collective c = Collective::all_gather(
        ConstView::dense(&mine, DType::uint8, Shape::filled(1, each)),
        View::dense(all.data(), DType::uint8, Shape::filled(1, size() * each)), signature_pieces_);
    if (direct_ == nullptr || !direct_->run({&c, 1}, way)) MpiLibrary(way).run(c);
  }

 private:
  /// @pre verify_call(c) for every call c
  void run_calls(std::span<const Collective> calls) {
    members_.detector->verify(operation_of(calls[0]));
    run_schedule<Host>(schedule_for(calls, topology()), *this);
  }

  /// The ranks that a step of a schedule of this group names.
  MpiCommunicator& ranks_of(RankLevel level) {
    if (level == RankLevel::group) return *this;
    if (node_ranks_ == nullptr) {
      node_ranks_ = make_group(topology_.grid.row(), label(), "subgroup");
      column_ranks_ = make_group(topology_.grid.column(), label(), "subgroup");
    }
    return level == RankLevel::node ? *node_ranks_ : *column_ranks_;
  }

  /// Runs calls by reading peers directly; without enough shared memory, as ranks that share none.
  void read_directly(std::span<const Collective> calls) {
    const MpiOpContext way = context_for(calls[0]);
    if (direct_ != nullptr && direct_->run(calls, way)) return;
    Topology apart = topology();
    apart.shares_memory = false;
    run_schedule<Host>(schedule_for(calls, apart), *this);
  }

  MpiOpContext context_for(const Collective& c) {
    MpiOpContext way = context(members_.comm, calls_++ % subgroup_sequence, operation_of(c));
    way.site = c.site;
    return way;
  }

  const Topology& topology() {
    topology_.reproducible = state().reproducible;  // users may change it
    return topology_;
  }

  /// @return the same on all ranks
  /// @collective every rank of this world
  MachineCosts measure_machine() {
    MachineCosts costs;
    if (direct_ != nullptr || size() == 1) {
      costs.inside = measure_link(*this, *this);
      return costs;
    }
    if (topology_.grid.nodes > 0) costs.inside = measure_link(ranks_of(RankLevel::node), *this);
    costs.between = measure_link(*this, *this);
    costs.ranks_per_node = std::max(1, topology_.grid.places);
    return costs;
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
    ScheduleLimits limits{};
    MpiPolls polls{};
    int rank = 0;
    const char* operation = "subgroup";  ///< the call that creates the group, for errors
  };

  /// Sequence numbers of collectives wrap around before this value, which `meet` uses.
  static constexpr unsigned subgroup_sequence = MpiOpContext::sequences - 1;

  MpiCommunicator(Members members, std::string label, std::shared_ptr<RankState> state)
      : Communicator(members.rank, int(members.world_ranks.size()), std::move(label),
                     std::move(state)),
        members_(std::move(members)) {
    std::tie(group_id_, calls_begun_) =
        members_.detector->add_group(checksum(std::span(members_.world_ranks)));
    topology_ = Topology::of(members_.nodes, rank(), size());
    topology_.limits = members_.limits;
    if (members_.node != nullptr) topology_.arena = members_.node->arena().get();
    if (members_.nodes.empty() || std::ranges::count(members_.nodes, members_.nodes[0]) == size())
      direct_ = MpiDirect::create(
          members_.node, members_.processes,
          context(members_.comm, calls_++ % subgroup_sequence, members_.operation));
    topology_.shares_memory = direct_ != nullptr;
    members_.operation = nullptr;
  }

  /// A board for the ranks of a new world in the segment of the first one, where it stays; null if
  /// they are on several nodes, or there is no memory for it.
  /// @collective every rank of `comm`
  static StatusBoard* board_of(MPI_Comm comm, const Members& members) {
    const int size = int(members.nodes.size());
    if (members.node == nullptr || size < 2 ||
        std::ranges::count(members.nodes, members.nodes[0]) != size)
      return nullptr;
    int rank = 0;
    mpi_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    std::int64_t offset = -1;
    SharedArena& arena = *members.node->arena();
    if (rank == 0)
      if (void* const memory = arena.allocate(StatusBoard::bytes(size)))
        offset = std::int64_t(arena.offset_of(StatusBoard::create(memory, size)));
    mpi_check(MPI_Bcast(&offset, 1, MPI_INT64_T, 0, members.comm.get()), "MPI_Bcast");
    if (offset < 0) return nullptr;
    std::byte* const segment = members.node->segment(members.node->place_of(members.processes[0]));
    return reinterpret_cast<StatusBoard*>(segment + offset);
  }

  /// The next call of this group.
  MpiOpContext context(const MpiComm& comm, unsigned sequence, const char* operation) {
    MpiOpContext context = uncounted_context(comm, sequence, operation);
    context.number = calls_begun_->load(std::memory_order_relaxed) + 1;
    calls_begun_->store(context.number, std::memory_order_relaxed);
    return context;
  }

  MpiOpContext uncounted_context(const MpiComm& comm, unsigned sequence, const char* operation) {
    MpiOpContext context;
    context.world_rank = state().world_rank;
    context.group_id = group_id_;
    context.comm = comm.get();
    context.sequence = sequence;
    context.rank = rank();
    context.size = size();
    context.world_ranks = members_.world_ranks;
    context.detector = members_.detector.get();
    scratch_.clear();
    context.scratch = &scratch_;
    context.label = &label();
    context.operation = operation;
    context.site = CommPlace::current().site;
    context.timeout_seconds = state().timeout_seconds;
    context.longest_message = members_.limits.message_bytes;
    context.polls = &members_.polls;
    return context;
  }

  /// @param operation  the call that creates the group, for errors
  std::shared_ptr<MpiCommunicator> make_group(std::span<const int> ranks, std::string label,
                                              const char* operation) {
    Members members;
    members.detector = members_.detector;
    members.node = members_.node;
    members.limits = members_.limits;
    members.polls = members_.polls;
    members.operation = operation;
    members.rank = place_in_subgroup(*this, ranks);
    for (const int r : ranks) {
      members.world_ranks.push_back(members_.world_ranks[std::size_t(r)]);
      members.processes.push_back(members_.processes[std::size_t(r)]);
      if (!members_.nodes.empty()) members.nodes.push_back(members_.nodes[std::size_t(r)]);
    }
    const int hash = compare_members(ranks, members, label);

    MpiOpContext way = uncounted_context(members_.comm, subgroup_sequence, operation);
    way.world_ranks = members.world_ranks;
    way.label = &label;
    create_comms(members, ranks, hash, way);
    return std::shared_ptr<MpiCommunicator>(
        new MpiCommunicator(std::move(members), std::move(label), shared_state()));
  }

  void create_comms(Members& members, std::span<const int> ranks, int tag,
                    const MpiOpContext& context) const {
    std::optional<MpiBlockingCall> listed;
    if (members_.detector->ends_job()) listed.emplace(context);
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    mpi_check(MPI_Comm_group(members_.comm.get(), &all), "MPI_Comm_group");
    mpi_check(MPI_Group_incl(all, int(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
    mpi_check(MPI_Comm_create_group(members_.comm.get(), some, tag, &comm),
              "MPI_Comm_create_group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    members.comm = MpiComm(comm);
    members.signatures = MpiComm::duplicate(comm);
  }

  /// Waits for the listed ranks, because a wait inside MPI_Comm_create_group could not be
  /// interrupted, and compares their lists.
  /// @return a tag that tells this list from most others
  int compare_members(std::span<const int> ranks, const Members& members,
                      const std::string& label) {
    const std::uint64_t hash = checksum(ranks);
    MpiOpContext way = uncounted_context(members_.comm, subgroup_sequence, members.operation);
    way.group_id = hash;
    way.rank = members.rank;
    way.size = int(ranks.size());
    way.comm_ranks = ranks;
    way.world_ranks = members.world_ranks;
    way.label = &label;
    std::vector<std::uint64_t> hashes(ranks.size(), hash);
    std::uint64_t different = 0;  // 1 + a rank whose list differs, if any
    const auto view = [](std::uint64_t& number) {
      return View::dense(&number, DType::uint64, Shape::filled(1, 1));
    };
    // the lowest rank compares: in whatever order ranks list each other
    const int first = int(std::ranges::min_element(ranks) - ranks.begin());
    const auto each_other = [&](auto f) {
      for (int r = 0; r < way.size; ++r)
        if (r != first) f(r);
    };
    MpiMessages messages(way);
    if (way.rank == first)
      each_other([&](int r) { messages.receive(view(hashes[std::size_t(r)]), r); });
    else messages.send(view(hashes[std::size_t(way.rank)]), first);
    messages.finish_short();
    for (std::size_t r = 0; r < hashes.size(); ++r)
      if (hashes[r] != hashes[std::size_t(first)]) different = r + 1;
    if (way.rank == first) each_other([&](int r) { messages.send(view(different), r); });
    else messages.receive(view(different), first);
    messages.finish_short();
    if (different != 0)
      throw Error(members.operation,
                  "ranks " + std::to_string(members.world_ranks[std::size_t(first)]) + " and " +
                      std::to_string(members.world_ranks[different - 1]) +
                      " list different members of group '" + label + "'",
                  {.rank = state().world_rank});
    return int(hash % 32768);
  }

  /// @throws Error if a rank cannot read the costs of the machine, or those of two ranks differ
  /// @collective every rank of `comm`
  static RankState state_of(MPI_Comm comm, const Members& members) {
    std::exception_ptr error;
    RankState state;
    try {
      state = RankState::from_environment(members.rank, members.detector->size());
    } catch (const std::exception&) {
      error = std::current_exception();
    }
    const std::uint64_t sum = state.machine.checksum() + (measures_machine() ? 1 : 0);
    const std::uint64_t mine[2] = {sum, ~sum};
    std::uint64_t most[2] = {};
    mpi_check(MPI_Allreduce(mine, most, 2, MPI_UINT64_T, MPI_MAX, comm), "MPI_Allreduce");
    if (error != nullptr) std::rethrow_exception(error);
    if (most[0] != ~most[1])
      throw Error("run", "the files that CLEAVE_TUNE names differ between ranks");
    return state;
  }

  Members members_;
  MpiComm handle_;              ///< for the user, made when asked for
  std::uint64_t group_id_ = 0;  ///< identifies this group to the failure detector
  std::shared_ptr<std::atomic<std::uint64_t>> calls_begun_;
  Topology topology_;
  MpiScratch scratch_;
  unsigned calls_ = 0;
  unsigned comparisons_ = 0;
  std::unique_ptr<MpiDirect> direct_;  ///< only if all members are on one node
  std::vector<Box> signature_pieces_;
  std::shared_ptr<MpiCommunicator> node_ranks_, column_ranks_;  ///< made at the first use
};

}  // namespace cleave::inline v0::detail
