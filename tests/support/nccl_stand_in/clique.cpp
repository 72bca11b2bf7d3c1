#include "clique.hpp"

#include <algorithm>

#include "communicator.hpp"

namespace nccl_stand_in {
namespace {

std::string count_and_type(const TransferCall& call) {
  return std::to_string(call.count) + ' ' + name_of(call.type);
}

std::string text_in_group(const TransferCall& call, std::size_t place, std::size_t of) {
  std::string text = std::string(name_of(call.function)) + ": " + call.text();
  if (of > 1)
    text += " (" + std::to_string(place + 1) + " of " + std::to_string(of) +
            " collectives in its group)";
  return text;
}

std::shared_ptr<Match> new_match(std::size_t parts) {
  auto match = std::make_shared<Match>();
  match->parts.resize(parts);
  match->missing = parts;
  return match;
}

}  // namespace

std::vector<std::shared_ptr<Match>> Clique::add(const std::shared_ptr<Shipment>& shipment) {
  const auto collectives =
      std::size_t(std::count_if(shipment->calls.begin(), shipment->calls.end(),
                                [](const TransferCall& call) { return !call.to_one(); }));
  std::size_t collective = 0;
  std::vector<std::shared_ptr<Match>> matches;
  for (std::size_t i = 0; i < shipment->calls.size(); ++i) {
    const TransferCall& call = shipment->calls[i];
    const Slot slot =
        call.to_one() ? next_transfer(shipment->rank, call) : next_collective(shipment->rank);
    const std::string text =
        call.to_one() ? count_and_type(call) : text_in_group(call, collective++, collectives);
    const auto match = slot.open->try_emplace(slot.number, new_match(slot.parts)).first->second;
    matches.push_back(match);
    if (!join(*match, slot, {shipment, i, text})) return matches;
    if (match->missing == 0) slot.open->erase(slot.number);
  }
  return matches;
}

Clique::Slot Clique::next_collective(int rank) {
  const std::uint64_t number = begun_[rank]++;
  return {&collectives_, number, std::size_t(size), std::size_t(rank),
          "collective " + std::to_string(number + 1)};
}

Clique::Slot Clique::next_transfer(int rank, const TransferCall& call) {
  const bool sends = call.function == Function::send;
  const int from = sends ? rank : call.peer, to = sends ? call.peer : rank;
  Queue& queue = transfers_[{from, to}];
  const std::uint64_t number = sends ? queue.sent++ : queue.received++;
  return {&queue.open, number, 2, sends ? 0u : 1u,
          "transfer " + std::to_string(number + 1) + " from rank " + std::to_string(from) +
              " to rank " + std::to_string(to)};
}

void Clique::open(const std::vector<std::shared_ptr<Match>>& matches) {
  for (const auto& match : matches) {
    if (match->missing > 0) continue;
    for (const Match::Part& part : match->parts) {
      Shipment& one = *part.shipment;
      if (one.unmatched == 0 && !one.stalled && !one.withdrawn && !one.latch->open)
        Machine::get().open(*one.latch, one.needs);
    }
  }
}

bool Clique::join(Match& match, const Slot& slot, Match::Part part) {
  for (const Match::Part& other : match.parts) {
    if (other.shipment == nullptr || other.text == part.text) continue;
    disagree(slot.what, other, part);
    return false;
  }
  match.parts[slot.place] = std::move(part);
  if (--match.missing > 0) return true;
  bool registered = false, unregistered = false;
  for (const Match::Part& one : match.parts) {
    registered = registered || one.shipment->calls[one.call].registered;
    unregistered = unregistered || one.shipment->calls[one.call].unregistered;
  }
  if (registered && unregistered)
    Library::get().fault("registered and unregistered buffers in " + slot.what + " on " + name);
  for (Match::Part& one : match.parts) {
    --one.shipment->unmatched;
    for (const Match::Part& other : match.parts) {
      one.shipment->needs.push_back(other.shipment->departure);
      if (other.shipment->withdrawn) one.shipment->stalled = true;
    }
  }
  return true;
}

void Clique::disagree(const std::string& what, const Match::Part& a, const Match::Part& b) {
  const auto says = [](const Match::Part& part) {
    const TransferCall& call = part.shipment->calls[part.call];
    return "rank " + std::to_string(part.shipment->rank) + " calls " +
           (call.to_one() ? std::string(name_of(call.function)) + ": " + call.text() : part.text);
  };
  const bool in_order = a.shipment->rank < b.shipment->rank;
  const std::string text = "the ranks disagree about " + what + " on " + name + ": " +
                           says(in_order ? a : b) + ", " + says(in_order ? b : a);
  Library::get().fault(text);
  for (ncclComm* member : members)
    if (member != nullptr) member->fail(ncclInvalidUsage);
}

}  // namespace nccl_stand_in
