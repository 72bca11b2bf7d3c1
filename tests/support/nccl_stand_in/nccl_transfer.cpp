// Entry points of NCCL: collectives, sends and receives, and custom reduction operations.
#include <cstring>
#include <utility>

#include "entry.hpp"

using namespace nccl_stand_in;

namespace {

ncclResult_t check_buffer(const Context& context, const ncclComm& comm, Range range,
                          const char* which) {
  if (range.bytes == 0) return ncclSuccess;
  const std::string what =
      std::string(which) + " buffer of " + std::to_string(range.bytes) + " bytes ";
  const cuda_stand_in::Place place = context.machine.memory.place(range.begin, range.bytes);
  if (!place.on_device())
    return context.fault(ncclInvalidArgument, what + "is no memory of a device");
  if (place.arena->device() != comm.device)
    return context.fault(ncclInvalidArgument,
                         what + "is on device " + std::to_string(place.arena->device()) +
                             ", the communicator on device " + std::to_string(comm.device));
  if (!place.whole) return context.fault(ncclInvalidArgument, what + "is in no single allocation");
  return ncclSuccess;
}

void note_registration(const ncclComm& comm, Range range, TransferCall& call) {
  if (range.bytes == 0) return;
  (comm.registered(range) ? call.registered : call.unregistered) = true;
}

ncclResult_t check(const Context& context, const ncclComm& comm, TransferCall& call) {
  if (bytes_of(call.type) == 0) return context.refuse(ncclInvalidArgument, "unknown data type");
  if ((call.has_root() || call.to_one()) && (call.peer < 0 || call.peer >= comm.size()))
    return context.refuse(ncclInvalidArgument, "there is no rank " + std::to_string(call.peer) +
                                                   " among " + std::to_string(comm.size()));
  const Range input = call.input(comm.rank, comm.size());
  const Range output = call.output(comm.rank, comm.size());
  if (const ncclResult_t r = check_buffer(context, comm, input, "the send")) return r;
  if (const ncclResult_t r = check_buffer(context, comm, output, "the receive")) return r;
  if (call.overlaps_itself(comm.rank, comm.size()))
    return context.fault(ncclInvalidArgument, "the buffers overlap, and not as they do in place");
  note_registration(comm, input, call);
  note_registration(comm, output, call);
  return ncclSuccess;
}

/// @param call  complete except for its stream
ncclResult_t transfer(TransferCall call, ncclComm_t handle, cudaStream_t stream) {
  const auto text = [&] { return call.text() + " on " + label(handle) + group_label(); };
  return entry(name_of(call.function), {.stream = stream, .text = text},
               [&](const Context& context) {
                 std::shared_ptr<ncclComm> comm;
                 ncclResult_t result = context.find_ready(handle, comm);
                 if (result == ncclSuccess) {
                   call.stream = context.machine.stream(stream, comm->device);
                   if (call.stream == nullptr || call.stream->device->index != comm->device)
                     result = context.refuse(ncclUnhandledCudaError,
                                             "the stream is none of the communicator's device");
                 }
                 if (result == ncclSuccess) result = check(context, *comm, call);
                 Group& group = Group::get();
                 if (result == ncclSuccess && !group.calls.empty() &&
                     (group.comm != comm || group.calls[0].stream != call.stream))
                   result = context.fault(ncclInvalidUsage,
                                          "calls of a group are on one communicator and stream");
                 if (result == ncclSuccess) {
                   if (call.count == 0 && !call.to_one()) return ncclSuccess;
                   group.comm = comm;
                   group.calls.push_back(call);
                   return group.begun ? ncclSuccess : group.end(context);
                 }
                 if (comm != nullptr && !comm->blocking) comm->fail(result);
                 return result;
               });
}

}  // namespace

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return transfer({Function::all_reduce, send, receive, count, type, op}, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return transfer({Function::reduce_scatter, send, receive, count, type, op}, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return transfer({Function::all_gather, send, receive, count, type}, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return transfer({Function::broadcast, send, receive, count, type, ncclSum, root}, comm, stream);
}

ncclResult_t ncclAlltoAll(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  return transfer({Function::all_to_all, send, receive, count, type}, comm, stream);
}

ncclResult_t ncclGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return transfer({Function::gather, send, receive, count, type, ncclSum, root}, comm, stream);
}

ncclResult_t ncclScatter(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                         int root, ncclComm_t comm, cudaStream_t stream) {
  return transfer({Function::scatter, send, receive, count, type, ncclSum, root}, comm, stream);
}

ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return transfer({Function::send, send, nullptr, count, type, ncclSum, peer}, comm, stream);
}

ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return transfer({Function::receive, nullptr, receive, count, type, ncclSum, peer}, comm, stream);
}
