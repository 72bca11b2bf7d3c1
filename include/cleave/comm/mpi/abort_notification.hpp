// The failure detector of an MPI world, for threads that communicate by other means than MPI.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/mpi/failure_detector.hpp>
#include <cleave/comm/mpi/handle.hpp>

namespace cleave::detail {

class MpiAbortNotification final : public AbortNotification {
 public:
  explicit MpiAbortNotification(std::shared_ptr<MpiFailureDetector> detector)
      : detector_(std::move(detector)) {}

  void raise(int, const char* cause) noexcept override { detector_->announce(cause); }
  std::string heard() noexcept override {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    if (provided != MPI_THREAD_MULTIPLE) return {};
    try {
      detector_->listen();
      return detector_->cause();
    } catch (const std::exception&) {  // MPI itself fails: the next MPI call reports it
      return {};
    }
  }

 private:
  std::shared_ptr<MpiFailureDetector> detector_;
};

}  // namespace cleave::detail
