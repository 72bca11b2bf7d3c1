// Collectives of a group whose processes are on one node, through shared memory.
//
// Every rank publishes its call in its slot; after a barrier ranks read their peers' memory
// directly (by the same functions as between threads), and a second barrier precedes any change of
// a source. A source outside shared memory is copied there first; if a rank lacks the memory for
// that, all ranks see it and the collective uses messages. Short calls cost less (short_calls.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
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

namespace cleave::detail {

class MpiDirect {
  using Published = MpiPublished;
  using Listed = MpiListedCall;
  using SharedView = MpiSharedView;

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
           c.kind == CollectiveKind::all_to_all || c.kind == CollectiveKind::exchange;
  }

  /// Several calls with two barriers in total.
  /// @pre        runs_together(c) for every call c; no call reads what another one writes
  /// @return     whether they ran; false on all ranks if one lacks memory
  /// @collective every rank of the group
  bool run_all(std::span<const Collective> calls, const MpiOpContext& context) {
    context.detector->verify(context.operation);
    slots_.begin_round();
    Staged staged(*this);
    publish_all(calls, staged);
    slots_.arrival(rank_).call = 0;
    meet(context, [] {});
    for (int r = 0; r < size(); ++r)
      if (!published(r).reachable) return false;
    for (int r = 1; r < size(); ++r)
      if (published(r).count != published(0).count)
        context.fail(text_of_disagreement(
            *context.label, 0, "runs " + std::to_string(published(0).count) + " calls together", r,
            "runs " + std::to_string(published(r).count)));
    std::exception_ptr error;
    std::vector<Collective> round(std::size_t(size()), Collective{});
    std::vector<const Collective*> peers;
    for (const Collective& call : round) peers.push_back(&call);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (int r = 0; r < size(); ++r) {
        const Listed& theirs = listed(r)[i];
        Collective& call = round[std::size_t(r)];
        call = r == rank_ ? calls[i] : call_of(theirs.header);
        call.source = view_of(theirs.source);
      }
      require_agreement(round, context);
      if (error == nullptr) error = read(calls[i], peers, {}, context);
    }
    barrier_after_reading(calls[0], error, context);
    return true;
  }

  /// @return     whether it ran; false on all ranks if one lacks memory
  /// @collective every rank of the group
  bool run(const Collective& c, const MpiOpContext& context) {
    context.detector->verify(context.operation);
    slots_.begin_round();
    Staged staged(*this);
    if (MpiShortCalls::takes(c, node_->arena()->contains(c.source.data))) {
      short_.announce(c);
    } else {
      publish(c, staged);
      slots_.arrival(rank_).call = 0;
    }
    if (meet(context, [&] { publish(c, staged); })) {
      short_.read(c, context);
      return true;
    }
    std::vector<Collective> calls;
    for (int r = 0; r < size(); ++r) {
      if (!published(r).reachable) return false;
      calls.push_back(r == rank_ ? staged.call : call_of(published(r), c));
    }
    require_agreement(calls, context);
    if (c.kind == CollectiveKind::barrier) return true;
    std::vector<const Collective*> peers;
    for (const Collective& call : calls) peers.push_back(&call);
    alignas(64) std::byte block[block_bytes];  // a destination may be a source that peers read
    const View small = View::dense(block, c.dtype(), c.source.extents);
    barrier_after_reading(c, read(c, peers, small, context), context);
    if (is_small_reduction(c)) strided_copy(small, c.destination);
    if (staged.copies_back) strided_copy(staged.call.destination, c.destination);
    return true;
  }

 private:
  /// A call whose views are in shared memory.
  struct Staged {
    explicit Staged(MpiDirect& of) : direct(of) {}
    Staged(const Staged&) = delete;  // owns memory of the arena
    Staged& operator=(const Staged&) = delete;
    ~Staged() {
      for (void* block : blocks)
        if (block != nullptr) direct.node_->arena()->release(block);
    }

    MpiDirect& direct;
    Collective call{};
    bool copies_back = false;
    std::array<void*, 2> blocks{};  ///< copies of source and destination, or the list of calls
  };

  MpiDirect(std::shared_ptr<MpiNode> node, std::vector<int> places, int rank, MpiSlot* slots)
      : node_(std::move(node)),
        places_(std::move(places)),
        rank_(rank),
        slots_(slots, rank, int(places_.size())) {}

  int size() const noexcept { return int(places_.size()); }
  Published& published(int r) const noexcept { return slots_.published(r); }
  Box& piece(int r) const noexcept { return slots_.piece(r); }
  void barrier(const MpiOpContext& context) { slots_.barrier(context); }

  /// The first barrier of a call, which this rank has announced as a short one or published.
  /// @param publishes  publishes this rank's call, where peers need more than its announcement
  /// @return whether all ranks have announced the same short call; if not, all have published
  template <class F>
  bool meet(const MpiOpContext& context, const F& publishes) {
    slots_.meet(context);
    const std::uint64_t mine = slots_.arrival(rank_).call;
    bool same = true, any = mine != 0;
    for (int r = 0; r < size(); ++r) {
      const std::uint64_t theirs = slots_.arrival(r).call;
      same = same && theirs == mine;
      any = any || theirs != 0;
    }
    if (!any || same) return any;
    if (mine != 0) publishes();
    barrier(context);
    return false;
  }

  void publish(const Collective& c, Staged& staged) {
    Published& mine = published(rank_);
    mine = {};
    mine.header = MpiCallHeader::of(c);
    staged.call = c;
    const bool rooted = c.kind == CollectiveKind::broadcast || c.kind == CollectiveKind::scatter;
    if (!rooted || rank_ == c.root) mine.reachable = share_source(c, mine, staged);
    if (c.kind == CollectiveKind::all_reduce && !is_small_reduction(c))
      mine.reachable = mine.reachable && share_destination(c, mine, staged);
    if (c.kind == CollectiveKind::scatter && rank_ == c.root)
      for (int r = 0; r < size(); ++r) piece(r) = c.pieces[std::size_t(r)];
  }

  /// The list of calls that rank r runs together.
  const Listed* listed(int r) const {
    return reinterpret_cast<const Listed*>(node_->segment(places_[std::size_t(r)]) +
                                           published(r).listed);
  }

  /// Publishes several calls; copies sources outside shared memory to one block in it.
  void publish_all(std::span<const Collective> calls, Staged& staged) {
    Published& mine = published(rank_);
    mine = {};
    mine.header = MpiCallHeader::of(calls[0]);
    mine.count = std::int32_t(calls.size());
    const auto copied_bytes = [&](const Collective& c) {
      const bool is_shared = c.source.bytes() == 0 || node_->arena()->contains(c.source.data);
      return is_shared ? std::size_t(0) : (std::size_t(c.source.bytes()) + 63) / 64 * 64;
    };
    const std::size_t list_bytes = (calls.size() * sizeof(Listed) + 63) / 64 * 64;
    std::size_t bytes = list_bytes;
    for (const Collective& c : calls) bytes += copied_bytes(c);
    auto* const block = static_cast<std::byte*>(staged.blocks[0] = node_->arena()->allocate(bytes));
    mine.reachable = block != nullptr;
    if (!mine.reachable) return;
    const int place = places_[std::size_t(rank_)];
    mine.listed = block - node_->segment(place);
    auto* const list = reinterpret_cast<Listed*>(block);
    std::byte* free = block + list_bytes;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Collective& c = calls[i];
      Listed& entry = *new (list + i) Listed{MpiCallHeader::of(c), {}};
      entry.source.dtype = c.source.dtype;
      entry.source.extents = c.source.extents;
      if (c.source.bytes() == 0) continue;
      const std::size_t size = copied_bytes(c);
      const View copy = View::dense(free, c.source.dtype, c.source.extents);
      if (size > 0) strided_copy(c.source, copy);
      free += size;
      entry.source = shared(size > 0 ? ConstView(copy) : c.source, place);
    }
  }

  bool share_source(const Collective& c, Published& mine, Staged& staged) {
    const auto bytes = std::size_t(c.source.bytes());
    mine.source.dtype = c.source.dtype;
    mine.source.extents = c.source.extents;
    if (bytes == 0 || c.source.data == nullptr) return true;
    if (node_->arena()->contains(c.source.data)) {
      mine.source = shared(c.source, places_[std::size_t(rank_)]);
      return true;
    }
    int place = places_[0];
    std::byte* memory = slots_.staging(rank_);
    if (bytes > slot_bytes) {
      memory = static_cast<std::byte*>(staged.blocks[0] = node_->arena()->allocate(bytes));
      place = places_[std::size_t(rank_)];
    }
    if (memory == nullptr) return false;
    const View copy = View::dense(memory, c.source.dtype, c.source.extents);
    strided_copy(c.source, copy);
    staged.call.source = copy;
    mine.source = shared(copy, place);
    return true;
  }

  bool share_destination(const Collective& c, Published& mine, Staged& staged) {
    if (!node_->arena()->contains(c.destination.data)) {
      staged.blocks[1] = node_->arena()->allocate(std::size_t(c.destination.bytes()));
      if (staged.blocks[1] == nullptr) return false;
      staged.call.destination =
          View::dense(staged.blocks[1], c.destination.dtype, c.destination.extents);
      staged.copies_back = true;
    }
    mine.destination = shared(staged.call.destination, places_[std::size_t(rank_)]);
    return true;
  }

  SharedView shared(const ConstView& view, int place) const {
    return {static_cast<const std::byte*>(view.data) - node_->segment(place), place, view.dtype,
            view.extents, view.strides};
  }
  View view_of(const SharedView& view) const {
    return {view.place < 0 ? nullptr : node_->segment(view.place) + view.offset, view.dtype,
            view.extents, view.strides};
  }

  /// A peer's call, as far as other ranks need it.
  static Collective call_of(const MpiCallHeader& theirs) {
    Collective c;
    c.kind = theirs.kind;
    c.op = theirs.op;
    c.root = theirs.root;
    c.global_count = theirs.global_count;
    c.detail = theirs.detail;
    return c;
  }
  Collective call_of(const Published& theirs, const Collective& mine) const {
    Collective c = call_of(theirs.header);
    c.source = view_of(theirs.source);
    c.destination = view_of(theirs.destination);
    c.operation = mine.operation;
    return c;
  }

  /// @throws Error if the calls of two ranks do not match
  void require_agreement(const std::vector<Collective>& calls, const MpiOpContext& context) const {
    for (int r = 1; r < size(); ++r)
      if (!agree(calls[0], calls[std::size_t(r)]))
        context.fail(text_of_disagreement(*context.label, 0, "runs " + text_of(calls[0]), r,
                                          "runs " + text_of(calls[std::size_t(r)])));
  }

  /// The barrier after which sources may change. @throws `error`, or Error if a peer has failed
  void barrier_after_reading(const Collective& c, const std::exception_ptr& error,
                             const MpiOpContext& context) {
    barrier(context);
    if (error != nullptr) std::rethrow_exception(error);
    for (int r = 0; r < size(); ++r)
      if (published(r).failed)
        throw Error(operation_of(c),
                    "rank " + std::to_string(context.world_ranks[std::size_t(r)]) + " failed in " +
                        context.where(),
                    {.rank = context.detector->rank()});
  }

  /// All work between the two barriers. Exceptions are returned, not thrown, so that no peer reads
  /// memory that has been freed. The result of a small reduction goes to `small`.
  std::exception_ptr read(const Collective& c, PeerCalls peers, const View& small,
                          const MpiOpContext& context) {
    try {
      switch (c.kind) {
        case CollectiveKind::reduce_scatter: reduce_piece<Host>(peers, rank_, operands_); break;
        case CollectiveKind::scatter:
          if (!piece(rank_).empty())
            copy_checked<Host>(c, peers[std::size_t(c.root)]->source[piece(rank_)], c.destination);
          break;
        case CollectiveKind::all_reduce:
          if (is_small_reduction(c)) {
            reduce_elements<Host>(peers, small, 0, c.source.size(), operands_);
            break;
          }
          reduce_share<Host>(peers, rank_, operands_);
          barrier(context);
          copy_shares<Host>(peers, rank_);
          break;
        default: copy_from_peers<Host>(peers, rank_, false); break;
      }
      return nullptr;
    } catch (const std::exception&) {
      published(rank_).failed = true;
      return std::current_exception();
    }
  }

  /// Whether every rank reduces all elements of this all-reduce.
  static bool is_small_reduction(const Collective& c) {
    return c.kind == CollectiveKind::all_reduce && c.source.bytes() <= block_bytes;
  }

  std::shared_ptr<MpiNode> node_;
  std::vector<int> places_;  ///< of the members, among the processes of the node
  int rank_;
  MpiSlots slots_;
  MpiShortCalls short_{slots_};
  std::vector<ConstView> operands_;
};

}  // namespace cleave::detail
