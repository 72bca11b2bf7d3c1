// CUDA graphs: a step of a program, enqueued once and replayed with one call.
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/error.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::cuda {

/// What a function enqueues on the current stream, ready to be launched again and again.
///
///     cuda::Graph step([&] { loss.copy_(train(x, w).local()); });   // runs nothing
///     for (int i = 0; i < 1000; ++i) step.launch();
///
/// The function runs once, on the host; every launch enqueues the same kernels, copies and
/// collectives on the same memory. Tensors made inside are the graph's: what is needed outside is
/// copied into tensors made before. Those have to live as long as the graph is launched: one that
/// the function lets go of is given back when it has been captured. Run the function once before,
/// so that buffers and plans that are made at first use are there. Ranks capture and launch in the
/// same order. Over NCCL every rank has a graph of its own; ranks that read each other's memory
/// (backend device_thread) cannot be captured, as their streams wait for each other, unless there
/// is only one.
class Graph {
 public:
  /// @throws Error if the function enqueues what cannot be captured: what waits on the host, among
  ///         others
  template <class F>
  explicit Graph(F&& f) {
    const Stream stream = current_stream();
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cuda::Graph");
    cudaGraph_t captured = nullptr;
    try {
      f();
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(stream.get(), &captured));
      static_cast<void>(cudaGetLastError());
      if (captured != nullptr) static_cast<void>(cudaGraphDestroy(captured));
      detail::FreedInCapture::of_thread().give_back();
      detail::KeptForGraph::of_thread().take();
      throw;
    }
    const cudaError_t status = cudaStreamEndCapture(stream.get(), &captured);
    detail::FreedInCapture::of_thread().give_back();
    auto kept = detail::KeptForGraph::of_thread().take();
    check(status, "cuda::Graph");
    const std::unique_ptr<CUgraph_st, Destroy> graph(captured);
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, captured, cudaGraphInstantiateFlagAutoFreeOnLaunch),
          "cuda::Graph");
    executable_.reset(made);
    if (!kept.empty()) kept_ = std::make_unique<Kept>(std::move(kept));
  }

  /// Enqueues everything on the current stream; returns at once.
  /// @throws Error if a rank has failed, among others
  void launch() const {
    const std::shared_ptr<FailureDetector> detector = detail::detector_slot().lock();
    if (detector != nullptr) detector->verify();
    check(cudaGraphLaunch(executable_.get(), current_stream().get()), "cuda::Graph::launch");
    if (kept_ != nullptr) kept_->launched.record(current_stream());
    if (detector != nullptr) detector->launched();
  }

 private:
  struct Destroy {
    void operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }
    void operator()(cudaGraphExec_t graph) const { static_cast<void>(cudaGraphExecDestroy(graph)); }
  };
  /// Memory that is the graph's, though not allocated in it: given back behind the last launch.
  struct Kept {
    explicit Kept(detail::KeptForGraph::Memory of) : memory(std::move(of)) {}
    Kept(const Kept&) = delete;  // the graph has one
    Kept& operator=(const Kept&) = delete;
    ~Kept() {
      try {
        if (!capture_of(current_stream())) launched.wait_on(current_stream());
      } catch (const std::exception&) {  // a broken device, on which nothing is at work
      }
    }

    detail::KeptForGraph::Memory memory;
    Event launched;
  };
  std::unique_ptr<Kept> kept_;
  std::unique_ptr<CUgraphExec_st, Destroy> executable_;
};

}  // namespace cleave::cuda
