// The ranks of one communicator, and the matching of the calls they enqueue.
//
// Collectives are matched by their sequence number on the communicator, sends and receives by their
// sequence number between the two ranks. Everything here is protected by the machine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"
#include "cuda_stand_in/machine.hpp"

namespace nccl_stand_in {

using cuda_stand_in::Latch;
using cuda_stand_in::Lock;
using cuda_stand_in::Machine;
using cuda_stand_in::Point;

/// One operation of a rank, made of one call or a group of calls, as the other ranks see it.
struct Shipment {
  int rank = 0;
  std::vector<TransferCall> calls{};
  std::vector<std::vector<std::byte>> sent{};  ///< the input of each call, once departed
  std::shared_ptr<Latch> latch = std::make_shared<Latch>();  ///< opens when all calls are matched
  Point departure{};                                         ///< where the calls' inputs are read
  std::vector<Point> needs{};  ///< departures of all matching operations
  std::size_t unmatched = 0;   ///< number of calls
  bool withdrawn = false;      ///< will never depart
  bool stalled = false;        ///< a matching rank has withdrawn
  bool released = false;       ///< aborted: waits for no rank
};

/// Calls of several ranks that match.
struct Match {
  struct Part {
    std::shared_ptr<Shipment> shipment{};
    std::size_t call = 0;  ///< index in the shipment
    std::string text{};

    const std::vector<std::byte>& sent() const { return shipment->sent[call]; }
  };
  std::vector<Part> parts{};  ///< by rank; of a send and receive: the sender's, the receiver's
  std::size_t missing = 0;
};

struct Clique {
  std::string name;
  int size = 0;
  std::vector<ncclComm*> members{};  ///< by rank; null before a rank joins and after it leaves
  int joined = 0;
  std::string refusal{};  ///< why the joined ranks cannot communicate; else empty
  int connected = 0;      ///< ranks that have called a collective

  /// Matches the calls of an operation that has its place in its stream.
  /// @return the matches, by call; fewer if the ranks disagree
  std::vector<std::shared_ptr<Match>> add(const std::shared_ptr<Shipment>& shipment);
  /// Opens the latches of all operations that these matches complete. In eager order, they then
  /// run.
  static void open(const std::vector<std::shared_ptr<Match>>& matches);

  /// Counts the ranks that have reached a call which all ranks must make, such as a split.
  struct Meeting {
    int here = 0;
    std::vector<ncclComm*> brought{};  ///< by rank
    std::vector<std::pair<int, int>> colors_and_keys{};
  };
  std::map<std::uint64_t, Meeting> splits{};

 private:
  using OpenMatches = std::map<std::uint64_t, std::shared_ptr<Match>>;  ///< by sequence number

  struct Queue {
    std::uint64_t sent = 0, received = 0;
    OpenMatches open{};
  };
  /// The match that a call belongs to.
  struct Slot {
    OpenMatches* open;
    std::uint64_t number;
    std::size_t parts;  ///< number of calls in the match
    std::size_t place;  ///< index of this call in the match
    std::string what;   ///< "collective 3"
  };
  Slot next_collective(int rank);
  Slot next_transfer(int rank, const TransferCall& call);
  bool join(Match& match, const Slot& slot, Match::Part part);
  void disagree(const std::string& what, const Match::Part& a, const Match::Part& b);

  std::map<int, std::uint64_t> begun_;  ///< number of collectives begun, by rank
  OpenMatches collectives_;
  std::map<std::pair<int, int>, Queue> transfers_;
};

}  // namespace nccl_stand_in
