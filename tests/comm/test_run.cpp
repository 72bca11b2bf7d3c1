// The entry point as called by a program's main: exit codes, and output on stderr.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include <cleave/comm/launch.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/comm/thread/run_threads.hpp>
#include <cleave/kernels/host/gemm.hpp>
#include <cleave/kernels/strided.hpp>

#include "cases.hpp"
#include "ranks.hpp"
#include "setting.hpp"

using namespace cleave;
using cleave::testing::Setting;

namespace {

/// Unsets the launchers' variables, as if no MPI launcher had started the tests.
struct NotLaunched {
  Setting ompi{"OMPI_COMM_WORLD_SIZE", nullptr}, pmi{"PMI_SIZE", nullptr},
      mv2{"MV2_COMM_WORLD_SIZE", nullptr}, pmix{"PMIX_RANK", nullptr}, rank{"PMI_RANK", nullptr},
      tasks{"SLURM_STEP_NUM_TASKS", nullptr};
};

struct Ended {
  int code = -1;
  std::string err;  ///< what was written to stderr
};

/// Runs f(argc, argv). @return its exit code and its output on stderr
template <class Main>
Ended capture(std::vector<std::string> arguments, Main f) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  Ended ended;
  std::fflush(stderr);
  std::FILE* file = std::tmpfile();
  const int saved = dup(2);
  dup2(fileno(file), 2);
  ended.code = f(int(arguments.size()), argv.data());
  std::fflush(stderr);
  dup2(saved, 2);
  close(saved);
  std::rewind(file);
  for (int c; (c = std::fgetc(file)) != EOF;) ended.err += char(c);
  std::fclose(file);
  return ended;
}

template <class F>
Ended run_with(std::vector<std::string> arguments, F f) {
  return capture(std::move(arguments), [&](int argc, char** argv) { return run(argc, argv, f); });
}

/// The number of ranks of a program with these arguments.
int ranks_with(std::vector<std::string> arguments) {
  std::atomic<int> size{0};
  const Ended ended = run_with(std::move(arguments), [&](World& world) { size = world.size(); });
  CHECK(ended.code == 0);
  CHECK(ended.err == "");
  return size;
}

void nothing(World&) {}

}  // namespace

TEST_CASE("the number of ranks comes from --ranks, else CLEAVE_RANKS, else the cores") {
  const NotLaunched alone;
  const Setting unset("CLEAVE_RANKS", nullptr);
  CHECK(ranks_with({"--ranks", "3"}) == 3);
  CHECK(ranks_with({"--k", "10", "--ranks=5", "--mesh", "5x1"}) == 5);
  CHECK(ranks_with({}) == detail::available_cores());
  const Setting four("CLEAVE_RANKS", "4");
  CHECK(ranks_with({}) == 4);
  CHECK(ranks_with({"--ranks", "2"}) == 2);
}

TEST_CASE("an invalid number of ranks is reported in one line, with exit code 2") {
  const NotLaunched alone;
  const Setting unset("CLEAVE_RANKS", nullptr);
  const std::string use = "'; use an integer from 1 to 4096\n";
  for (const std::string value : {"x", "0", "-2", "3.5", "", "4097", "99999999999999999999"}) {
    Ended ended = run_with({"--ranks", value}, nothing);
    CHECK(ended.code == 2);
    CHECK(ended.err == "run: --ranks is '" + value + use);
    ended = run_with({"--ranks=" + value}, nothing);
    CHECK(ended.code == 2);
    CHECK(ended.err == "run: --ranks is '" + value + use);
  }
  CHECK(run_with({"--ranks"}, nothing).err == "run: --ranks requires a value\n");
  CHECK(run_with({"--ranks"}, nothing).code == 2);
  const Setting bad("CLEAVE_RANKS", "many");
  CHECK(run_with({}, nothing).err == "run: CLEAVE_RANKS is 'many" + use);
}

TEST_CASE("invalid settings in the environment are reported in one line, with exit code 2") {
  const NotLaunched alone;
  {
    const Setting bad("CLEAVE_CHECK", "everything");
    const Ended ended = run_with({"--ranks", "2"}, nothing);
    CHECK(ended.code == 2);
    CHECK(ended.err == "run: CLEAVE_CHECK is 'everything'; use off, local or collective\n");
  }
  const Setting bad("CLEAVE_TIMEOUT", "-1");
  CHECK(run_with({"--ranks", "2"}, nothing).err ==
        "run: CLEAVE_TIMEOUT is '-1'; use seconds > 0\n");
}

TEST_CASE("the exit code is the first nonzero value that f returns") {
  const NotLaunched alone;
  CHECK(run_with({"--ranks", "3"}, [](World&) { return 0; }).code == 0);
  CHECK(run_with({"--ranks", "3"}, [](World& world) { return world.rank() * 7; }).code == 7);
  CHECK(run_with({"--ranks", "1"}, [](World&) { return 5; }).code == 5);
}

TEST_CASE("a rank that throws is reported with its error, once, and the exit code is 1") {
  const NotLaunched alone;
  for (int i = 0; i < 20; ++i) {
    const Ended ended = run_with({"--ranks", "4"}, [](World& world) {
      if (world.rank() == 2) throw Error("load_npy", "no such file");
      world.barrier();
    });
    CHECK(ended.code == 1);
    CHECK(ended.err == "rank 2: load_npy: no such file\n");
  }
  const Ended ended = run_with({"--ranks", "2"}, [](World& world) {
    if (world.rank() == 0) throw "text";
    world.barrier();
  });
  CHECK(ended.code == 1);
  CHECK(ended.err == "rank 0: an exception that is not a std::exception\n");
}

