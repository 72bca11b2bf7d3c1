// Collectives of a group whose processes are on one node, through shared memory.
//
// Every rank publishes its calls in its slot; after a barrier ranks read their peers' memory
// (shared_memory/reads.hpp). A source outside shared memory is copied there first; if a rank lacks
// the memory for that, all ranks see it and the collectives use messages. Short calls cost less
// (short_calls.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/mpi/call_slot.hpp>
#include <cleave/comm/mpi/mpi_handle.hpp>
#include <cleave/comm/mpi/node.hpp>
#include <cleave/comm/mpi/short_calls.hpp>
#include <cleave/comm/shared_memory/reads.hpp>
#include <cleave/comm/verify.hpp>

namespace cleave::inline v0::detail {

class MpiDirect {
  using Listed = MpiPublishedCall;

 public:
  /// Creates the slots of a group; null for one rank, several nodes, or without memory for them.
  ///
  /// @param processes  the members' ranks in MPI_COMM_WORLD
  /// @collective every rank of the group
  static std::unique_ptr<MpiDirect> create(std::shared_ptr<MpiNode> node,
                                           std::span<const int> processes,
                                           const MpiOpContext& context) {
    if (node == nullptr || processes.size() < 2) return nullptr;
    std::vector<int> places;
    for (const int process : processes) {
      places.push_back(node->place_of(process));
      if (places.back() < 0) return nullptr;
    }
    // the first member's segment holds the slots of all ranks; they are never released
    const auto size = processes.size();
    std::int64_t offset = -1;
    const int rank = context.rank;
    if (rank == 0) {
      if (void* memory = node->arena()->allocate(size * sizeof(MpiSlot))) {
        for (std::size_t r = 0; r < size; ++r) new (static_cast<MpiSlot*>(memory) + r) MpiSlot;
        offset = std::int64_t(node->arena()->offset_of(memory));
      }
    }
    mpi_check(MPI_Bcast(&offset, 1, MPI_INT64_T, 0, context.comm), "MPI_Bcast");
    if (offset < 0) return nullptr;
    auto* slots = reinterpret_cast<MpiSlot*>(node->segment(places[0]) + offset);
    return std::unique_ptr<MpiDirect>(
        new MpiDirect(std::move(node), std::move(places), rank, slots));
  }

  /// Whether calls of this kind may be run together.
  static bool runs_together(const Collective& c) {
    return c.kind == CollectiveKind::all_gather || c.kind == CollectiveKind::reduce_scatter ||
           is_exchange(c.kind);
  }

  /// One call, or several that may be run together.
  /// @return     whether they ran; false on all ranks if one lacks memory
  /// @collective every rank of the group
  bool run(std::span<const Collective> calls, const MpiOpContext& context) {
    context.detector->verify(context.operation);
    context_ = &context;
    slots_.begin_round();
    blocks_.clear();
    const bool is_short =
        calls.size() == 1 && MpiShortCalls::takes(calls[0], shares(calls[0]), *context.polls);
    if (is_short) {
      short_.announce(calls[0]);
    } else {
      publish(calls);
      slots_.arrival(rank_).call = 0;
    }
    if (meet(calls)) {
      short_.read(calls[0], context);
      return true;
    }
    for (int r = 0; r < size(); ++r)
      if (!slots_.published(r).reachable) return false;
    if (const std::string text = reads_.disagreement(*context.label); !text.empty())
      context.fail(text);
    if (calls[0].kind == CollectiveKind::barrier) return true;
    reads_.run(calls);
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (calls_[i].destination.data != calls[i].destination.data)
        strided_copy(calls_[i].destination, calls[i].destination);
    blocks_.clear();
    return true;
  }

 private:
  friend DirectReads<Host, MpiDirect>;

  static constexpr index_t short_bytes = block_bytes;

  MpiDirect(std::shared_ptr<MpiNode> node, std::vector<int> places, int rank, MpiSlot* slots)
      : node_(std::move(node)),
        places_(std::move(places)),
        rank_(rank),
        slots_(slots, rank, int(places_.size())),
        pieces_(places_.size()),
        peers_(places_.size()) {}

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return int(places_.size()); }
  std::size_t calls_of(int r) const { return std::size_t(slots_.published(r).count); }
  const Collective& call_of(int r, std::size_t i) {
    if (r == rank_) return calls_[i];
    const Listed& theirs = listed(r)[i];
    Collective& c = peers_[std::size_t(r)];
    c.kind = theirs.kind;
    c.op = theirs.op;
    c.root = theirs.root;
    c.global_count = theirs.global_count;
    c.detail = theirs.detail;
    c.source = view_of(theirs.source);
    c.destination = view_of(theirs.destination);
    if (c.kind == CollectiveKind::scatter) pieces_[std::size_t(rank_)] = slots_.piece(rank_);
    c.pieces = pieces_;
    return c;
  }
  static constexpr bool compares_transfers() noexcept { return false; }

