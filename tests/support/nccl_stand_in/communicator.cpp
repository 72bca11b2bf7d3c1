#include "communicator.hpp"

#include <algorithm>
#include <chrono>

#include "entry.hpp"

bool ncclComm::at_work() const { return !std::ranges::all_of(pending, &Pending::ended); }

void ncclComm::retire() {
  alive = false;
  job = nullptr;
  pending.clear();
  if (clique != nullptr) std::ranges::replace(clique->members, this, nullptr);
}

namespace nccl_stand_in {
namespace {

bool is_ready(const Job& job) { return !cuda_stand_in::is_held(job.function) && job.ready(); }

}  // namespace

Library& Library::get() {
  static auto* library = new Library;  // outlives the destructors of static objects that use it
  return *library;
}

std::shared_ptr<ncclComm> Library::create(int device, bool blocking) {
  auto comm = std::make_shared<ncclComm>();
  comm->device = device;
  comm->blocking = blocking;
  return communicators[comm.get()] = comm;
}

std::shared_ptr<ncclComm> Library::find(ncclComm_t handle) const {
  const auto found = communicators.find(handle);
  return found != communicators.end() && found->second->alive ? found->second : nullptr;
}

void Library::clear() {
  for (auto& [handle, comm] : communicators) comm->retire();
  communicators.clear();
  cliques.clear();
  connect_on_use = false;
  version = NCCL_VERSION_CODE;
  worlds = 0;
  last_error_ = "";
}

void Library::fault(const std::string& text) {
  set_last_error(text);
  Machine::get().report("nccl: " + text + '\n');
}

ncclResult_t Library::begin(Lock& lock, const Job& job) {
  if (Group::get().begun) {
    fault("a communicator is made within a group");
    return ncclInvalidUsage;
  }
  ncclComm& comm = *job.comm;
  if (!comm.blocking) {
    comm.job = std::make_shared<Job>(job);
    return ncclInProgress;
  }
  const auto deadline = std::chrono::steady_clock::now() + Machine::get().settings.timeout;
  ++comm.inside;
  const bool in_time =
      changed_.wait_until(lock, deadline, [&] { return !comm.alive || is_ready(job); });
  --comm.inside;
  notify();
  if (comm.alive && in_time) return job.finish();
  if (comm.alive) fault("a call timed out waiting for other ranks");
  else set_last_error("the communicator has been aborted");
  return comm.alive ? ncclSystemError : ncclInternalError;
}

ncclResult_t Library::poll(ncclComm& comm) {
  const std::shared_ptr<Job> job = comm.job;
  if (comm.async_error != ncclSuccess || job == nullptr) return comm.async_error;
  if (!is_ready(*job)) return ncclInProgress;
  comm.job = nullptr;
  if (const ncclResult_t result = job->finish(); result != ncclSuccess) comm.fail(result);
  return comm.async_error;
}

}  // namespace nccl_stand_in
