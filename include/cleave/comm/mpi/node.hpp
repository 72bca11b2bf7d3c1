// The shared memory window of the processes of one node: each process allocates its tensors from
// its own segment, which all others map, so that peers read them directly.
//
// One window per process, created with the first world and kept until the process exits: tensors
// may outlive MPI. CLEAVE_SHARED_MB sets the size of a segment; 0 disables shared memory. Without
// shared memory, or with too little, collectives use messages; `Communicator::transport` says why.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/statvfs.h>

#include <cleave/comm/mpi/mpi_handle.hpp>
#include <cleave/comm/shared_memory/arena.hpp>
#include <cleave/core/cores.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::detail {

/// The rank in MPI_COMM_WORLD of each rank of `comm`, which identifies its process.
inline std::vector<int> processes_of(MPI_Comm comm) {
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  mpi_check(MPI_Comm_group(comm, &group), "MPI_Comm_group");
  mpi_check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  int size = 0;
  mpi_check(MPI_Group_size(group, &size), "MPI_Group_size");
  std::vector<int> ranks(static_cast<std::size_t>(size)), processes(ranks.size());
  for (int r = 0; r < size; ++r) ranks[std::size_t(r)] = r;
  mpi_check(MPI_Group_translate_ranks(group, size, ranks.data(), world, processes.data()),
            "MPI_Group_translate_ranks");
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return processes;
}

/// The ranks of `comm` on this process' node, as a communicator.
/// @collective every rank of `comm`
inline MpiComm split_by_node(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  mpi_check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  return MpiComm(node);
}

/// A rank of a communicator among those on its node.
struct PlaceOnNode {
  int rank = 0;
  int ranks = 1;
  int cores = 1;  ///< that these ranks may use, all together

  /// @collective every rank of `comm`
  static PlaceOnNode in(MPI_Comm comm) {
    const MpiComm node = split_by_node(comm);
    PlaceOnNode place;
    mpi_check(MPI_Comm_rank(node.get(), &place.rank), "MPI_Comm_rank");
    mpi_check(MPI_Comm_size(node.get(), &place.ranks), "MPI_Comm_size");
    const CoreSet mine = CoreSet::available();
    CoreSet all;
    mpi_check(MPI_Allreduce(mine.bits.data(), all.bits.data(), int(all.bits.size()), MPI_UINT64_T,
                            MPI_BOR, node.get()),
              "MPI_Allreduce");
    place.cores = all.count();
    return place;
  }
};

