// What a communicator's call, or its calls of one group, become on streams.
#pragma once

#include <memory>
#include <vector>

#include "communicator.hpp"

namespace nccl_stand_in {

/// Enqueues the calls as one operation. It begins when all that is before it in the streams of all
/// the calls has run; what is enqueued to any of these streams afterwards runs when it has ended.
ncclResult_t launch(Lock& lock, const std::shared_ptr<ncclComm>& comm,
                    std::vector<TransferCall> calls);

}  // namespace nccl_stand_in
