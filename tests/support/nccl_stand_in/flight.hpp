// The stream operations of a communicator's call, or of its calls in one group.
#pragma once

#include <memory>
#include <vector>

#include "communicator.hpp"

namespace nccl_stand_in {

/// Enqueues the calls, which have the same stream, as one operation.
void launch(const std::shared_ptr<ncclComm>& comm, const std::vector<TransferCall>& calls);

}  // namespace nccl_stand_in
