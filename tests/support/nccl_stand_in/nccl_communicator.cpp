// Entry points of NCCL: communicators, from creation to destruction.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "cuda_stand_in/thread_state.hpp"
#include "entry.hpp"

using namespace nccl_stand_in;

namespace {

constexpr unsigned config_magic = 0xcafebeef;

ncclResult_t check_config(const Context& context, const ncclConfig_t* config) {
  if (config == nullptr) return ncclSuccess;
  if (config->magic != config_magic || config->size != sizeof(ncclConfig_t))
    return context.refuse(ncclInvalidArgument, "the configuration is not initialised");
  if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 && config->blocking != 1)
    return context.refuse(ncclInvalidArgument, "blocking is neither 0 nor 1");
  return ncclSuccess;
}

bool blocks(const ncclConfig_t* config, bool otherwise) {
  if (config == nullptr) return otherwise;
  return config->blocking != 0;
}

// When all ranks have joined: why their devices cannot communicate; empty if they can.
std::string refusal(const Clique& clique) {
  for (const ncclComm* a : clique.members)
    for (const ncclComm* b : clique.members)
      if (a->rank > b->rank && a->device == b->device)
        return "Duplicate GPU detected : rank " + std::to_string(a->rank) + " and rank " +
               std::to_string(b->rank) + " both on CUDA device " + std::to_string(a->device);
  return {};
}

ncclResult_t init(const char* function, ncclComm_t* result, int size, const ncclUniqueId& id,
                  int rank, const ncclConfig_t* config) {
  const std::string key(id.internal, sizeof id.internal);
  const auto text = [&] { return "rank " + std::to_string(rank) + " of " + std::to_string(size); };
  return entry(function, {.text = text}, [&](const Context& context) {
    if (result == nullptr) return context.refuse(ncclInvalidArgument, "no place for the result");
    *result = nullptr;
    if (const ncclResult_t refused = check_config(context, config)) return refused;
    if (size < 1 || rank < 0 || rank >= size)
      return context.refuse(ncclInvalidArgument,
                            "rank " + std::to_string(rank) + " of " + std::to_string(size));
    Library& library = context.library;
    const auto found = library.cliques.find(key);
    if (found == library.cliques.end())
      return context.fault(ncclInvalidArgument, "the unique id is unknown, or has been used");
    const std::shared_ptr<Clique> clique = found->second;
    if (clique->size == 0) {
      clique->name = library.worlds == 0 ? "world" : "world" + std::to_string(library.worlds + 1);
      ++library.worlds;
      clique->size = size;
      clique->members.resize(std::size_t(size));
    }
    if (clique->size != size)
      return context.fault(ncclInvalidArgument, "rank " + std::to_string(rank) + " says " +
                                                    std::to_string(size) + " ranks, others " +
                                                    std::to_string(clique->size));
    ncclComm*& member = clique->members[std::size_t(rank)];
    if (member != nullptr)
      return context.fault(ncclInvalidArgument, "there are two ranks " + std::to_string(rank));
    const std::shared_ptr<ncclComm> comm = library.create();
    member = comm.get();
    comm->clique = clique;
    comm->rank = rank;
    comm->device = cuda_stand_in::ThreadState::get().device;
    comm->blocking = blocks(config, true);
    *result = comm.get();
    if (++clique->joined == size) {
      clique->refusal = refusal(*clique);
      library.cliques.erase(key);
    }
    library.notify();
    // if initialisation fails, the communicator exists and can be aborted
    return library.begin(
        context.lock, {.comm = comm,
                       .ready = [clique] { return clique->joined == clique->size; },
                       .finish =
                           [clique] {
                             return clique->refusal.empty()
                                        ? ncclSuccess
                                        : Library::get().refuse(ncclInvalidUsage, clique->refusal);
                           },
                       .function = function});
  });
}

// When all ranks of the parent have called: makes the children's cliques.
void divide(Clique& parent, Clique::Meeting& meeting, std::uint64_t number) {
  std::vector<int> order;
  for (int r = 0; r < parent.size; ++r) order.push_back(r);
  const auto& keys = meeting.colors_and_keys;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return keys[std::size_t(a)] < keys[std::size_t(b)]; });
  std::map<int, std::shared_ptr<Clique>> cliques;
  for (const int r : order) {
    std::shared_ptr<Clique>& clique = cliques[keys[std::size_t(r)].first];
    if (clique == nullptr) clique = std::make_shared<Clique>();
    ncclComm& child = *meeting.brought[std::size_t(r)];
    child.clique = clique;
    child.rank = clique->size++;
    clique->members.push_back(&child);
    clique->name = parent.name + "/split" + std::to_string(number);
    clique->joined = clique->size;
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
      context.fault(ncclSuccess,
                    "waits for ever: what is enqueued on " + comm.name() + " does not end");
  }
}

/// NCCL sets the communicator's device and then that of the calling thread again, which makes a
/// context there.
void check_device(const Context& context, const ncclComm& comm) {
  const int device = cuda_stand_in::ThreadState::get().device;
  if (device != comm.device)
    context.fault(ncclSuccess, "called with device " + std::to_string(device) + ", but " +
                                   comm.name() + " is on device " + std::to_string(comm.device));
}

}  // namespace

