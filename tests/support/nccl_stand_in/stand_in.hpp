// A stand-in for NCCL 2.28. Ranks are threads of one process, and devices are those of the stand-in
// for CUDA. Tests link both instead of the libraries; the header is NCCL's own.
//
// What it checks
// - values: collectives, sends and receives are executed, reductions in rank order;
// - ordering: a call becomes an operation of its stream, run by the same lazy rule as kernels. It
//   reads its rank's input when everything before it in the stream has run, and completes when that
//   is true on every rank involved: a missing event shows as stale or poisoned data;
// - agreement: calls are matched by their order, per communicator for collectives and per pair of
//   ranks for sends and receives. If matched calls differ in function, count, type, operation, root
//   or position in their group, no rank gets past them, both are reported as a fault, and all ranks
//   of the communicator get an asynchronous error. NCCL would hang, or worse;
// - absence: an operation in which a rank does not take part hangs until it is aborted, or until
//   the time-out of the stand-in for CUDA makes the device fail;
// - buffers: must be memory of the communicator's device and lie within one allocation; output may
//   overlap input only in place; no call of a group may write memory that another of its calls
//   uses;
// - memory: a registration may end only when no operation enqueued on its communicator is left. If
//   a buffer of a call is registered, those of all its ranks must be, input and output;
// - aborts: an abort ends kernels and blocked calls at once. What it frees, at the end of its group
//   if there is one, must not be in use: a thread still inside a call is a fault. It waits for the
//   operations enqueued on the other communicators of its device, unless they are aborted in the
//   same group, and for graphs that contain calls on its communicator;
// - splits: no operation that is enqueued on the parent may be left;
// - ends: a finalize or destroy waits for these graphs, too;
// - protocol: calls on a communicator that is dead, busy or failed are refused as NCCL refuses
//   them. A non-blocking communicator has enqueued a call only when a poll says so; likewise its
//   splits return the child only then, although the call returns success;
// - features that the project does not use are refused: nested groups, groups over several
//   communicators or streams, splits in groups, without a color or with a configuration, 8-bit
//   floating-point types.
//
// docs/testing.md gives the places in NCCL's source or documentation for each of these.
//
// What it does not check: time; NCCL's order of addition; whether buffers are registered well
// enough for the fast paths; networks; processes.
//
// Calls appear in a thread's `cuda_stand_in::Recording`, between those of the runtime, as
//
//     ncclAllReduce(stream 1): 1024 float32 sum on world
//     ncclSend(stream 1): 16 int32 to 2 on world/split1, in a group
//
// The first communicator made from a unique id is called "world", the next "world2"; the k-th
// ncclCommSplit of "world" makes "world/splitk", whatever the color. ncclGetErrorString and
// ncclGetLastError are not recorded.
#pragma once

#include <string>
#include <string_view>

#include <nccl.h>

namespace nccl_stand_in {

/// The `nth` call from now (1 is the next) of the named function does nothing and returns `result`.
/// @param device  counts only calls of threads with this current device; all calls if negative
void fail_call(std::string_view function, int nth, ncclResult_t result, int device = -1);

/// The `nth` operation from now (1 is the next) that `rank` of a communicator launches hangs, and
/// the communicator has the asynchronous error `result` from then on. The other ranks get no error:
/// they hang. A group is one operation.
void fail_operation(int rank, int nth, ncclResult_t result);

/// From now on calls of the named function block until their communicator is aborted:
/// ncclCommInitRank and ncclCommInitRankConfig, ncclCommSplit, ncclGroupEnd, or the first
/// collective.
void hold_call(std::string_view function);

/// Sets whether the first collective of a communicator waits until all ranks have called one, as
/// when NCCL connects ranks at their first communication (default: false).
void set_connect_on_use(bool value);

/// Sets the result of ncclGetVersion (default: the header's version).
void set_version(int version);

/// The name of a communicator, as in recordings and faults.
std::string name_of(ncclComm_t comm);

/// The number of communicators, one per rank, that have been neither destroyed nor aborted.
int live_communicators();

/// Forgets communicators, names, planted errors and settings; also resets the stand-in for CUDA. No
/// other thread may be in a call.
void reset();

}  // namespace nccl_stand_in
