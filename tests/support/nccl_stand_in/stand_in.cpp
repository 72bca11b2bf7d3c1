#include "stand_in.hpp"

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
  locked([&](Library& library) {
    library.planted_calls.push_back({std::string(function), nth, result, device});
  });
}

void fail_operation(int rank, int nth, ncclResult_t result) {
  locked([&](Library& library) { library.planted_operations.push_back({rank, nth, result}); });
}

void hold_call(std::string_view function) {
  locked([&](Library& library) { library.held = function; });
}

void set_connect_on_use(bool value) {
  locked([&](Library& library) { library.connect_on_use = value; });
}

void set_version(int version) {
  locked([&](Library& library) { library.version = version; });
}

std::string name_of(ncclComm_t comm) {
  return locked([&](Library&) { return label(comm); });
}

int live_communicators() {
  return locked([](Library& library) { return library.live(); });
}

bool is_registered(ncclComm_t handle, const void* address, std::size_t bytes) {
  return locked([&](Library& library) {
    const auto comm = library.find(handle);
    return comm != nullptr && comm->registered({static_cast<const std::byte*>(address), bytes});
  });
}

void reset() {
  cuda_stand_in::reset();
  locked([](Library& library) { library.clear(); });
  Group::get() = {};
}

}  // namespace nccl_stand_in
