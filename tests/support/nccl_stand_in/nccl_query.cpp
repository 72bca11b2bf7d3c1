// Entry points of NCCL: versions, errors and properties of communicators.
#include "entry.hpp"

using namespace nccl_stand_in;

namespace {

template <class Get>
ncclResult_t query(const char* function, ncclComm_t handle, int* result, Get get) {
  const auto text = [&] { return label(handle); };
  return entry(function, {.text = text}, [&](const Context& context) {
    std::shared_ptr<ncclComm> comm;
    if (const ncclResult_t refused = context.find_ready(handle, comm)) return refused;
    if (result == nullptr) return context.refuse(ncclInvalidArgument, "no place for the result");
    *result = get(*comm);
    return ncclSuccess;
  });
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  return entry("ncclGetVersion", {}, [&](const Context& context) {
    if (version == nullptr) return context.refuse(ncclInvalidArgument, "no place for the result");
    *version = context.library.version;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return query("ncclCommCount", comm, count, [](const ncclComm& c) { return c.size(); });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return query("ncclCommUserRank", comm, rank, [](const ncclComm& c) { return c.rank; });
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  const Lock lock = Machine::get().lock();
  return Library::get().last_error();
}
