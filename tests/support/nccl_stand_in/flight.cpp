// The stream operations of a communicator's call, or of its calls in one group.
#include <cstring>
#include <string>
#include <utility>

#include "arithmetic.hpp"
#include "communicator.hpp"
#include "cuda_stand_in/entry.hpp"

namespace nccl_stand_in {
namespace {

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
            .bookkeeping = true,  // peers must learn that the device has failed
            .placed = [flight = shared_from_this()](
                          Point point) { flight->shipment_->departure = point; }};
  }

  Operation arrival() {
    return {.name = name(),
            .body = [flight = shared_from_this()] { flight->arrive(); },
            .latch = shipment_->latch,
            .placed = [flight = shared_from_this()](Point point) { flight->enter(point); }};
  }

 private:
  std::string name() const {
    const auto& calls = shipment_->calls;
    const std::string what = calls.size() == 1
                                 ? calls[0].function.name
                                 : "a group of " + std::to_string(calls.size()) + " calls";
    return what + " on " + comm_->name() + " of rank " + std::to_string(comm_->rank);
  }

  // Called when the operation has its place in the stream: other ranks may now match it.
  void enter(Point end) {
    Library& library = Library::get();
    if (!comm_->alive) {
      library.fault("a graph launches " + name() + ", whose communicator was destroyed or aborted");
      shipment_->withdrawn = shipment_->released = true;
      return Machine::get().open(*shipment_->latch, {});
    }
    std::erase_if(comm_->pending, [](const auto& one) { return one.ended(); });
    comm_->pending.push_back({end, shipment_});
    if (const int planted = cuda_stand_in::planted_error(operation_of(comm_->rank))) {
      library.set_last_error("a planted error in " + name());
      comm_->fail(ncclResult_t(planted));
      return;
    }
    matches_ = comm_->clique->add(shipment_);
    Clique::open(matches_);
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
      shipment_->sent[i].assign(input.begin, input.end());
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
    const std::size_t offset = call.own_block(call.function.reads, comm_->rank);
    const auto block_of = [&](std::size_t rank) { return parts[rank].sent() + offset; };
    if (call.op) {
      std::vector<const std::byte*> operands;
      for (std::size_t r = 0; r < parts.size(); ++r) operands.push_back(block_of(r));
      reduce(call.type, *call.op, operands, call.count, to);
    } else if (TransferCall::is_each(call.function.writes)) {
      for (std::size_t r = 0; r < parts.size(); ++r)
        std::memcpy(to + r * call.bytes(), block_of(r), call.bytes());
    } else {
      std::memcpy(to, block_of(call.to_one() ? 0 : std::size_t(*call.peer)), call.bytes());
    }
  }

  std::shared_ptr<ncclComm> comm_;
  std::shared_ptr<Shipment> shipment_;
  std::vector<std::shared_ptr<Match>> matches_;
};

/// Reports memory that one call of a group touches and another writes.
void check_conflicts(const ncclComm& comm, const std::vector<TransferCall>& calls) {
  const auto writes = [&](const TransferCall& a, const TransferCall& b) {
    const Range output = a.output(comm.rank, comm.size());
    return output.overlaps(b.input(comm.rank, comm.size())) ||
           output.overlaps(b.output(comm.rank, comm.size()));
  };
  for (std::size_t j = 0; j < calls.size(); ++j)
    for (std::size_t i = 0; i < j; ++i)
      if (writes(calls[i], calls[j]) || writes(calls[j], calls[i]))
        return Library::get().fault("calls of one group on " + comm.name() +
                                    " touch the same memory: " + calls[i].text() + " and " +
                                    calls[j].text());
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
  check_conflicts(*comm, calls);
  if (stream.capture != nullptr) return capture(comm, calls, stream);
  Machine& machine = Machine::get();
  const auto flight = std::make_shared<Flight>(comm, calls);
  machine.enqueue(stream, flight->departure());
  machine.enqueue(stream, flight->arrival());
}

}  // namespace nccl_stand_in
