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
#include <tuple>
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
    std::string text{};    ///< the same for all parts

    const TransferCall& made() const { return shipment->calls[call]; }
    const std::byte* sent() const { return shipment->sent[call].data(); }
  };
  std::vector<Part> parts{};  ///< by rank; of a send and receive: the sender's, the receiver's
  std::size_t missing = 0;
};

using Matches = std::vector<std::shared_ptr<Match>>;

struct Clique {
  std::string name{};
  int size = 0;
  std::vector<ncclComm*> members{};  ///< by rank; null before a rank joins and after it leaves
  int joined = 0;
  std::string refusal{};  ///< why the joined ranks cannot communicate; else empty
  int connected = 0;      ///< ranks that have called a collective
  /// The children of the ranks that have called the k-th split, by color, key and parent's rank.
  std::map<std::uint64_t, std::map<std::tuple<int, int, int>, ncclComm*>> splits{};

  /// Matches the calls of an operation that has its place in its stream.
  /// @return the matches, by call; fewer if the ranks disagree
  Matches add(const std::shared_ptr<Shipment>& shipment);
  /// Opens the latches of all operations that these matches complete.
  static void open(const Matches& matches);

 private:
  bool join(Match& match, const std::string& what, std::size_t place, Match::Part part);
  void disagree(const std::string& what, const Match::Part& a, const Match::Part& b);

  /// Number of calls made: of a rank's collectives, or from a sender to a receiver by either.
  std::map<std::tuple<std::size_t, int, int>, std::uint64_t> made_{};
  std::map<std::string, std::shared_ptr<Match>> open_{};  ///< by text: "collective 3"
};

}  // namespace nccl_stand_in
