#include "stand_in.hpp"

#include <algorithm>

#include "cuda_stand_in/stand_in.hpp"
#include "entry.hpp"

namespace nccl_stand_in {
namespace {

template <class F>
auto locked(F f) {
  const Lock lock = Machine::get().lock();
  return f(Library::get());
}

}  // namespace

void fail_call(std::string_view function, int nth, ncclResult_t result, int device) {
  cuda_stand_in::plant_error(function, nth, result, device);
}

void fail_operation(int rank, int nth, ncclResult_t result) {
  cuda_stand_in::plant_error(operation_of(rank), nth, result);
}

void hold_call(std::string_view function) { cuda_stand_in::hold_call(function); }

void set_connect_on_use(bool value) {
  locked([&](Library& library) { library.connect_on_use = value; });
}

void set_version(int version) {
  locked([&](Library& library) { library.version = version; });
}

std::string name_of(ncclComm_t handle) {
  return locked([&](Library& library) {
    const auto comm = library.find(handle);
    return comm == nullptr || comm->clique == nullptr ? "no communicator" : comm->name();
  });
}

int live_communicators() {
  return locked([](Library& library) {
    return int(std::ranges::count_if(library.communicators,
                                     [](const auto& entry) { return entry.second->alive; }));
  });
}

void reset() {
  cuda_stand_in::reset();
  locked([](Library& library) { library.clear(); });
  Group::get() = {};
}

}  // namespace nccl_stand_in
