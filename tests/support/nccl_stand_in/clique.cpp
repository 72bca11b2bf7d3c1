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

}  // namespace

std::vector<std::shared_ptr<Match>> Clique::add(const std::shared_ptr<Shipment>& shipment) {
  const int rank = shipment->rank;
  const auto is_collective = [](const TransferCall& call) { return !call.to_one(); };
  const auto in_group = std::size_t(
      std::count_if(shipment->calls.begin(), shipment->calls.end(), is_collective));
  std::size_t place_in_group = 0;
  std::vector<std::shared_ptr<Match>> matches;
  for (std::size_t i = 0; i < shipment->calls.size(); ++i) {
    const TransferCall& call = shipment->calls[i];
    std::map<std::uint64_t, std::shared_ptr<Match>>* open = &collectives_;
    std::uint64_t number;
    std::size_t parts = std::size_t(size), place = std::size_t(rank);
    std::string what, text;
    if (call.to_one()) {
      const bool sends = call.function == Function::send;
      const int from = sends ? rank : call.peer, to = sends ? call.peer : rank;
      Queue& queue = transfers_[{from, to}];
      open = &queue.open;
      number = sends ? queue.sent++ : queue.received++;
      parts = 2;
      place = sends ? 0 : 1;
      what = "transfer " + std::to_string(number + 1) + " from rank " + std::to_string(from) +
             " to rank " + std::to_string(to);
      text = count_and_type(call);
    } else {
      number = begun_[rank]++;
      what = "collective " + std::to_string(number + 1);
      text = text_in_group(call, place_in_group++, in_group);
    }
    std::shared_ptr<Match>& match = (*open)[number];
    if (match == nullptr) {
      match = std::make_shared<Match>();
      match->parts.resize(parts);
      match->missing = parts;
    }
    matches.push_back(match);
    if (!this->match(*match, place, {shipment, i, text}, what)) return matches;
    if (matches.back()->missing == 0) open->erase(number);
  }
  return matches;
}

void Clique::open(Lock& lock, std::vector<std::shared_ptr<Match>> matches) {
  for (const auto& match : matches) {
    if (match->missing > 0) continue;
    for (const Match::Part& part : match->parts) {
      Shipment& one = *part.shipment;
      if (one.unmatched == 0 && !one.stalled && !one.withdrawn && !one.gate->open)
        Machine::get().open(lock, *one.gate, one.needs);
    }
  }
}

bool Clique::match(Match& match, std::size_t place, Match::Part part, const std::string& what) {
  for (const Match::Part& other : match.parts) {
    if (other.shipment == nullptr || other.text == part.text) continue;
    disagree(what, other, part);
    return false;
  }
  match.parts[place] = std::move(part);
  if (--match.missing > 0) return true;
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