TEST_CASE("a rank that leaves early is reported, and nothing hangs") {
  const NotLaunched alone;
  const Ended ended = run_with({"--ranks", "2"}, [](World& world) {
    if (world.rank() == 1) return;
    world.barrier();
  });
  CHECK(ended.code == 1);
  CHECK(ended.err ==
        "rank 0: barrier: rank 1 left while rank 0 waits in barrier of group 'world' [rank 0]\n");
}

TEST_CASE("without MPI, a program that mpirun started several times reports that") {
  const auto launched = [] {
    return capture({"--ranks", "1"}, [](int argc, char** argv) {
      return detail::run_threads_and_report(argc, argv, detail::RankFunction(nothing));
    });
  };
  const std::string complaint =
      "run: an MPI launcher started this program, which was compiled without MPI "
      "(CLEAVE_HAS_MPI=1; where nvcc compiles main, another file has to include "
      "cleave/comm/mpi_for_cuda.hpp); start it directly, with --ranks N for N threads\n";
  const NotLaunched alone;
  CHECK(launched().code == 0);
  {
    const Setting size("OMPI_COMM_WORLD_SIZE", "2");
    CHECK(detail::launched_processes() == 2);
    CHECK(launched().code == 2);
    CHECK(launched().err == complaint);
  }
  {
    const Setting size("PMI_SIZE", "1");
    CHECK(detail::launched_processes() == 1);
    CHECK(launched().code == 0);
  }
  const Setting rank("PMIX_RANK", "0");
  CHECK(detail::launched_processes() == -1);
  CHECK(launched().err == complaint);
  const Setting tasks("SLURM_STEP_NUM_TASKS", "16");
  CHECK(detail::launched_processes() == 16);
}

TEST_CASE("run_threads uses the calling thread as rank 0, and refuses less than one rank") {
  const std::thread::id caller = std::this_thread::get_id();
  run_threads(3, [&](World& world) {
    CHECK((std::this_thread::get_id() == caller) == (world.rank() == 0));
    CHECK(std::string(world.communicator().backend()) == "thread");
  });
  CHECK_THROWS_WITH_AS(run_threads(0, nothing), "run_threads: 0 ranks; there must be at least 1",
                       Error);
}

TEST_CASE("a World needs a communicator") {
  CHECK_THROWS_WITH_AS(World(nullptr), "World: the communicator is null", Error);
}

TEST_CASE("a world measures the cost of communication on request, the same for all ranks") {
  const auto agree = [](World& world) {
    const MachineCosts& costs = world.communicator().state().machine;
    const double mine[] = {costs.inside.latency_us, costs.inside.bytes_per_us,
                           costs.between.latency_us, costs.between.bytes_per_us,
                           double(costs.ranks_per_node)};
    const Tensor<double, 1> sent({5}), received({5 * world.size()});
    for (index_t i = 0; i < 5; ++i) sent(i) = mine[i];
    std::vector<Box> pieces;
    for (index_t r = 0; r < world.size(); ++r)
      pieces.push_back({Shape::filled(1, 5 * r), Shape::filled(1, 5 * r + 5)});
    Collective c;
    c.kind = CollectiveKind::all_gather;
    c.source = sent.view();
    c.destination = received.view();
    c.pieces = pieces;
    world.communicator().run(c);
    for (index_t i = 0; i < 5 * world.size(); ++i) CHECK(received(i) == mine[i % 5]);
    return costs;
  };
  {
    const Setting asked("CLEAVE_TUNE", "measure");
    cleave::testing::on_ranks({1, 2, 3, 4}, [&](World& world) {
      const MachineCosts costs = agree(world);
      const bool one_node = costs.ranks_per_node == 0;
      CHECK(costs.between.known() != one_node);
      const LinkCosts& link = one_node ? costs.inside : costs.between;
      CHECK(link.known() == (world.size() > 1));
      CHECK((link.latency_us > 0) == (world.size() > 1));
      if (std::string(world.communicator().backend()) == "thread") CHECK(one_node);
    });
  }
  const Setting not_asked("CLEAVE_TUNE", nullptr);
  cleave::testing::on_ranks(
      {2}, [&](World& world) { CHECK(!world.communicator().state().machine.inside.known()); });
}

TEST_CASE("ranks that are threads have one BLAS thread each, then the user's number is back") {
  const Setting openblas("OPENBLAS_NUM_THREADS", nullptr), openmp("OMP_NUM_THREADS", nullptr);
  using namespace cleave::kernels;
  const Tensor<double, 2> a({40, 40}), b({40, 40}), c({40, 40});  // keeps the BLAS linked
  a.fill_(1), b.fill_(1);
  gemm(On<Host>{}, as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)));
  CHECK(c(39, 39) == 40);
  if (&openblas_get_num_threads == nullptr) return cleave::testing::skip("there is no OpenBLAS");
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(2);
  const int users = openblas_get_num_threads();
  int inside = 0, nested = 0, after_nested = 0;
  run_threads(2, [&](World& world) {
    if (world.rank() != 0) return;
    inside = openblas_get_num_threads();
    run_threads(1, [&](World&) { nested = openblas_get_num_threads(); });
    after_nested = openblas_get_num_threads();
  });
  CHECK(inside == 1);
  CHECK(nested == 1);
  CHECK(after_nested == 1);
  CHECK(openblas_get_num_threads() == users);
  {
    const Setting asked("OPENBLAS_NUM_THREADS", "2");
    run_threads(1, [&](World&) { inside = openblas_get_num_threads(); });
    CHECK(inside == users);
  }
  openblas_set_num_threads(before);
}
