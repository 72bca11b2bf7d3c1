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
  const ncclResult_t failed = std::exchange(error, ncclSuccess);
  const auto transfers = std::exchange(calls, {});
  const auto others = std::exchange(jobs, {});
  for (const auto& comm : std::exchange(aborted, {})) reclaim(context, *comm);
  if (failed != ncclSuccess) return failed;

  struct Launch {
    std::shared_ptr<ncclComm> comm;
    std::vector<TransferCall> calls;
  };
  std::vector<Launch> launches;
  Job job;
  for (const auto& [comm, call] : transfers) {
    auto launch = std::find_if(launches.begin(), launches.end(),
                               [&one = comm](const Launch& l) { return l.comm == one; });
    if (launch == launches.end()) launch = launches.insert(launch, {comm, {}});
    launch->calls.push_back(call);
    if (!call.to_one() && !comm->connected) {
      comm->connected = true;
      ++comm->clique->connected;
    }
  }
  context.library.notify();
  for (const Launch& launch : launches) job.comms.push_back(launch.comm);
  for (const Job& other : others)
    job.comms.insert(job.comms.end(), other.comms.begin(), other.comms.end());
  if (job.comms.empty()) return ncclSuccess;

  job.ready = [launches, others](Lock& lock) {
    const bool connect = Library::get().connect_on_use;
    return std::all_of(others.begin(), others.end(), [&](const Job& j) { return j.ready(lock); }) &&
           std::all_of(launches.begin(), launches.end(), [&](const Launch& launch) {
             const Clique& clique = *launch.comm->clique;
             return !connect || !launch.comm->connected || clique.connected == clique.size;
           });
  };
  job.function = context.function;
  job.finish = [launches, others](Lock& lock) {
    ncclResult_t result = ncclSuccess;
    const auto note = [&](ncclResult_t one) {
      if (result == ncclSuccess) result = one;
    };
    for (const Job& other : others) note(other.finish(lock));
    for (const Launch& one : launches)
      if (one.comm->alive) note(launch(lock, one.comm, one.calls));
    return result;
  };
  return context.library.begin(context.lock, std::move(job));
}

ncclResult_t submit(const Context& context, Job job) {
  Group& group = Group::get();
  if (group.depth == 0) return context.library.begin(context.lock, std::move(job));
  group.jobs.push_back(std::move(job));
  return ncclSuccess;
}

std::string label(ncclComm_t handle) {
  const auto comm = Library::get().find(handle);
  return comm == nullptr || comm->clique == nullptr ? "no communicator" : comm->name();
}

std::string group_label() {
  const int depth = Group::get().depth;
  return depth == 0 ? "" : ", group depth " + std::to_string(depth);
}

}  // namespace nccl_stand_in
