// What a communicator's call, or its calls of one group, become on streams.
#pragma once

#include <memory>
#include <vector>

#include "communicator.hpp"

namespace nccl_stand_in {

/// Enqueues the calls, which have one stream, as one operation.
void launch(const std::shared_ptr<ncclComm>& comm, const std::vector<TransferCall>& calls);

}  // namespace nccl_stand_in
