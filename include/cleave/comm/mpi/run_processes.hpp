// The program as one process per rank: starts MPI, calls the user's function, and ends all ranks
// together.
//
// A rank exits when all ranks have finished. After a failure processes exit without MPI_Finalize,
// which would wait for messages that never arrive; the non-zero exit code makes mpirun kill those
// that are stuck elsewhere.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi/mpi_communicator.hpp>
#include <cleave/comm/world.hpp>

namespace cleave::inline v0::detail {

/// How long a rank that has failed, or knows of a failure, waits for the others to finish.
inline constexpr double shutdown_seconds = 5;

/// MPI for the lifetime of a program, with MPI_THREAD_MULTIPLE if available (for asynchronous
/// work). If the user has initialised MPI, the user finalises it, too.
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv)
      : environment_(std::make_unique<boost::mpi::environment>(
            argc, argv, boost::mpi::threading::multiple, false)) {}

  /// Does not finalise MPI.
  void abandon() noexcept {
    [[maybe_unused]] static const boost::mpi::environment* left = environment_.release();
  }

 private:
  std::unique_ptr<boost::mpi::environment> environment_;
};

/// While the user's function runs: a rank that calls `exit` tells the others, which would otherwise
/// wait for it, and gives them time to hear of it.
class ExitNotice {
 public:
  explicit ExitNotice(MpiFailureDetector& detector) {
    [[maybe_unused]] static const int registered = std::atexit(tell);
    running() = &detector;
  }
  ExitNotice(const ExitNotice&) = delete;  // a process runs one function
  ExitNotice& operator=(const ExitNotice&) = delete;
  ~ExitNotice() { running() = nullptr; }

 private:
  static MpiFailureDetector*& running() noexcept {
    static MpiFailureDetector* detector = nullptr;
    return detector;
  }

  static void tell() {
    MpiFailureDetector* detector = std::exchange(running(), nullptr);
    if (detector == nullptr || !mpi_is_running()) return;
    detector->announce("it has called exit");
    if (detector->ends_job()) end_job(detector->rank(), "it has called exit");
    detector->shut_down(shutdown_seconds);
  }
};

/// Calls f(World&) on every rank of MPI_COMM_WORLD.
///
/// @return the result of f (0 for void); not 0 if f fails on any rank, which reports its error on
///         stderr; 2 if there is no world, e.g. for invalid settings in the environment
/// @collective every process; returns when all have finished
template <class F>
int run_mpi(int argc, char** argv, F& f) {
  MpiSession session(argc, argv);
  std::shared_ptr<MpiCommunicator> communicator;
  std::string error;
  int code = 0;
  try {
    communicator = MpiCommunicator::world(MPI_COMM_WORLD);
    World world(communicator);
    const ExitNotice notice(*communicator->detector());
    if constexpr (std::is_void_v<std::invoke_result_t<F&, World&>>) f(world);
    else code = f(world);
  } catch (...) {
    error = to_string(std::current_exception());
  }
  const auto detector = communicator == nullptr ? nullptr : communicator->detector();
  if (!error.empty() && (detector == nullptr || detector->heard().empty())) {
    int rank = 0;
    if (mpi_is_running()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (detector != nullptr && detector->ends_job()) {
      detector->announce(error);  // others that ask wait for the end
      end_job(rank, error);
    }
    std::fprintf(stderr, "rank %d: %s\n", rank, error.c_str());
  }
  if (detector != nullptr) {
    if (!error.empty()) detector->announce(error);
    if (detector->shut_down(shutdown_seconds)) return code;
    keep_until_exit(detector);
  }
  session.abandon();
  if (communicator == nullptr) return 2;
  return code != 0 ? code : 1;
}

}  // namespace cleave::inline v0::detail
