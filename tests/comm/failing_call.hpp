// A collective of each kind, and ranks that fail while the others are inside it. Used for threads
// and processes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::testing {

inline constexpr std::array all_kinds{
    CollectiveKind::barrier,    CollectiveKind::broadcast,  CollectiveKind::scatter,
    CollectiveKind::gather,     CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
    CollectiveKind::all_reduce, CollectiveKind::all_to_all, CollectiveKind::exchange};

/// One call of the given kind with `count` floats from or to every rank; values are not checked.
inline void communicate(Communicator& group, CollectiveKind kind, index_t count) {
  const int n = group.size(), rank = group.rank();
  const Tensor<float, 1> piece({count}), whole({n * count}), result({n * count});
  whole.fill_(1);
  piece.fill_(1);
  std::vector<Box> pieces;
  std::vector<Transfer> transfers;
  for (int r = 0; r < n; ++r) {
    pieces.push_back({Shape::filled(1, r * count), Shape::filled(1, (r + 1) * count)});
    transfers.push_back({r, pieces.back(), pieces.back()});
  }
  Collective c;
  c.kind = kind;
  c.pieces = pieces;
  switch (kind) {
    case CollectiveKind::barrier: break;
    case CollectiveKind::broadcast:
      if (rank == 0) c.source = whole.view();
      else c.destination = result.view();
      break;
    case CollectiveKind::scatter:
      if (rank == 0) c.source = whole.view();
      c.destination = piece.view();
      break;
    case CollectiveKind::gather:
      c.source = piece.view();
      if (rank == 0) c.destination = result.view();
      break;
    case CollectiveKind::all_gather:
      c.source = piece.view();
      c.destination = result.view();
      break;
    case CollectiveKind::reduce_scatter:
      c.source = whole.view();
      c.destination = piece.view();
      break;
    case CollectiveKind::all_reduce:
      c.source = whole.view();
      c.destination = result.view();
      break;
    case CollectiveKind::all_to_all:
    case CollectiveKind::exchange:
      for (Transfer& t : transfers) {  // rank r's piece of every rank
        const Box mine = pieces[std::size_t(rank)];
        if (t.peer != rank) t.source = t.destination = mine;
      }
      c.sends = transfers;
      c.receives = transfers;
      c.source = whole.view();
      c.destination = result.view();
      break;
  }
  group.run(c);
}

inline void nap(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// How a rank fails: throws an exception, returns early, or is silent for longer than the time-out.
enum class Failing { throws, leaves, stalls };
inline constexpr std::array all_failings{Failing::throws, Failing::leaves, Failing::stalls};

/// CLEAVE_TEST_REPEAT, or `otherwise` if it is not set.
inline int repetitions(int otherwise) {
  const char* text = std::getenv("CLEAVE_TEST_REPEAT");
  return text == nullptr ? otherwise : std::atoi(text);
}

/// One rank fails while all others are inside a call or in the barrier after it: a rank that
/// receives nothing from the failing rank may complete the call before the failure.
/// @throws what the rank throws or catches
inline void fail_inside(World& world, CollectiveKind kind, index_t count, int failing,
                        Failing way) {
  Communicator& group = world.communicator();
  if (world.rank() == failing) {
    if (way == Failing::throws) throw std::runtime_error("planted");
    if (way == Failing::leaves) return;
    nap(5 * group.state().timeout_seconds);  // a loaded machine delays the other ranks, too
  }
  communicate(group, kind, count);
  communicate(group, CollectiveKind::barrier, 0);
}

/// The text that the other ranks' errors must contain.
inline std::string blame(int failing, Failing way) {
  const std::string who = "rank " + std::to_string(failing);
  if (way == Failing::throws) return who + " failed: planted";
  if (way == Failing::leaves) return who + " left while rank ";
  return who + " did not reach ";
}

/// Whether a rank has seen the right error: the other ranks blame the failing one, and a rank that
/// stalled is told.
inline bool is_told(const std::string& seen, int rank, int failing, Failing way) {
  if (rank != failing || way == Failing::stalls)
    return seen.find(blame(failing, way)) != std::string::npos;
  return seen == (way == Failing::throws ? "planted" : "");
}

}  // namespace cleave::testing
