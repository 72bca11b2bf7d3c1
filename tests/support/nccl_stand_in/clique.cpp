#include "clique.hpp"

#include <algorithm>
#include <utility>

#include "communicator.hpp"

namespace nccl_stand_in {

Matches Clique::add(const std::shared_ptr<Shipment>& shipment) {
  const auto& calls = shipment->calls;
  const auto collectives =
      std::ranges::count_if(calls, [](const TransferCall& call) { return !call.to_one(); });
  int collective = 0;
  Matches matches;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const TransferCall& call = calls[i];
    int from = -1, to = -1;
    std::size_t place = std::size_t(shipment->rank), parts = std::size_t(size);
    std::string what = "collective ", pair, text = call.text();
    if (call.to_one()) {
      from = call.sends() ? shipment->rank : *call.peer;
      to = call.sends() ? *call.peer : shipment->rank;
      place = call.sends() ? 0 : 1;
      parts = 2;
      what = "transfer ";
      pair = " from rank " + std::to_string(from) + " to rank " + std::to_string(to);
      text = call.data();
    } else if (collectives > 1) {
      text += " (" + std::to_string(++collective) + " of " + std::to_string(collectives) +
              " collectives in its group)";
    }
    what += std::to_string(++made_[{place, from, to}]) + pair;
    std::shared_ptr<Match>& match = open_[what];
    if (match == nullptr) match = std::make_shared<Match>(std::vector<Match::Part>(parts), parts);
    matches.push_back(match);
    if (!join(*match, what, place, {shipment, i, text})) return matches;
    if (match->missing == 0) open_.erase(what);
  }
  return matches;
}

void Clique::open(const Matches& matches) {
  for (const auto& match : matches) {
    if (match->missing > 0) continue;
    for (const Match::Part& part : match->parts) {
      Shipment& one = *part.shipment;
      if (one.unmatched == 0 && !one.stalled && !one.withdrawn && !one.latch->open)
        Machine::get().open(*one.latch, one.needs);
    }
  }
}

bool Clique::join(Match& match, const std::string& what, std::size_t place, Match::Part part) {
  for (const Match::Part& other : match.parts) {
    if (other.shipment == nullptr || other.text == part.text) continue;
    disagree(what, other, part);
    return false;
  }
  match.parts[place] = std::move(part);
  if (--match.missing > 0) return true;
  bool registered = false, unregistered = false;
  for (const Match::Part& one : match.parts) {
    registered = registered || one.made().registered;
    unregistered = unregistered || one.made().unregistered;
    --one.shipment->unmatched;
    for (const Match::Part& other : match.parts) {
      one.shipment->needs.push_back(other.shipment->departure);
      if (other.shipment->withdrawn) one.shipment->stalled = true;
    }
  }
  if (registered && unregistered)
    Library::get().fault("registered and unregistered buffers in " + what + " on " + name);
  return true;
}

void Clique::disagree(const std::string& what, const Match::Part& a, const Match::Part& b) {
  const auto says = [](const Match::Part& part) {
    return "rank " + std::to_string(part.shipment->rank) + " calls " +
           (part.made().to_one() ? part.made().text() : part.text);
  };
  const bool in_order = a.shipment->rank < b.shipment->rank;
  Library::get().fault("the ranks disagree about " + what + " on " + name + ": " +
                       says(in_order ? a : b) + ", " + says(in_order ? b : a));
  for (ncclComm* member : members)
    if (member != nullptr) member->fail(ncclInvalidUsage);
}

}  // namespace nccl_stand_in
