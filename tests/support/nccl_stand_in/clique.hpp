// The ranks of one communicator, and the matching of what they enqueue.
//
// Collectives are matched by their number on the communicator, sends and receives by their number
// among those from one rank to another. All of this is under the lock of the machine.
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

/// What one operation of a rank, of one call or a group of them, gives to the other ranks.
struct Shipment {
  int rank = 0;
  std::vector<TransferCall> calls{};
  std::vector<std::vector<std::byte>> sent{};  ///< what each call reads, once it has left
  std::shared_ptr<Latch> latch = std::make_shared<Latch>();  ///< opens when all calls are matched
  Point departure{};                                      ///< where the calls' inputs are read
  std::vector<Point> needs{};                             ///< departures of all that match
  std::size_t unmatched = 0;                              ///< calls
  bool withdrawn = false;                                 ///< will never leave
  bool stalled = false;                                   ///< a rank that matches has withdrawn
  bool released = false;                                  ///< aborted: waits for nobody
};

/// Calls of several ranks that belong together.
struct Match {
  struct Part {
    std::shared_ptr<Shipment> shipment{};
    std::size_t call = 0;  ///< which of the shipment's
    std::string text{};

    const std::vector<std::byte>& sent() const { return shipment->sent[call]; }
  };
  std::vector<Part> parts{};  ///< by rank; of a transfer: the sender's and the receiver's
  std::size_t missing = 0;
};

struct Clique {
  std::string name;
  int size = 0;
  std::vector<ncclComm*> members{};  ///< by rank; null before a rank joins, and when it has gone
  int joined = 0;
  std::string refusal{};  ///< why the ranks that have joined cannot communicate, if they cannot
  int connected = 0;      ///< ranks that have called a collective

  /// Matches the calls of an operation whose place in its stream is known.
  /// @return the matches, by call; fewer if the ranks disagree
  std::vector<std::shared_ptr<Match>> add(const std::shared_ptr<Shipment>& shipment);
  /// Opens the latches of all that can go on since these matches were made. In eager order, it
  /// does.
  static void open(const std::vector<std::shared_ptr<Match>>& matches);

  /// How often each rank has come to a call that all must make, such as a split.
  struct Meeting {
    int here = 0;
    std::vector<ncclComm*> brought{};  ///< by rank
    std::vector<std::pair<int, int>> colors_and_keys{};
  };
  std::map<std::uint64_t, Meeting> splits{};

 private:
  using OpenMatches = std::map<std::uint64_t, std::shared_ptr<Match>>;  ///< by number

  struct Queue {
    std::uint64_t sent = 0, received = 0;
    OpenMatches open{};
  };
  /// Where a call belongs.
  struct Slot {
    OpenMatches* open;
    std::uint64_t number;
    std::size_t parts;  ///< calls that belong together
    std::size_t place;  ///< of this one among them
    std::string what;   ///< "collective 3"
  };
  Slot next_collective(int rank);
  Slot next_transfer(int rank, const TransferCall& call);
  bool join(Match& match, const Slot& slot, Match::Part part);
  void disagree(const std::string& what, const Match::Part& a, const Match::Part& b);

  std::map<int, std::uint64_t> begun_;  ///< collectives, by rank
  OpenMatches collectives_;
  std::map<std::pair<int, int>, Queue> transfers_;
};

}  // namespace nccl_stand_in
