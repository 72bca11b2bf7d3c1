// Ranks that fail in every way a process can, for mpi_failures.py: the last rank fails as the first
// argument says, the others print what they see.
//
// usage: mpi_failures WAY
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <time.h>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/tensor/tensor.hpp>

using namespace cleave;

namespace {

void sleep_for(double seconds) {
  const timespec span{time_t(seconds), long((seconds - double(time_t(seconds))) * 1e9)};
  nanosleep(&span, nullptr);
}

Collective call(CollectiveKind kind) {
  Collective c;
  c.kind = kind;
  return c;
}

// One call of the given kind, `count` floats from or to every rank, values unchecked.
void communicate(Communicator& group, CollectiveKind kind, index_t count) {
  const int n = group.size(), rank = group.rank();
  const Tensor<float, 1> piece({count}), whole({n * count}), result({n * count});
  whole.fill(1);
  piece.fill(1);
  std::vector<Box> pieces;
  std::vector<Transfer> transfers;
  for (int r = 0; r < n; ++r) {
    pieces.push_back({Shape::filled(1, r * count), Shape::filled(1, (r + 1) * count)});
    transfers.push_back({r, pieces.back(), pieces.back()});
  }
  Collective c = call(kind);
  c.pieces = pieces;
  switch (kind) {
    case CollectiveKind::barrier: break;
    case CollectiveKind::broadcast:
      if (rank == 0) c.source = whole.view();
      else c.destination = result.view();
      break;
    case CollectiveKind::scatter:
      if (rank == 0) c.source = whole.view();
      c.destination = piece.view();
      break;
    case CollectiveKind::gather:
      c.source = piece.view();
      if (rank == 0) c.destination = result.view();
      break;
    case CollectiveKind::all_gather:
      c.source = piece.view();
      c.destination = result.view();
      break;
    case CollectiveKind::reduce_scatter:
      c.source = whole.view();
      c.destination = piece.view();
      break;
    case CollectiveKind::all_reduce:
      c.source = whole.view();
      c.destination = result.view();
      break;
    case CollectiveKind::all_to_all:
    case CollectiveKind::exchange:
      for (Transfer& t : transfers) {  // rank r's piece of every rank
        const Box mine = pieces[std::size_t(rank)];
        if (t.peer != rank) t.source = t.destination = mine;
      }
      c.sends = transfers;
      c.receives = transfers;
      c.source = whole.view();
      c.destination = result.view();
      break;
  }
  group.run(c);
}

// The first `n` ranks make a group, the last one never comes.
void make_group(World& world) {
  std::vector<int> all;
  for (int r = 0; r < world.size(); ++r) all.push_back(r);
  world.communicator().subgroup(all, "all");
}

// Every rank waits for the next one in a group of two; only the first pair lacks the last rank.
void wait_in_chain(World& world) {
  const int rank = world.rank(), last = world.size() - 1;
  std::shared_ptr<Communicator> pair;
  for (int r = 0; r < last; ++r) {
    const std::array<int, 2> ranks{r, r + 1};
    if (rank != r && rank != r + 1) continue;
    auto made = world.communicator().subgroup(ranks, "pair " + std::to_string(r));
    if (rank == r) pair = made;
  }
  if (rank == last) throw std::runtime_error("planted");
  communicate(*pair, CollectiveKind::all_gather, 10);
}

int fail(World& world, const std::string& way) {
  Communicator& group = world.communicator();
  const bool last = world.rank() == world.size() - 1;
  const CollectiveKind kind = CollectiveKind::all_gather;
  communicate(group, CollectiveKind::all_reduce, 1000);
  if (world.rank() == 0) std::printf("so far all is well\n"), std::fflush(stdout);
  if (way == "none") return 0;
  if (way == "code") return 3;
  if (way == "code of one") return last ? 3 : 0;
  if (way == "all throw") throw std::runtime_error("planted");
  if (way == "chain") return wait_in_chain(world), 0;
  if (last) {
    if (way == "throw" || way == "catch" || way == "subgroup" || way == "large")
      throw std::runtime_error("planted");
    if (way == "throw an int") throw 42;
    if (way == "leave") return 0;
    if (way == "stall") sleep_for(4);
    if (way == "stall for ever") sleep_for(1000);
    if (way == "die") std::raise(SIGKILL);
    if (way == "exit") std::exit(0);
    if (way == "wrong call") {
      Collective c = call(kind);
      c.pieces = {};
      group.run(c);
    }
    if (way == "wrong size") return communicate(group, kind, 1001), 0;
    if (way == "wrong kind") return communicate(group, CollectiveKind::barrier, 0), 0;
  }
  if (way == "subgroup") make_group(world);
  communicate(group, kind, way == "large" ? 2'000'000 : 1000);
  return 0;
}

int fail_and_tell(World& world, const std::string& way) {
  try {
    return fail(world, way);
  } catch (const Error& e) {
    std::printf("rank %d saw: %s\n", world.rank(), e.what());
    std::fflush(stdout);
    if (way == "catch") return 0;
    throw;
  }
}

// Worlds of the user's own MPI, one after the other in the same processes. In each one a rank,
// not always the same, throws before one of the calls; all others must hear of it by name.
int survive_many(int worlds) {
  int level = 0, rank = 0, size = 1, wrong = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned random = 2463534242u;  // the same on all ranks
  const auto below = [&](int limit) {
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    return int(random % unsigned(limit));
  };
  for (int i = 0; i < worlds; ++i) {
    const int failing = below(size), calls = below(6);
    const auto kind = CollectiveKind(1 + below(8));
    const index_t count = below(2) != 0 ? 100 : 200'000;
    std::string seen;
    try {
      const auto world = mpi_communicator(MPI_COMM_WORLD);
      for (int k = 0; k < calls; ++k) communicate(*world, kind, count);
      if (rank == failing) throw std::runtime_error("planted");
      communicate(*world, CollectiveKind::all_to_all, count);
      communicate(*world, CollectiveKind::barrier, 0);
    } catch (const std::exception& e) {
      seen = e.what();
    }
    const std::string expected = "rank " + std::to_string(failing) + " failed: an exception";
    if (rank == failing ? seen == "planted" : seen.find(expected) != std::string::npos) continue;
    ++wrong;
    std::printf("rank %d, world %d: '%s' does not say '%s'\n", rank, i, seen.c_str(),
                expected.c_str());
  }
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d worlds failed, %d errors were wrong\n", worlds, any);
  MPI_Finalize();
  return any == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  if (way == "many") return survive_many(60);
  const bool own_mpi = way == "own MPI";
  if (own_mpi) MPI_Init(&argc, &argv);
  const int code = run(argc, argv, [&](World& world) {
    return fail_and_tell(world, own_mpi ? "none" : way);
  });
  if (own_mpi) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return 9;
    MPI_Finalize();
  }
  return code;
}