  void mark(PeerPoint) noexcept {}
  void await(PeerPoint) noexcept {}
  void take_step() { slots_.barrier(*context_); }
  void report(const char*) noexcept { slots_.published(rank_).failed = true; }
  void verify_no_failure(const Collective& c) const {
    for (int r = 0; r < size(); ++r)
      if (slots_.published(r).failed)
        throw Error(operation_of(c),
                    "rank " + std::to_string(context_->world_ranks[std::size_t(r)]) +
                        " failed in " + context_->where(),
                    {.rank = context_->detector->rank()});
  }

  /// The first barrier of a call, which this rank has announced as a short one or published.
  /// @return whether all ranks have announced the same short call; if not, all have published
  bool meet(std::span<const Collective> calls) {
    slots_.meet(*context_);
    const std::uint64_t mine = slots_.arrival(rank_).call;
    bool same = true, any = mine != 0;
    for (int r = 0; r < size(); ++r) {
      const std::uint64_t theirs = slots_.arrival(r).call;
      same = same && theirs == mine;
      any = any || theirs != 0;
    }
    if (!any || same) return any;
    if (mine != 0) publish(calls);
    slots_.barrier(*context_);
    return false;
  }

  /// Publishes calls whose views peers can read: those outside shared memory are copied.
  void publish(std::span<const Collective> calls) {
    MpiPublished& mine = slots_.published(rank_);
    mine = {};
    mine.count = std::int32_t(calls.size());
    calls_.assign(calls.begin(), calls.end());
    Listed* list = &mine.call;
    if (calls.size() > 1) {
      std::byte* const block = allocate(calls.size() * sizeof(Listed));
      mine.reachable = block != nullptr;
      if (!mine.reachable) return;
      mine.listed = block - node_->segment(places_[std::size_t(rank_)]);
      list = reinterpret_cast<Listed*>(block);
    }
    const bool in_pieces = reads_.in_pieces(calls);
    for (Collective& c : calls_) {
      Listed& entry = *new (list++) Listed{c.kind, c.op, c.root, c.global_count, c.detail, {}, {}};
      const bool sends =
          (c.kind != CollectiveKind::broadcast && c.kind != CollectiveKind::scatter) ||
          rank_ == c.root;
      const bool alone = calls.size() == 1;
      if (sends && !share(c.source, entry.source, alone ? slot_bytes : 0)) mine.reachable = false;
      if (c.kind == CollectiveKind::all_reduce && in_pieces &&
          !share(c.destination, entry.destination, 0))
        mine.reachable = false;
      if (c.kind == CollectiveKind::scatter)
        for (int r = 0; r < size() && sends; ++r) slots_.piece(r) = c.pieces[std::size_t(r)];
    }
  }

  /// Makes a view one that peers can read. @return whether there is memory for it
  /// @param staged_bytes  up to this length a copy is made in the slot
  template <class V>
  bool share(V& view, MpiSharedView& shared, std::size_t staged_bytes) {
    shared.dtype = view.dtype;
    shared.extents = view.extents;
    const auto bytes = std::size_t(view.bytes());
    if (bytes == 0 || view.data == nullptr) return true;
    int place = places_[std::size_t(rank_)];
    if (!node_->arena()->contains(view.data)) {
      std::byte* memory = slots_.staging(rank_);
      if (bytes <= staged_bytes) place = places_[0];
      else memory = allocate(bytes);
      if (memory == nullptr) return false;
      const View copy = View::dense(memory, view.dtype, view.extents);
      if constexpr (std::is_same_v<V, ConstView>) strided_copy(view, copy);
      view = copy;
    }
    shared = {static_cast<const std::byte*>(view.data) - node_->segment(place), place, view.dtype,
              view.extents, view.strides};
    return true;
  }
  bool shares(const Collective& c) const { return node_->arena()->contains(c.source.data); }

  /// Shared memory until the end of the call; null if there is none.
  std::byte* allocate(std::size_t bytes) {
    SharedArena* const arena = node_->arena().get();
    return static_cast<std::byte*>(
        blocks_.emplace_back(arena->allocate(bytes), Release{arena}).get());
  }
  struct Release {
    SharedArena* arena;
    void operator()(void* block) const { arena->release(block); }
  };

  const Listed* listed(int r) const {
    const MpiPublished& theirs = slots_.published(r);
    if (theirs.count == 1) return &theirs.call;
    return reinterpret_cast<const Listed*>(node_->segment(places_[std::size_t(r)]) + theirs.listed);
  }
  View view_of(const MpiSharedView& view) const {
    return {view.place < 0 ? nullptr : node_->segment(view.place) + view.offset, view.dtype,
            view.extents, view.strides};
  }

  std::shared_ptr<MpiNode> node_;
  std::vector<int> places_;  ///< of the members, among the processes of the node
  int rank_;
  MpiSlots slots_;
  std::vector<Box> pieces_;        ///< of a scatter: this rank's
  std::vector<Collective> peers_;  ///< the calls of others that are looked at
  std::vector<Collective> calls_{};
  std::vector<std::unique_ptr<void, Release>> blocks_{};
  const MpiOpContext* context_ = nullptr;  ///< of the current call
  MpiShortCalls short_{slots_};
  DirectReads<Host, MpiDirect> reads_{*this};
};

}  // namespace cleave::inline v0::detail
