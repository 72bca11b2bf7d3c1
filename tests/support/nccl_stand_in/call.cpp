#include "call.hpp"

namespace nccl_stand_in {
namespace {

const char* name_of_op(ncclRedOp_t op) {
  switch (int(op)) {
    case ncclSum: return "sum";
    case ncclProd: return "prod";
    case ncclMax: return "max";
    case ncclMin: return "min";
    case ncclAvg: return "avg";
  }
  return "unknown operation";
}

const std::byte* at(const void* base, std::size_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}

}  // namespace

const char* name_of(Function function) {
  switch (function) {
    case Function::all_reduce: return "ncclAllReduce";
    case Function::reduce_scatter: return "ncclReduceScatter";
    case Function::all_gather: return "ncclAllGather";
    case Function::broadcast: return "ncclBroadcast";
    case Function::all_to_all: return "ncclAlltoAll";
    case Function::gather: return "ncclGather";
    case Function::scatter: return "ncclScatter";
    case Function::send: return "ncclSend";
    case Function::receive: return "ncclRecv";
  }
  return "";
}

const char* name_of(ncclDataType_t type) {
  constexpr const char* names[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                   "uint64", "float16", "float32", "float64", "bfloat16"};
  return bytes_of(type) != 0 ? names[int(type)] : "unknown type";
}

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

bool TransferCall::reduces() const {
  return function == Function::all_reduce || function == Function::reduce_scatter;
}

bool TransferCall::has_root() const {
  return function == Function::broadcast || function == Function::gather ||
         function == Function::scatter;
}

std::size_t TransferCall::bytes() const { return count * bytes_of(type); }

Range TransferCall::input(int rank, int size) const {
  std::size_t blocks = 1;
  switch (function) {
    case Function::reduce_scatter:
    case Function::all_to_all: blocks = std::size_t(size); break;
    case Function::broadcast: blocks = rank == peer ? 1 : 0; break;
    case Function::scatter: blocks = rank == peer ? std::size_t(size) : 0; break;
    case Function::receive: blocks = 0; break;
    default: break;
  }
  return {at(send, 0), blocks * bytes()};
}

Range TransferCall::output(int rank, int size) const {
  std::size_t blocks = 1;
  switch (function) {
    case Function::all_gather:
    case Function::all_to_all: blocks = std::size_t(size); break;
    case Function::gather: blocks = rank == peer ? std::size_t(size) : 0; break;
    case Function::send: blocks = 0; break;
    default: break;
  }
  return {at(receive, 0), blocks * bytes()};
}

bool TransferCall::overlaps_itself(int rank, int size) const {
  const Range in = input(rank, size), out = output(rank, size);
  if (!in.overlaps(out)) return false;
  const std::size_t own_block = std::size_t(rank) * bytes();
  switch (function) {
    case Function::all_reduce:
    case Function::broadcast: return in.begin != out.begin;
    case Function::all_gather:
    case Function::gather: return in.begin != out.begin + own_block;
    case Function::reduce_scatter:
    case Function::scatter: return out.begin != in.begin + own_block;
    default: return true;
  }
}

std::string TransferCall::text() const {
  std::string text = std::to_string(count) + ' ' + name_of(type);
  if (reduces()) text += std::string(" ") + name_of_op(op);
  const bool outwards = function == Function::gather || function == Function::send;
  if (peer >= 0) text += (outwards ? " to " : " from ") + std::to_string(peer);
  return text;
}

}  // namespace nccl_stand_in
