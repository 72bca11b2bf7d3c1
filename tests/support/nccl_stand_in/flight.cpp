#include "flight.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "arithmetic.hpp"

namespace nccl_stand_in {
namespace {

using cuda_stand_in::ArenaSet;
using cuda_stand_in::Operation;

// Two operations in one stream: the first reads what the rank sends; the second writes what it
// receives, after the first operations of all ranks involved.
class Flight : public std::enable_shared_from_this<Flight> {
 public:
  Flight(std::shared_ptr<ncclComm> comm, std::vector<TransferCall> calls)
      : comm_(std::move(comm)), shipment_(std::make_shared<Shipment>()) {
    shipment_->rank = comm_->rank;
    shipment_->unmatched = calls.size();
    shipment_->sent.resize(calls.size());
    shipment_->calls = std::move(calls);
  }

  Operation departure() {
    return {.name = "begin of " + name(),
            .body = [flight = shared_from_this()] { flight->depart(); },
            .arenas = arenas(),
            .bookkeeping = true,  // peers must learn that the device has failed
            .placed = [flight = shared_from_this()](
                          Point point) { flight->shipment_->departure = point; }};
  }

  Operation arrival() {
    return {.name = name(),
            .body = [flight = shared_from_this()] { flight->arrive(); },
            .latch = shipment_->latch,
            .arenas = arenas(),
            .placed = [flight = shared_from_this()](Point point) { flight->enter(point); }};
  }

 private:
  std::string name() const {
    const auto& calls = shipment_->calls;
    const std::string what = calls.size() == 1
                                 ? name_of(calls[0].function)
                                 : "a group of " + std::to_string(calls.size()) + " calls";
    return what + " on " + comm_->name() + " of rank " + std::to_string(comm_->rank);
  }

  ArenaSet arenas() const { return ArenaSet::of(comm_->device); }

  // Called when the operation has its place in the stream: other ranks may now match it.
  void enter(Point end) {
    Library& library = Library::get();
    if (!comm_->alive) {
      library.fault("a graph launches " + name() + ", whose communicator was destroyed or aborted");
      abandon();
      return;
    }
    comm_->add_pending(end, shipment_);
    if (const ncclResult_t planted = library.planted_operation(*comm_); planted != ncclSuccess) {
      library.refuse(planted, "a planted error in " + name());
      comm_->fail(planted);
      return;
    }
    matches_ = comm_->clique->add(shipment_);
    Clique::open(matches_);
  }

  void abandon() {
    shipment_->withdrawn = shipment_->released = true;
    Machine::get().open(*shipment_->latch, {});
  }

  void depart() {
    Machine& machine = Machine::get();
    if (!shipment_->released && machine.device(comm_->device).failure == cudaSuccess && read())
      return;
    shipment_->withdrawn = true;
    for (const auto& match : matches_)
      for (const Match::Part& part : match->parts)
        if (part.shipment != nullptr && part.shipment != shipment_ && !part.shipment->released) {
          part.shipment->stalled = true;
          part.shipment->latch->open = false;
        }
  }

  bool read() {
    Machine& machine = Machine::get();
    for (std::size_t i = 0; i < shipment_->calls.size(); ++i) {
      const TransferCall& call = shipment_->calls[i];
      const Range input = call.input(comm_->rank, comm_->size());
      if (input.bytes > 0 && !machine.check_usable(name(), input.begin, input.bytes)) return false;
      std::vector<std::byte>& sent = shipment_->sent[i];
      sent.assign(input.begin, input.end());
      std::array<std::byte, 8> scalar{};
      if (call.op == ncclAvg && reciprocal(call.type, comm_->size(), scalar.data()))
        premultiply(call.type, scalar.data(), sent.data(), input.bytes / bytes_of(call.type));
    }
    return true;
  }

  void arrive() {
    Machine& machine = Machine::get();
    for (std::size_t i = 0; i < matches_.size() && !shipment_->released; ++i) {
      const TransferCall& call = shipment_->calls[i];
      const Range output = call.output(comm_->rank, comm_->size());
      if (output.bytes == 0) continue;
      if (!machine.check_usable(name(), output.begin, output.bytes)) break;
      write(call, matches_[i]->parts);
    }
    matches_.clear();
  }