class MpiNode {
 public:
  /// The node of this process, created unless a rank of `comm` called this before; null if this
  /// process shares no memory with others.
  ///
  /// @collective every rank of `comm`
  /// @throws Error if CLEAVE_SHARED_MB is not a number
  static std::shared_ptr<MpiNode> reaching(MPI_Comm comm) {
    Process& process = Process::get();
    int state[2] = {process.asked ? 1 : 0, process.asked ? 0 : 1}, any[2] = {};
    mpi_check(MPI_Allreduce(state, any, 2, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
    if (any[0] == 0) {
      process.asked = true;
      process.node = create(comm);
      if (process.node != nullptr) host_memory() = process.node->arena();
    }
    return process.node;
  }

  /// Why this process shares no memory with others of its node; empty if it does, or is alone.
  static const std::string& shortage() { return Process::get().shortage; }

  /// This process's segment.
  const std::shared_ptr<SharedArena>& arena() const noexcept { return arena_; }

  /// The place of a process among those of the node; -1 if it is not one of them.
  int place_of(int process) const {
    const auto at = std::find(processes_.begin(), processes_.end(), process);
    return at == processes_.end() ? -1 : int(at - processes_.begin());
  }
  /// Where the segment of a process begins in this process's address space.
  std::byte* segment(int place) const { return segments_[std::size_t(place)]; }

 private:
  struct Process {
    bool asked = false;
    std::shared_ptr<MpiNode> node;
    std::string shortage;

    static Process& get() {
      static Process process;
      return process;
    }
  };

  static constexpr double mebibyte = 1 << 20;
  static constexpr double least_mebibytes = 16;
  static constexpr double max_mebibytes = 4096;  // unless more is requested

  /// The segment size that CLEAVE_SHARED_MB requests, in MiB; negative if it is not set.
  static double requested_mebibytes() {
    const char* text = std::getenv("CLEAVE_SHARED_MB");
    if (text == nullptr || *text == '\0') return -1;
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (*end != '\0' || !(value >= 0))
      throw Error("run", std::string("CLEAVE_SHARED_MB is '") + text + "'; use MiB >= 0");
    return value;
  }

  /// The memory available for all segments of the node, in MiB.
  static double free_mebibytes() {
    struct statvfs memory{};
    if (statvfs("/dev/shm", &memory) != 0) return 0;
    return double(memory.f_bavail) * double(memory.f_frsize) / mebibyte;
  }

  /// Why there are no segments; sizes in MiB.
  static std::string shortage_message(int segments, double requested, double free) {
    if (requested == 0) return "CLEAVE_SHARED_MB is 0";
    if (requested >= 0 && requested < least_mebibytes) return "CLEAVE_SHARED_MB is less than 16";
    char text[120];
    if (requested >= 0)
      std::snprintf(text, sizeof text,
                    "CLEAVE_SHARED_MB requests %d segments of %g MiB, but only %.0f MiB are free",
                    segments, requested, free);
    else
      std::snprintf(text, sizeof text, "only %.0f MiB are free for %d processes", free, segments);
    return text;
  }

  static std::shared_ptr<MpiNode> create(MPI_Comm comm) {
    const MpiComm node = split_by_node(comm);
    int rank = 0, size = 1;
    MPI_Comm_rank(node.get(), &rank);
    MPI_Comm_size(node.get(), &size);
    if (size == 1) return nullptr;  // no peer to read
    const double requested = requested_mebibytes(), free = free_mebibytes();
    // by default a quarter of the free memory; Open MPI hangs if more than is free is requested
    double mebibytes = std::min(max_mebibytes, free / 4 / size);
    if (requested >= 0) mebibytes = requested * size <= free ? requested : 0;
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, &mebibytes, 1, MPI_DOUBLE, MPI_MIN, node.get()),
              "MPI_Allreduce");
    const auto without = [](std::string reason) {
      Process::get().shortage = std::move(reason);
      return nullptr;
    };
    if (mebibytes < least_mebibytes) return without(shortage_message(size, requested, free));

    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    const auto bytes = MPI_Aint(mebibytes * mebibyte);
    void* mine = nullptr;
    static MPI_Win window = MPI_WIN_NULL;  // never freed
    int code = MPI_Win_allocate_shared(bytes, 1, info, node.get(), &mine, &window);
    MPI_Info_free(&info);
    int failed = code != MPI_SUCCESS;
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, node.get()),
              "MPI_Allreduce");
    if (failed != 0) return without("MPI_Win_allocate_shared: " + mpi_error_string(code));

    auto result = std::make_shared<MpiNode>();
    result->processes_ = processes_of(node.get());
    for (int r = 0; r < size; ++r) {
      MPI_Aint theirs = 0;
      int unit = 0;
      void* begin = nullptr;
      mpi_check(MPI_Win_shared_query(window, r, &theirs, &unit, &begin), "MPI_Win_shared_query");
      result->segments_.push_back(aligned(begin));
    }
    result->arena_ = std::make_shared<SharedArena>(result->segment(rank),
                                                   std::size_t(bytes) - storage_alignment);
    return result;
  }

  static std::byte* aligned(void* begin) {
    const auto at = reinterpret_cast<std::uintptr_t>(begin);
    const auto rest = at % storage_alignment;
    return static_cast<std::byte*>(begin) + (rest == 0 ? 0 : storage_alignment - rest);
  }

  std::vector<int> processes_;  ///< ranks in MPI_COMM_WORLD
  std::vector<std::byte*> segments_;
  std::shared_ptr<SharedArena> arena_;
};

/// For every rank of `comm`, a number that exactly the ranks of its node share; empty if the ranks
/// of some node cannot read each other.
///
/// @param node  the result of `MpiNode::reaching(comm)`
/// @param limit if not 0, nodes count as several, each of at most this many processes
/// @collective  every rank of `comm`
inline std::vector<int> nodes_of(MPI_Comm comm, const MpiNode* node, int limit) {
  const MpiComm here = split_by_node(comm);
  const std::vector<int> processes = processes_of(here.get());
  int rank = 0, size = 1;
  MPI_Comm_rank(here.get(), &rank);
  MPI_Comm_size(comm, &size);
  const int most = limit > 0 ? limit : int(processes.size());
  const auto reached = [&](int process) { return node != nullptr && node->place_of(process) >= 0; };
  const bool reads = processes.size() == 1 || std::ranges::all_of(processes, reached);
  const int mine = reads ? processes[std::size_t(rank / most * most)] : -1;
  std::vector<int> numbers(static_cast<std::size_t>(size));
  mpi_check(MPI_Allgather(&mine, 1, MPI_INT, numbers.data(), 1, MPI_INT, comm), "MPI_Allgather");
  if (std::ranges::count(numbers, -1) > 0) return {};
  return numbers;
}

}  // namespace cleave::inline v0::detail
