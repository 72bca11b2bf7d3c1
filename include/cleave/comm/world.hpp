// All ranks of a program, as one of them sees them.
#pragma once

#include <memory>
#include <utility>

#include <cleave/comm/communicator.hpp>

namespace cleave {

/// What `run` hands to the user's function: this rank's place among all ranks, and the
/// communicator that meshes are made of. A handle; copies share the communicator.
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

  /// Returns when all ranks have come here.
  ///
  /// @collective every rank of the world
  /// @throws Error if a rank has failed or left, or does not come within the time-out
  void barrier() const {
    Collective collective;
    collective.operation = "barrier";
    communicator_->run(collective);
  }

 private:
  std::shared_ptr<Communicator> communicator_;
};

}  // namespace cleave
