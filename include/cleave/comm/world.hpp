// All ranks of a program, as seen by one of them.
#pragma once

#include <memory>
#include <utility>

#include <cleave/comm/communicator.hpp>
#include <cleave/core/call_site.hpp>

namespace cleave {

/// The argument of the user's function in `run`: this rank's place among all ranks, and the
/// communicator from which meshes are made. A handle; copies share the communicator.
class World {
 public:
  /// @throws Error for a null communicator
  explicit World(std::shared_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)) {
    if (communicator_ == nullptr) throw Error("World", "the communicator is null");
  }

  int rank() const noexcept { return communicator_->rank(); }
  int size() const noexcept { return communicator_->size(); }

  Communicator& communicator() const noexcept { return *communicator_; }
  const std::shared_ptr<Communicator>& shared_communicator() const noexcept {
    return communicator_;
  }

  /// A barrier: returns when all ranks have called it.
  ///
  /// @collective every rank of the world
  /// @throws Error if a rank has failed or left, or does not arrive within the time-out
  void barrier(CallSite where = CallSite::here()) const {
    Collective collective;
    collective.operation = "barrier";
    collective.site = where;
    communicator_->run(collective);
  }

 private:
  std::shared_ptr<Communicator> communicator_;
};

}  // namespace cleave
