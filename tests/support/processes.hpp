// The processes that a test executable was started as: one, or those of an mpirun.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include <cleave/comm/communicator.hpp>

namespace cleave::testing {

/// MPI from the first call of `get` to the end of the program, where mpirun has started it.
class Processes {
 public:
  static Processes& get();
  ~Processes();
  Processes(const Processes&) = delete;  // there is one MPI
  Processes& operator=(const Processes&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Started by mpirun, be it as a single process.
  bool launched() const { return launched_; }

  /// A communicator of the first `n` processes; null in the others.
  /// @collective all processes
  std::shared_ptr<Communicator> group_of_first(int n) const;

  /// Replaces every entry by its sum over all processes.
  void sum(std::vector<std::array<int, 3>>& table) const;

  /// Waits for all processes; ends the whole launch with a message when one does not come within
  /// `seconds`.
  void meet(double seconds) const;

 private:
  Processes();
  int rank_ = 0;
  int size_ = 1;
  bool launched_ = false;
};

}  // namespace cleave::testing