  void write(const TransferCall& call, const std::vector<Match::Part>& parts) {
    const auto to = static_cast<std::byte*>(call.receive);
    const std::size_t block = call.bytes(), own = std::size_t(comm_->rank) * block;
    const auto copy = [&](std::size_t target, const std::byte* from) {
      std::memcpy(to + target * block, from, block);
    };
    const auto reduce_at = [&](std::size_t offset) {
      std::vector<const std::byte*> operands;
      for (const Match::Part& part : parts) operands.push_back(part.sent().data() + offset);
      reduce(call.type, call.op, operands, call.count, to);
    };
    switch (call.function) {
      case Function::all_reduce: return reduce_at(0);
      case Function::reduce_scatter: return reduce_at(own);
      case Function::all_gather:
      case Function::gather:
        for (std::size_t r = 0; r < parts.size(); ++r) copy(r, parts[r].sent().data());
        return;
      case Function::all_to_all:
        for (std::size_t r = 0; r < parts.size(); ++r) copy(r, parts[r].sent().data() + own);
        return;
      case Function::broadcast: return copy(0, parts[std::size_t(call.peer)].sent().data());
      case Function::scatter: return copy(0, parts[std::size_t(call.peer)].sent().data() + own);
      case Function::receive: return copy(0, parts[0].sent().data());
      case Function::send: return;
    }
  }

  std::shared_ptr<ncclComm> comm_;
  std::shared_ptr<Shipment> shipment_;
  std::vector<std::shared_ptr<Match>> matches_;
};

/// Describes memory that one call of a group touches and another writes; empty if there is none.
std::string conflict(const ncclComm& comm, const std::vector<TransferCall>& calls) {
  struct Access {
    Range range;
    std::size_t call;
    bool writes;
  };
  std::vector<Access> accesses;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    accesses.push_back({calls[i].input(comm.rank, comm.size()), i, false});
    accesses.push_back({calls[i].output(comm.rank, comm.size()), i, true});
  }
  std::erase_if(accesses, [](const Access& access) { return access.range.bytes == 0; });
  std::sort(accesses.begin(), accesses.end(),
            [](const Access& a, const Access& b) { return a.range.begin < b.range.begin; });
  for (std::size_t i = 0; i < accesses.size(); ++i)
    for (std::size_t j = i + 1; j < accesses.size(); ++j) {
      const Access &a = accesses[i], &b = accesses[j];
      if (!a.range.overlaps(b.range)) break;
      if (a.call == b.call || !(a.writes || b.writes)) continue;
      const TransferCall &first = calls[std::min(a.call, b.call)],
                         &second = calls[std::max(a.call, b.call)];
      return std::string(name_of(first.function)) + ": " + first.text() + " and " +
             name_of(second.function) + ": " + second.text();
    }
  return {};
}

// Adds nodes to a graph: each launch makes a new operation with its own sequence number.
void capture(const std::shared_ptr<ncclComm>& comm, const std::vector<TransferCall>& calls,
             CUstream_st& stream) {
  const auto current = std::make_shared<std::shared_ptr<Flight>>();
  Machine& machine = Machine::get();
  machine.enqueue(stream, {.name = "begin of captured calls of NCCL",
                           .renew = [current, comm, calls, kept = comm->captured] {
                             *current = std::make_shared<Flight>(comm, calls);
                             return (*current)->departure();
                           }});
  machine.enqueue(stream, {.name = "captured calls of NCCL", .renew = [current] {
                             return std::exchange(*current, nullptr)->arrival();
                           }});
}

}  // namespace

void launch(const std::shared_ptr<ncclComm>& comm, const std::vector<TransferCall>& calls) {
  CUstream_st& stream = *calls[0].stream;
  if (const std::string calls_in_conflict = conflict(*comm, calls); !calls_in_conflict.empty())
    Library::get().fault("calls of one group on " + comm->name() +
                         " touch the same memory: " + calls_in_conflict);
  if (stream.capture != nullptr) return capture(comm, calls, stream);
  Machine& machine = Machine::get();
  const auto flight = std::make_shared<Flight>(comm, calls);
  machine.enqueue(stream, flight->departure());
  machine.enqueue(stream, flight->arrival());
}

}  // namespace nccl_stand_in
