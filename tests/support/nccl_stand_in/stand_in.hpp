// A stand-in for NCCL 2.28 whose ranks are threads of one process and whose devices are those of
// the stand-in for CUDA. Tests link both instead of the libraries; the header is NCCL's own.
//
// What it proves
// - values: collectives, sends and receives are carried out, reductions in rank order;
// - ordering: a call becomes an operation of its stream, which runs by the lazy rule that kernels
//   obey, too. It reads what its rank sends when all that is before it in the stream has run, and
//   ends when that is so on every rank concerned: a missing event shows as stale or poisoned data;
// - agreement: calls are matched by their order, per communicator for collectives and per pair of
//   ranks for sends and receives. Where matched calls differ in function, count, type, operation,
//   root or place in their group, nobody gets past them, both are reported as a fault, and all
//   ranks of the communicator have an asynchronous error. NCCL would hang, or worse;
// - absence: an operation for which a rank does not come hangs until it is aborted, or until the
//   time-out of the stand-in for CUDA makes the device fail;
// - buffers: they are memory of the communicator's device, inside one allocation; what an operation
//   writes overlaps with what it reads only in place; sends and receives of a group are apart;
// - memory: a registration ends when nothing that is enqueued on its communicator is left;
// - aborts: an abort ends kernels and calls that wait at once; what it frees, at the end of its
//   group if there is one, has to be in nobody's use: a thread that is still inside of a call is a
//   fault. It waits for what is enqueued on the other communicators of its device, unless they are
//   aborted in the same group, and for the graphs that have calls of its communicator;
// - ends: a finalize or destroy waits for these graphs, too;
// - protocol: calls on a communicator that is dead, busy or failed are refused as NCCL refuses
//   them. A non-blocking communicator enqueues only when a poll has said that it did, and a split
//   of it gives the child only then, though it returns success;
// - what the project does not do is refused: groups in groups or over several communicators or
//   streams, splits in groups or without a color, the types of 8-bit floats.
//
// docs/testing.md says where each of these is read in NCCL.
//
// What it does not prove: time; the order in which NCCL adds; that buffers are registered well
// enough to be fast; networks; processes.
//
// Calls appear in a thread's `cuda_stand_in::Recording`, between those of the runtime, as
//
//     ncclAllReduce(stream 1): 1024 float32 sum on world
//     ncclSend(stream 1): 16 int32 to 2 on world/split1, in a group
//
// The first communicator made from a unique id is called "world", then "world2"; what the k-th
// ncclCommSplit of it makes is "world/splitk", whatever the color. Polls, and questions about
// errors, are not recorded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nccl.h>

namespace nccl_stand_in {

/// The `nth` call from now (1 is the next) of the named function does nothing but return `result`.
/// @param device  counts the calls of threads with this current device; those of all if negative
void fail_call(std::string_view function, int nth, ncclResult_t result, int device = -1);

/// The `nth` operation from now (1 is the next) that `rank` of a communicator launches hangs, and
/// the communicator has the asynchronous error `result` from then on. The other ranks have none:
/// they hang. A group is one operation.
void fail_operation(int rank, int nth, ncclResult_t result);

/// From now on calls of the named function wait until their communicator is aborted:
/// ncclCommInitRank and ncclCommInitRankConfig, ncclCommSplit, ncclGroupEnd, or the first
/// collective.
void hold_call(std::string_view function);

/// Whether the first collective of a communicator waits until all of its ranks have called one, as
/// NCCL connects ranks when they first communicate (at first not).
void set_connect_on_use(bool value);

/// What ncclGetVersion says (at first the header's version).
void set_version(int version);

/// The name of a communicator, as in recordings and faults.
std::string name_of(ncclComm_t comm);

/// How many communicators, one per rank, have been neither destroyed nor aborted.
int live_communicators();

/// Whether all of the range has been registered with the communicator.
bool is_registered(ncclComm_t comm, const void* address, std::size_t bytes);

/// Forgets communicators, names, planted errors and settings; resets the stand-in for CUDA, too.
/// No other thread may be in a call.
void reset();

}  // namespace nccl_stand_in
