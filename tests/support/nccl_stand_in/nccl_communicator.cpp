// Entry points of NCCL: communicators, from creation to destruction.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "entry.hpp"

using namespace nccl_stand_in;

namespace {

ncclResult_t init(const char* function, ncclComm_t* result, int size, const ncclUniqueId& id,
                  int rank, bool blocking) {
  const std::string text = "rank " + std::to_string(rank) + " of " + std::to_string(size);
  return entry(function, {.detail = text}, [&](const Context& context) {
    *result = nullptr;
    Library& library = context.library;
    const auto found = library.cliques.find(std::string(id.internal, sizeof id.internal));
    if (found == library.cliques.end())
      context.fault(ncclInvalidArgument, "the unique id is unknown, or has been used");
    const std::shared_ptr<Clique> clique = found->second;
    if (rank < 0 || rank >= size) context.fault(ncclInvalidArgument, text);
    if (clique->size == 0) {
      clique->name = "world" + (library.worlds++ == 0 ? "" : std::to_string(library.worlds));
      clique->size = size;
      clique->members.resize(std::size_t(size));
    }
    if (clique->size != size || clique->members[std::size_t(rank)] != nullptr)
      context.fault(ncclInvalidArgument,
                    text + " joins again, or not all ranks say " + std::to_string(size));
    const auto comm = library.create(cuda_stand_in::ThreadState::get().device, blocking);
    comm->clique = clique;
    comm->rank = rank;
    for (const ncclComm* other : clique->members)
      if (other != nullptr && other->device == comm->device)
        clique->refusal = "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " +
                          std::to_string(other->rank) + " both on CUDA device " +
                          std::to_string(comm->device);
    *result = clique->members[std::size_t(rank)] = comm.get();
    if (++clique->joined == size) library.cliques.erase(found);
    library.notify();
    const auto ready = [clique] { return clique->joined == clique->size; };
    // if initialisation fails, the communicator exists and can be aborted
    const auto finish = [clique] {
      if (clique->refusal.empty()) return ncclSuccess;
      Library::get().set_last_error(clique->refusal);
      return ncclInvalidUsage;
    };
    return library.begin(context.lock, {comm, ready, finish, function});
  });
}

// When all ranks of the parent have called its k-th split: makes the children's cliques.
void divide(Clique& parent, std::uint64_t k) {
  std::map<int, std::shared_ptr<Clique>> cliques;
  for (const auto& [place, child] : parent.splits[k]) {
    std::shared_ptr<Clique>& clique = cliques[std::get<0>(place)];
    if (clique == nullptr) clique = std::make_shared<Clique>();
    clique->name = parent.name + "/split" + std::to_string(k);
    clique->members.push_back(child);
    child->clique = clique;
    child->rank = clique->size++;
  }
}

// Waits for enqueued operations, as the real one does; a hang is a fault.
void flush(const Context& context, ncclComm& comm) {
  const auto pending = comm.pending;
  const cudaError_t& failure = context.machine.device(comm.device).failure;
  for (const ncclComm::Pending& one : pending) {
    const cudaError_t before = failure;
    context.machine.wait(context.lock, one.end);
    if (before == cudaSuccess && failure == cudaErrorLaunchTimeout)
      context.report("waits for ever: what is enqueued on " + comm.name() + " does not end");
  }
}

/// NCCL sets the communicator's device and then that of the calling thread again, which makes a
/// context there.
void check_device(const Context& context, const ncclComm& comm) {
  const int device = cuda_stand_in::ThreadState::get().device;
  if (device != comm.device)
    context.report("called with device " + std::to_string(device) + ", but " + comm.name() +
                   " is on device " + std::to_string(comm.device));
}

// Waits until no graph contains calls on the communicator; a hang is a fault.
void wait_for_graphs(const Context& context, const ncclComm& comm) {
  const auto deadline = std::chrono::steady_clock::now() + context.machine.settings.timeout;
  while (comm.in_a_graph()) {
    if (std::chrono::steady_clock::now() > deadline) {
      context.report("waits for ever: a graph has calls on " + comm.name());
      return;
    }
    context.lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    context.lock.lock();
  }
}

}  // namespace

void nccl_stand_in::reclaim(const Context& context, ncclComm& comm) {
  comm.freed = true;
  if (comm.inside > 0)
    context.report("frees " + comm.name() + ", and a thread is inside of a call on it");
  const auto communicators = context.library.communicators;
  for (const auto& [handle, other] : communicators)
    if (other->alive && other->device == comm.device) flush(context, *other);
  wait_for_graphs(context, comm);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return entry("ncclGetUniqueId", {}, [&](const Context& context) {
    *id = {};
    const std::string text = "stand-in " + std::to_string(++context.library.serials);
    std::memcpy(id->internal, text.data(), text.size());
    context.library.cliques[std::string(id->internal, sizeof id->internal)] =
        std::make_shared<Clique>();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return init("ncclCommInitRankConfig", comm, size, id, rank, config->blocking != 0);
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return init("ncclCommInitRank", comm, size, id, rank, true);
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* result,
                           ncclConfig_t* config) {
  const std::string text =
      "color " + std::to_string(color) + " key " + std::to_string(key) + " of " + name_of(handle);
  return entry("ncclCommSplit", {.detail = text}, [&](const Context& context) {
    const auto parent = context.find_ready(handle);
    *result = nullptr;
    if (color < 0 || config != nullptr)
      context.refuse(ncclInvalidArgument, "no color, or a configuration");
    if (parent->at_work())
      context.report("what is enqueued on " + parent->name() + " has not ended");
    const std::shared_ptr<Clique> clique = parent->clique;
    const std::uint64_t k = ++parent->splits;
    const auto child = context.library.create(parent->device, parent->blocking);
    clique->splits[k][{color, key, parent->rank}] = child.get();
    const auto ready = [clique, k] { return int(clique->splits[k].size()) == clique->size; };
    if (ready()) divide(*clique, k);
    context.library.notify();
    // The child is returned when the parent is ready again, although the call returns success
    // before that. A child that could not be initialised is returned too, to be aborted.
    const auto finish = [child, result] {
      *result = child.get();
      return ncclSuccess;
    };
    const ncclResult_t made =
        context.library.begin(context.lock, {parent, ready, finish, context.function});
    if (made == ncclInProgress) return ncclSuccess;
    finish();
    return made;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  return entry("ncclCommFinalize", {.detail = name_of(handle)}, [&](const Context& context) {
    const auto comm = context.find_ready(handle);
    check_device(context, *comm);
    comm->finalized = true;
    flush(context, *comm);
    wait_for_graphs(context, *comm);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  return entry("ncclCommDestroy", {.detail = name_of(handle)}, [&](const Context& context) {
    const auto comm = context.find(handle);
    check_device(context, *comm);
    flush(context, *comm);
    wait_for_graphs(context, *comm);
    comm->retire();
    comm->freed = true;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  return entry("ncclCommAbort", {.detail = name_of(handle)}, [&](const Context& context) {
    const auto comm = context.find(handle);
    check_device(context, *comm);
    const auto pending = comm->pending;
    comm->retire();
    context.library.notify();
    for (const ncclComm::Pending& one : pending) {
      one.shipment->released = true;
      context.machine.open(*one.shipment->latch, {});
    }
    if (Group& group = Group::get(); group.begun) group.aborted.push_back(comm);
    else reclaim(context, *comm);
    return ncclSuccess;
  });
}
