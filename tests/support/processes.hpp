// The processes of a test executable: one, or those started by mpirun.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/schedule/topology.hpp>

namespace cleave::testing {

/// Under mpirun, initialises MPI in the first call of `get` and finalises it when the program ends.
class Processes {
 public:
  static Processes& get();
  ~Processes();
  Processes(const Processes&) = delete;  // MPI is initialised once per process
  Processes& operator=(const Processes&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Whether mpirun started this program, even as a single process.
  bool launched() const { return launched_; }

  /// Of the communicators that are made from here on.
  detail::ScheduleLimits limits{};

  /// A communicator of the first `n` processes; null in the other processes.
  /// @collective all processes
  std::shared_ptr<Communicator> group_of_first(int n) const;

  /// Replaces every entry by its sum over all processes.
  void sum(std::vector<std::array<int, 3>>& table) const;

  /// A barrier of all processes. Ends the whole launch with a message if a process does not arrive
  /// within `seconds`.
  void meet(double seconds) const;

 private:
  Processes();
  int rank_ = 0;
  int size_ = 1;
  bool launched_ = false;
};

}  // namespace cleave::testing
