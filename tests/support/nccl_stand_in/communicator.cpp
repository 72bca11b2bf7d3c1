#include "communicator.hpp"

#include <algorithm>
#include <utility>

#include "entry.hpp"

void ncclComm::add_pending(nccl_stand_in::Point end,
                           std::shared_ptr<nccl_stand_in::Shipment> shipment) {
  std::erase_if(pending,
                [](const Pending& one) { return nccl_stand_in::Machine::reached(one.end); });
  pending.push_back({end, std::move(shipment)});
}

const ncclComm::Pending* ncclComm::under_way() const {
  for (const Pending& one : pending)
    if (!nccl_stand_in::Machine::reached(one.end)) return &one;
  return nullptr;
}

bool ncclComm::registered(nccl_stand_in::Range range) const {
  for (const auto& [handle, known] : registrations)
    if (range.begin >= known.begin && range.end() <= known.end()) return true;
  return false;
}

void ncclComm::retire() {
  alive = false;
  job = nullptr;
  pending.clear();
  if (clique == nullptr) return;
  for (ncclComm*& member : clique->members)
    if (member == this) member = nullptr;
}

namespace nccl_stand_in {

Library& Library::get() {
  static auto* library = new Library;  // outlives the destructors of static objects that use it
  return *library;
}

std::shared_ptr<ncclComm> Library::create() {
  auto comm = std::make_shared<ncclComm>();
  comms_[comm.get()] = comm;
  return comm;
}

std::shared_ptr<ncclComm> Library::find(ncclComm_t handle) const {
  const auto found = comms_.find(handle);
  return found != comms_.end() && found->second->alive ? found->second : nullptr;
}

bool Library::ending(ncclComm_t handle) const {
  const auto found = comms_.find(handle);
  return found != comms_.end() && !found->second->alive && !found->second->freed;
}

std::vector<std::shared_ptr<ncclComm>> Library::on_device(int device) const {
  std::vector<std::shared_ptr<ncclComm>> found;
  for (const auto& [handle, comm] : comms_)
    if (comm->alive && comm->device == device) found.push_back(comm);
  return found;
}

int Library::live() const {
  return int(std::count_if(comms_.begin(), comms_.end(),
                           [](const auto& entry) { return entry.second->alive; }));
}

bool Library::registered(const void* address) const {
  for (const auto& [handle, comm] : comms_)
    for (const auto& [registration, range] : comm->registrations)
      if (comm->alive && range.begin == address) return true;
  return false;
}

void Library::clear() {
  for (auto& [handle, comm] : comms_) comm->retire();
  comms_.clear();
  cliques.clear();
  memory.clear();
  planted_calls.clear();
  planted_operations.clear();
  held.clear();
  connect_on_use = false;
  version = NCCL_VERSION_CODE;
  worlds = 0;
  last_error_ = "";
}

ncclResult_t Library::refuse(ncclResult_t result, const std::string& text) {
  last_error_ = texts_.insert(text).first->c_str();
  return result;
}

void Library::fault(const std::string& text) {
  refuse(ncclSuccess, text);
  Machine::get().report("nccl: " + text + '\n');
}

bool Library::ready(const Job& job) {
  return (held.empty() || held != job.function) && job.ready();
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
  bool late = false;
  while (comm.alive && !ready(job) && !late)
    late = changed_.wait_until(lock, deadline) != std::cv_status::no_timeout;
  --comm.inside;
  notify();
  if (!comm.alive) return refuse(ncclInternalError, "the communicator has been aborted");
  if (!late) return job.finish();
  fault("a call timed out waiting for other ranks");
  return ncclSystemError;
}

ncclResult_t Library::poll(ncclComm& comm) {
  const std::shared_ptr<Job> job = comm.job;
  if (comm.async_error != ncclSuccess || job == nullptr) return comm.async_error;
  if (!ready(*job)) return ncclInProgress;
  comm.job = nullptr;
  if (const ncclResult_t result = job->finish(); result != ncclSuccess) comm.fail(result);
  return comm.async_error;
}

ncclResult_t Library::planted_call(std::string_view function, int device) {
  ncclResult_t result = ncclSuccess;
  for (PlantedCall& planted : planted_calls)
    if (planted.function == function && (planted.device < 0 || planted.device == device) &&
        --planted.calls_left == 0)
      result = planted.result;
  planted_calls.remove_if([](const PlantedCall& planted) { return planted.calls_left == 0; });
  return result;
}

ncclResult_t Library::planted_operation(const ncclComm& comm) {
  ncclResult_t result = ncclSuccess;
  for (PlantedOperation& planted : planted_operations)
    if (planted.rank == comm.rank && --planted.operations_left == 0) result = planted.result;
  planted_operations.remove_if(
      [](const PlantedOperation& planted) { return planted.operations_left == 0; });
  return result;
}

}  // namespace nccl_stand_in
