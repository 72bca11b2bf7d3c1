// Ranks that fail in every way a process can, for failures.py. The last rank fails as the first
// argument says; the others print the errors they see.
//
// usage: failures WAY
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/comm/mpi.hpp>
#include <cleave/comm/run.hpp>

#include "../failing_call.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

// Exits the program inside a call of the kind that `way` names: "exit in all_gather".
void exit_inside(World& world, const std::string& way) {
  for (const CollectiveKind kind : all_kinds) {
    if (way != std::string("exit in ") + name_of(kind)) continue;
    if (world.rank() == world.size() - 1) std::exit(0);
    communicate(world.communicator(), kind, 1000);
    communicate(world.communicator(), CollectiveKind::barrier, 0);
  }
}

// The last rank fails in the given way while the others are inside a call of the kind that `call`
// names.
void fail_in(World& world, const std::string& call, Failing way) {
  for (const CollectiveKind kind : all_kinds)
    if (call == name_of(kind)) fail_inside(world, kind, 1000, world.size() - 1, way);
}

// All ranks but the last make a group; the last never joins.
void make_group(World& world) {
  std::vector<int> all;
  for (int r = 0; r < world.size(); ++r) all.push_back(r);
  world.communicator().subgroup(all, "all");
}

// Every rank waits for the next one in a group of two; only the last pair contains the rank that
// fails.
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

// The last rank throws past asynchronous work that waits for the others, which wait for it.
void throw_past_work(World& world) {
  Communicator& group = world.communicator();
  const std::shared_ptr<Communicator> duplicate = group.duplicate();
  if (world.rank() != world.size() - 1) return communicate(group, CollectiveKind::all_gather, 10);
  const Async<int> work = start_async(Host{}, group, [duplicate] {
    return communicate(*duplicate, CollectiveKind::all_gather, 10), 1;
  });
  nap(0.3);  // the work has begun
  throw std::runtime_error("planted");
}

