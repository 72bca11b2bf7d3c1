#include "entry.hpp"

#include <algorithm>
#include <utility>

namespace nccl_stand_in {

std::shared_ptr<ncclComm> Context::find(ncclComm_t handle) const {
  if (handle == nullptr) refuse(ncclInvalidArgument, "the communicator is null");
  std::shared_ptr<ncclComm> comm = library.find(handle);
  if (comm == nullptr) fault(ncclInvalidArgument, "the communicator has gone, or never was");
  return comm;
}

std::shared_ptr<ncclComm> Context::find_ready(ncclComm_t handle) const {
  std::shared_ptr<ncclComm> comm = find(handle);
  if (comm->async_error != ncclSuccess) throw Refusal{comm->async_error};
  if (comm->job != nullptr)
    refuse(ncclInvalidArgument,
           "the previous call on this communicator has not returned ncclSuccess");
  if (comm->finalized) fault(ncclInvalidUsage, "the communicator has been finalized");
  return comm;
}

void Context::refuse(ncclResult_t result, const std::string& text) const {
  library.set_last_error(std::string(function) + ": " + text);
  throw Refusal{result};
}

Group& Group::get() {
  thread_local Group group;
  return group;
}

ncclResult_t Group::end(const Context& context) {
  const Group ended = std::exchange(*this, {});
  for (const auto& one : ended.aborted) reclaim(context, *one);
  if (ended.error != ncclSuccess || ended.calls.empty()) return ended.error;
  ncclComm& of = *ended.comm;
  const bool connects = !std::ranges::all_of(ended.calls, &TransferCall::to_one);
  if (connects && !std::exchange(of.connected, true)) ++of.clique->connected;
  context.library.notify();
  const auto ready = [&of] {
    return !Library::get().connect_on_use || !of.connected || of.clique->connected == of.size();
  };
  const auto finish = [ended] {
    launch(ended.comm, ended.calls);
    return ncclSuccess;
  };
  return context.library.begin(context.lock, {ended.comm, ready, finish, context.function});
}

}  // namespace nccl_stand_in
