// Entry points of NCCL: collectives, sends and receives, and groups of them.
#include <utility>

#include "entry.hpp"

using namespace nccl_stand_in;

namespace {

void check_buffer(const Context& context, const ncclComm& comm, Range range, const char* which,
                  TransferCall& call) {
  if (range.bytes == 0) return;
  const std::string what =
      std::string(which) + " buffer of " + std::to_string(range.bytes) + " bytes ";
  const cuda_stand_in::Place place = context.machine.memory.place(range.begin, range.bytes);
  if (!place.on_device) context.fault(ncclInvalidArgument, what + "is no memory of a device");
  if (!place.whole()) context.fault(ncclInvalidArgument, what + "is in no single allocation");
  if (place.device() != comm.device)
    context.fault(ncclInvalidArgument, what + "is on device " + std::to_string(place.device()) +
                                           ", the communicator on device " +
                                           std::to_string(comm.device));
  bool registered = false;
  for (const auto& [handle, known] : comm.registrations)
    registered = registered || (range.begin >= known.begin && range.end() <= known.end());
  (registered ? call.registered : call.unregistered) = true;
}

void check(const Context& context, const ncclComm& comm, TransferCall& call) {
  if (bytes_of(call.type) == 0) context.refuse(ncclInvalidArgument, "unknown data type");
  if (call.peer && (*call.peer < 0 || *call.peer >= comm.size()))
    context.refuse(ncclInvalidArgument, "there is no rank " + std::to_string(*call.peer) +
                                            " among " + std::to_string(comm.size()));
  check_buffer(context, comm, call.input(comm.rank, comm.size()), "the send", call);
  check_buffer(context, comm, call.output(comm.rank, comm.size()), "the receive", call);
  if (call.overlaps_itself(comm.rank, comm.size()))
    context.fault(ncclInvalidArgument, "the buffers overlap, and not as they do in place");
}

/// @param call  complete except for its stream
ncclResult_t transfer(TransferCall call, ncclComm_t handle, cudaStream_t stream) {
  Group& group = Group::get();
  const std::string text =
      call.arguments() + " on " + name_of(handle) + (group.begun ? ", in a group" : "");
  return entry(call.function.name, {.stream = stream, .detail = text}, [&](const Context& context) {
    const auto comm = context.find_ready(handle);
    call.stream = context.machine.stream(stream, comm->device);
    if (call.stream == nullptr || call.stream->device->index != comm->device)
      context.refuse(ncclUnhandledCudaError, "the stream is none of the communicator's device");
    check(context, *comm, call);
    if (!group.calls.empty() && (group.comm != comm || group.calls[0].stream != call.stream))
      context.fault(ncclInvalidUsage, "calls of a group are on one communicator and stream");
    if (call.count == 0 && !call.to_one()) return ncclSuccess;
    group.comm = comm;
    group.calls.push_back(call);
    return group.begun ? ncclSuccess : group.end(context);
  });
}

constexpr Blocks none = Blocks::none, one = Blocks::one, each = Blocks::each,
                 one_at_root = Blocks::one_at_root, each_at_root = Blocks::each_at_root;

}  // namespace

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return transfer({{"ncclAllReduce", one, one}, send, receive, count, type, {}, op}, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return transfer({{"ncclReduceScatter", each, one}, send, receive, count, type, {}, op}, comm,
                  stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return transfer({{"ncclAllGather", one, each}, send, receive, count, type}, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return transfer({{"ncclBroadcast", one_at_root, one}, send, receive, count, type, root}, comm,
                  stream);
}

ncclResult_t ncclAlltoAll(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  return transfer({{"ncclAlltoAll", each, each}, send, receive, count, type}, comm, stream);
}

ncclResult_t ncclGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return transfer({{"ncclGather", one, each_at_root}, send, receive, count, type, root}, comm,
                  stream);
}

ncclResult_t ncclScatter(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                         int root, ncclComm_t comm, cudaStream_t stream) {
  return transfer({{"ncclScatter", each_at_root, one}, send, receive, count, type, root}, comm,
                  stream);
}

ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return transfer({{"ncclSend", one, none}, send, nullptr, count, type, peer}, comm, stream);
}

ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return transfer({{"ncclRecv", none, one}, nullptr, receive, count, type, peer}, comm, stream);
}

ncclResult_t ncclGroupStart() {
  return entry("ncclGroupStart", {}, [](const Context& context) {
    if (std::exchange(Group::get().begun, true))
      context.fault(ncclInvalidUsage, "groups within groups are not there");
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  return entry("ncclGroupEnd", {}, [](const Context& context) {
    if (!Group::get().begun) context.refuse(ncclInvalidUsage, "no group has been started");
    return Group::get().end(context);
  });
}