void nccl_stand_in::reclaim(const Context& context, ncclComm& comm) {
  comm.freed = true;
  if (comm.inside > 0)
    context.fault(ncclSuccess, "frees " + comm.name() + ", and a thread is inside of a call on it");
  for (const auto& other : context.library.on_device(comm.device)) flush(context, *other);
  wait_for_graphs(context, comm);
}

void nccl_stand_in::wait_for_graphs(const Context& context, const ncclComm& comm) {
  const auto deadline = std::chrono::steady_clock::now() + context.machine.settings.timeout;
  while (comm.in_a_graph()) {
    if (std::chrono::steady_clock::now() > deadline) {
      context.fault(ncclSuccess, "waits for ever: a graph has calls on " + comm.name());
      return;
    }
    context.lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    context.lock.lock();
  }
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return entry("ncclGetUniqueId", {}, [&](const Context& context) {
    if (id == nullptr) return context.refuse(ncclInvalidArgument, "no place for the result");
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
  return init("ncclCommInitRankConfig", comm, size, id, rank, config);
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return init("ncclCommInitRank", comm, size, id, rank, nullptr);
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* result,
                           ncclConfig_t* config) {
  const auto text = [&] {
    return "color " + std::to_string(color) + " key " + std::to_string(key) + " of " +
           label(handle);
  };
  return entry("ncclCommSplit", {.text = text}, [&](const Context& context) {
    std::shared_ptr<ncclComm> parent;
    if (const ncclResult_t refused = context.find_ready(handle, parent)) return refused;
    if (result == nullptr) return context.refuse(ncclInvalidArgument, "no place for the result");
    *result = nullptr;
    if (const ncclResult_t refused = check_config(context, config)) return refused;
    if (color < 0) return context.refuse(ncclInvalidArgument, "color " + std::to_string(color));
    if (parent->under_way() != nullptr)
      context.fault(ncclSuccess, "what is enqueued on " + parent->name() + " has not ended");
    const std::shared_ptr<Clique> clique = parent->clique;
    const std::uint64_t number = ++parent->splits;
    Clique::Meeting& meeting = clique->splits[number];
    meeting.brought.resize(std::size_t(clique->size));
    meeting.colors_and_keys.resize(std::size_t(clique->size));
    const std::shared_ptr<ncclComm> child = context.library.create();
    child->device = parent->device;
    child->blocking = blocks(config, parent->blocking);
    meeting.brought[std::size_t(parent->rank)] = child.get();
    meeting.colors_and_keys[std::size_t(parent->rank)] = {color, key};
    if (++meeting.here == clique->size) {
      divide(*clique, meeting, number);
      context.library.notify();
    }
    // The child is returned when the parent is ready again, although the call returns success
    // before that. A child that could not be initialised is returned too, to be aborted.
    const ncclResult_t made = context.library.begin(
        context.lock,
        {.comm = parent,
         .ready = [clique, number] { return clique->splits[number].here == clique->size; },
         .finish =
             [child, result] {
               *result = child.get();
               return ncclSuccess;
             },
         .function = context.function});
    if (made == ncclInProgress) return ncclSuccess;
    if (made != ncclSuccess) *result = child.get();
    return made;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const auto text = [&] { return label(handle); };
  return entry("ncclCommFinalize", {.text = text}, [&](const Context& context) {
    std::shared_ptr<ncclComm> comm;
    if (const ncclResult_t refused = context.find_ready(handle, comm)) return refused;
    check_device(context, *comm);
    comm->finalized = true;
    flush(context, *comm);
    wait_for_graphs(context, *comm);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (handle == nullptr) return ncclSuccess;
  const auto text = [&] { return label(handle); };
  return entry("ncclCommDestroy", {.text = text}, [&](const Context& context) {
    std::shared_ptr<ncclComm> comm;
    if (const ncclResult_t refused = context.find(handle, comm)) return refused;
    check_device(context, *comm);
    if (comm->job != nullptr)
      return context.refuse(ncclInvalidArgument,
                            "the previous call on this communicator has not returned ncclSuccess");
    flush(context, *comm);
    if (!comm->finalized) wait_for_graphs(context, *comm);
    comm->retire();
    comm->freed = true;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (handle == nullptr) return ncclSuccess;
  const auto text = [&] { return label(handle); };
  return entry("ncclCommAbort", {.text = text}, [&](const Context& context) {
    std::shared_ptr<ncclComm> comm;
    if (const ncclResult_t refused = context.find(handle, comm)) return refused;
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

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  Machine& machine = Machine::get();
  Lock lock = machine.lock();
  const Context context{machine, lock, Library::get(), "ncclCommGetAsyncError"};
  if (const ncclResult_t planted =
          context.library.planted_call(context.function, cuda_stand_in::ThreadState::get().device))
    return planted;
  if (context.library.ending(handle)) {
    *error = ncclInternalError;
    return ncclSuccess;
  }
  std::shared_ptr<ncclComm> comm;
  if (const ncclResult_t refused = context.find(handle, comm)) return refused;
  *error = context.library.poll(*comm);
  return ncclSuccess;
}
