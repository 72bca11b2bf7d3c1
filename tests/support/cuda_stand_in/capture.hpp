// Graphs of operations, and streams that are being captured into a graph.
//
// A graph keeps the streams it was captured from as lanes. Nodes of a lane run in order; nodes of
// different lanes are ordered by the captured events. A launch enqueues every lane on a separate
// hidden stream, so that nodes run by the machine's rule, like any operation.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "machine.hpp"

namespace cuda_stand_in {

struct GraphNode {
  Operation operation;
  std::size_t lane = 0;
  std::vector<std::size_t> after;  ///< indices of earlier nodes
};

/// The nodes of a graph, shared by its handle, its executables and its launches.
struct GraphBody {
  Device* device = nullptr;
  std::vector<GraphNode> nodes;
  std::size_t lanes = 0;
  std::vector<void*> allocations;  ///< freed with this object

  GraphBody() = default;
  GraphBody(const GraphBody&) = delete;  // owns its allocations
  ~GraphBody();
};

/// The streams that take part in one capture, and the graph being built.
class Capture {
 public:
  Capture(CUstream_st& origin, cudaStreamCaptureMode mode);

  void add(CUstream_st& stream, Operation operation);
  /// The nodes that the stream's next one will follow.
  const std::vector<std::size_t>& tail(CUstream_st& stream) { return lanes_[&stream].tail; }
  /// Makes the stream's next node follow these nodes too. The stream joins the capture.
  static void join(const std::shared_ptr<Capture>& capture, CUstream_st& stream,
                   const std::vector<std::size_t>& nodes);
  /// Ends the capture of all streams.
  void finish();
  /// Makes the capture fail when it ends, because a call was made that cannot be captured.
  void invalidate() { valid_ = false; }

  bool valid() const { return valid_; }
  bool finished() const { return finished_; }
  unsigned long long number() const { return number_; }
  /// Whether the origin's tail comes after all nodes.
  bool joined();
  CUstream_st& origin() { return origin_; }
  /// Whether this thread may make unsafe calls during the capture.
  bool tolerates_unsafe_calls() const;
  const std::shared_ptr<GraphBody>& graph() { return graph_; }
  /// Call after `finish`: events recorded in the capture do not keep the graph alive.
  std::shared_ptr<GraphBody> take_graph() { return std::move(graph_); }

 private:
  struct Lane {
    std::size_t index = 0;
    std::vector<std::size_t> tail;
  };
  Lane& lane(CUstream_st& stream);

  unsigned long long number_;  ///< counts all captures
  CUstream_st& origin_;
  cudaStreamCaptureMode mode_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::shared_ptr<GraphBody> graph_ = std::make_shared<GraphBody>();
  std::map<CUstream_st*, Lane> lanes_;
  bool valid_ = true;
  bool finished_ = false;
};

/// The error of a call that must not be made while a stream is captured. Such a capture fails.
cudaError_t refuse_while_capturing(Machine& machine);

}  // namespace cuda_stand_in

struct CUgraph_st {
  std::shared_ptr<cuda_stand_in::GraphBody> body;
};

struct CUgraphExec_st {
  std::shared_ptr<cuda_stand_in::GraphBody> body;
  std::vector<CUstream_st*> lanes{};       ///< hidden streams
  cuda_stand_in::Point previous_launch{};  ///< launches of one executable run in order
};
