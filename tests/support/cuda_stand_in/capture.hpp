// Graphs of operations, streams that are being captured into a graph, and events.
//
// Nodes of a graph that were captured on one stream run in order; others are ordered by the
// captured events. A launch enqueues the nodes of each captured stream on a separate stream, so
// that they run by the machine's rule, like any operation.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "machine.hpp"

namespace cuda_stand_in {

struct GraphNode {
  Operation operation;
  CUstream_st* stream = nullptr;   ///< on which it was captured
  std::vector<std::size_t> after;  ///< indices of earlier nodes
};

/// The nodes of a graph, shared by its handle, its executables and its launches.
struct GraphBody {
  std::vector<GraphNode> nodes;
  std::vector<void*> allocations;  ///< freed with this object

  GraphBody() = default;
  GraphBody(const GraphBody&) = delete;  // owns its allocations
  ~GraphBody();
};

/// The streams that take part in one capture, and the graph being built.
class Capture {
 public:
  explicit Capture(CUstream_st& origin);

  void add(CUstream_st& stream, Operation operation);
  /// The nodes that the stream's next one will follow.
  const std::vector<std::size_t>& tail(CUstream_st& stream) { return tails_[&stream]; }
  /// Makes the stream's next node follow these nodes too. The stream joins the capture.
  static void join(const std::shared_ptr<Capture>& capture, CUstream_st& stream,
                   const std::vector<std::size_t>& nodes);
  /// Ends the capture of all streams. The caller holds a reference.
  void finish();
  /// Makes the capture fail when it ends, because a call was made that cannot be captured.
  void invalidate() { valid_ = false; }

  bool valid() const { return valid_; }
  bool finished() const { return finished_; }
  unsigned long long number() const { return number_; }
  /// Whether the origin's tail comes after all nodes.
  bool joined();
  CUstream_st& origin() { return origin_; }
  const std::shared_ptr<GraphBody>& graph() { return graph_; }
  /// Call after `finish`: events recorded in the capture do not keep the graph alive.
  std::shared_ptr<GraphBody> take_graph() { return std::move(graph_); }

 private:
  unsigned long long number_;  ///< counts all captures
  CUstream_st& origin_;
  std::shared_ptr<GraphBody> graph_ = std::make_shared<GraphBody>();
  std::map<CUstream_st*, std::vector<std::size_t>> tails_;
  bool valid_ = true;
  bool finished_ = false;
};

}  // namespace cuda_stand_in

struct CUgraph_st {
  std::shared_ptr<cuda_stand_in::GraphBody> body;
};

struct CUgraphExec_st {
  std::shared_ptr<cuda_stand_in::GraphBody> body;
  std::map<CUstream_st*, CUstream_st*> streams{};  ///< where nodes run, by where they were captured
  cuda_stand_in::Point previous_launch{};          ///< launches of one executable run in order
};

/// A name for a point in a stream, or for nodes of a graph. Never deleted, so that use after
/// destruction is detected.
struct CUevent_st {
  cuda_stand_in::Device* device = nullptr;
  bool destroyed = false;
  int queries = 0;  ///< number answered with "not ready" since it was recorded

  cuda_stand_in::Point point;  ///< of the last record, if not captured; without a stream before it
  std::shared_ptr<cuda_stand_in::Capture> capture;  ///< set if the last record was captured;
  std::vector<std::size_t> nodes;                   ///< the nodes it then stands for
};
