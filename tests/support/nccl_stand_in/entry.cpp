#include "entry.hpp"

#include <algorithm>

#include "flight.hpp"

namespace nccl_stand_in {

ncclResult_t Context::find(ncclComm_t handle, std::shared_ptr<ncclComm>& comm) const {
  if (handle == nullptr) return refuse(ncclInvalidArgument, "the communicator is null");
  comm = library.find(handle);
  if (comm == nullptr) return fault(ncclInvalidArgument, "the communicator has gone, or never was");
  return ncclSuccess;
}

ncclResult_t Context::find_ready(ncclComm_t handle, std::shared_ptr<ncclComm>& comm) const {
  if (const ncclResult_t result = find(handle, comm); result != ncclSuccess) return result;
  if (comm->async_error != ncclSuccess) return comm->async_error;
  if (comm->job != nullptr)
    return refuse(ncclInvalidArgument,
                  "the previous call on this communicator has not returned ncclSuccess");
  if (comm->finalized) return fault(ncclInvalidUsage, "the communicator has been finalized");
  return ncclSuccess;
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
  const bool connects = std::any_of(ended.calls.begin(), ended.calls.end(),
                                    [](const TransferCall& call) { return !call.to_one(); });
  if (connects && !std::exchange(of.connected, true)) ++of.clique->connected;
  context.library.notify();
  return context.library.begin(context.lock, {.comm = ended.comm,
                                              .ready =
                                                  [&of] {
                                                    return !Library::get().connect_on_use ||
                                                           !of.connected ||
                                                           of.clique->connected == of.clique->size;
                                                  },
                                              .finish =
                                                  [ended] {
                                                    launch(ended.comm, ended.calls);
                                                    return ncclSuccess;
                                                  },
                                              .function = context.function});
}

std::string label(ncclComm_t handle) {
  const auto comm = Library::get().find(handle);
  return comm == nullptr || comm->clique == nullptr ? "no communicator" : comm->name();
}

std::string group_label() { return Group::get().begun ? ", in a group" : ""; }

}  // namespace nccl_stand_in