int fail(World& world, const std::string& way) {
  Communicator& group = world.communicator();
  const bool last = world.rank() == world.size() - 1;
  const CollectiveKind kind = CollectiveKind::all_gather;
  communicate(group, CollectiveKind::all_reduce, 1000);
  if (world.rank() == 0) std::printf("so far all is well\n"), std::fflush(stdout);
  if (way == "none") return 0;
  if (way == "transport") return std::printf("%s\n", group.transport().c_str()), 0;
  if (way == "code") return 3;
  if (way == "leave early") {
    if (last) nap(3);
    communicate(group, CollectiveKind::gather, 1000);
    return 0;
  }
  if (way == "code of one") return last ? 3 : 0;
  if (way == "all throw") throw std::runtime_error("planted");
  if (way == "chain") return wait_in_chain(world), 0;
  if (way == "throw past work") return throw_past_work(world), 0;
  if (way.starts_with("exit in ")) return exit_inside(world, way), 0;
  if (way.starts_with("throw in ")) return fail_in(world, way.substr(9), Failing::throws), 0;
  if (way.starts_with("leave in ")) return fail_in(world, way.substr(9), Failing::leaves), 0;
  if (way.starts_with("stall in ")) return fail_in(world, way.substr(9), Failing::stalls), 0;
  if (last) {
    if (way == "throw" || way == "catch" || way == "subgroup" || way == "large")
      throw std::runtime_error("planted");
    if (way == "throw an int") throw 42;
    if (way == "leave") return 0;
    if (way == "stall") nap(4);
    if (way == "stall for ever") nap(1000);
    if (way == "die") std::raise(SIGKILL);
    if (way == "wrong call") {
      Collective c;
      c.kind = kind;
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

// MPI initialised by the user, for worlds that fail one after the other in the same processes.
class OwnMpi {
 public:
  explicit OwnMpi(int wanted = MPI_THREAD_FUNNELED) {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  OwnMpi(const OwnMpi&) = delete;  // MPI is initialised once per process
  OwnMpi& operator=(const OwnMpi&) = delete;
  ~OwnMpi() { MPI_Finalize(); }

  int rank = 0;
  int size = 1;
};

// The exit code after `worlds` failures, of which this rank found `wrong` reported wrongly.
int verdict(const OwnMpi& mpi, int worlds, int wrong) {
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (mpi.rank == 0) std::printf("%d worlds failed, %d errors were wrong\n", worlds, all);
  return all == 0 ? 0 : 1;
}

// In each world a rank, not always the same, throws before one of the calls; all others must get an
// error that names it.
int survive_many(int worlds) {
  const OwnMpi mpi;
  int wrong = 0;
  unsigned random = 2463534242u;  // the same on all ranks
  const auto below = [&](int limit) {
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    return int(random % unsigned(limit));
  };
  for (int i = 0; i < worlds; ++i) {
    const int failing = below(mpi.size), calls = below(6);
    const auto kind = CollectiveKind(1 + below(8));
    const index_t count = below(2) != 0 ? 100 : 200'000;
    std::string seen;
    try {
      const auto world = mpi_communicator(MPI_COMM_WORLD);
      for (int k = 0; k < calls; ++k) communicate(*world, kind, count);
      if (mpi.rank == failing) throw std::runtime_error("planted");
      communicate(*world, CollectiveKind::all_to_all, count);
      communicate(*world, CollectiveKind::barrier, 0);
    } catch (const std::exception& e) {
      seen = e.what();
    }
    const std::string expected = "rank " + std::to_string(failing) +
                                 " failed: its communicators were destroyed by an exception";
    if (mpi.rank == failing ? seen == "planted" : seen.find(expected) != std::string::npos)
      continue;
    ++wrong;
    std::printf("rank %d, world %d: '%s' does not say '%s'\n", mpi.rank, i, seen.c_str(),
                expected.c_str());
  }
  return verdict(mpi, worlds, wrong);
}

// A rank catches the exception that has destroyed its communicators, and does something else.
int catch_outside(int threads) {
  const OwnMpi mpi(threads);
  try {
    const auto world = mpi_communicator(MPI_COMM_WORLD);
    communicate(*world, CollectiveKind::all_reduce, 1000);
    if (mpi.rank == mpi.size - 1) throw std::runtime_error("planted");
    communicate(*world, CollectiveKind::all_gather, 1000);
  } catch (const std::exception& e) {
    std::printf("rank %d saw: %s\n", mpi.rank, e.what());
    std::fflush(stdout);
    nap(1000);
  }
  return 0;
}

// Inside each kind of call, each rank in turn fails in the given way. The others must get an error
// that names it, within the time-out plus the time that ranks need to respond on a loaded machine.
int survive_every(Failing way, int argc, char** argv) {
  const OwnMpi mpi;
  const int worlds = repetitions(1);
  int wrong = 0, failed = 0;
  for (const CollectiveKind kind : all_kinds)
    for (int i = 0; i < worlds; ++i, ++failed) {
      const int failing = (failed + mpi.size - 1) % mpi.size;
      const index_t count = i % 4 == 3 ? 200'000 : 1000;
      std::string seen;
      double limit = 0, waited = 0;
      const int code = run(argc, argv, [&](World& world) {
        limit = world.communicator().state().timeout_seconds + 3;
        double begin = MPI_Wtime();
        try {
          communicate(world.communicator(), CollectiveKind::all_reduce, count);
          begin = MPI_Wtime();  // ranks still in that call may learn of the failure there
          fail_inside(world, kind, count, failing, way);
        } catch (const std::exception& e) {
          seen = e.what();
          waited = MPI_Wtime() - begin;
          throw;
        }
      });
      const bool in_time = mpi.rank == failing || waited < limit;
      if (is_told(seen, mpi.rank, failing, way) && in_time && code == 1) continue;
      ++wrong;
      std::printf("rank %d, %s, world %d: '%s' after %.2f s, code %d, does not say '%s'\n",
                  mpi.rank, name_of(kind), i, seen.c_str(), waited, code,
                  blame(failing, way).c_str());
    }
  return verdict(mpi, failed, wrong);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  if (way == "many") return survive_many(60);
  if (way == "catch outside") return catch_outside(MPI_THREAD_MULTIPLE);
  if (way == "catch outside, one thread") return catch_outside(MPI_THREAD_SINGLE);
  if (way == "throw everywhere") return survive_every(Failing::throws, argc, argv);
  if (way == "leave everywhere") return survive_every(Failing::leaves, argc, argv);
  if (way == "stall everywhere") return survive_every(Failing::stalls, argc, argv);
  const bool own_mpi = way == "own MPI";
  if (own_mpi) MPI_Init(&argc, &argv);
  const int code =
      run(argc, argv, [&](World& world) { return fail_and_tell(world, own_mpi ? "none" : way); });
  if (own_mpi) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return 9;
    MPI_Finalize();
  }
  return code;
}
