// CUDA graphs: a step of a program, captured once and replayed with one call.
#pragma once

#include <memory>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::inline v0::cuda {

/// The work that a function enqueues on the current stream, captured for repeated launches.
///
///     cuda::Graph step([&] { loss.copy_(train(x, w).to_local()); });   // runs nothing
///     for (int i = 0; i < 1000; ++i) step.launch();
///
/// The function runs once, on the host; every launch enqueues the same kernels, copies and
/// collectives on the same memory. Tensors created inside belong to the graph: copy results that
/// are needed outside into tensors created before. These must exist as long as the graph is
/// launched: a tensor that the function releases is freed after the capture. Run the function once
/// before, so that buffers and plans that are created at first use exist. Ranks capture and launch
/// in the same order. With NCCL every rank has its own graph; ranks that read each other's memory
/// (backend device_thread) cannot be captured, as their streams wait for each other, unless there
/// is only one rank.
class Graph {
 public:
  /// @throws Error if the function does something that cannot be captured, e.g. waits on the host
  template <class F>
  explicit Graph(F&& f) {
    const Stream stream = current_stream();
    ++detail::captures_under_way();
    const std::shared_ptr<void> counted(nullptr, [](void*) { --detail::captures_under_way(); });
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cuda::Graph");
    cudaGraph_t captured = nullptr;
    try {
      f();
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(stream.get(), &captured));
      static_cast<void>(cudaGetLastError());
      if (captured != nullptr) static_cast<void>(cudaGraphDestroy(captured));
      detail::FreedInCapture::of_thread().give_back();
      throw;
    }
    const cudaError_t status = cudaStreamEndCapture(stream.get(), &captured);
    detail::FreedInCapture::of_thread().give_back();
    check(status, "cuda::Graph");
    const std::unique_ptr<CUgraph_st, Destroy> graph(captured);
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, captured, cudaGraphInstantiateFlagAutoFreeOnLaunch),
          "cuda::Graph");
    executable_.reset(made);
  }

  /// Enqueues the graph on the current stream; returns at once, unless the device has too little
  /// memory for the graph: then idle memory is released first. @see release_idle
  /// @throws Error if a rank has failed, or the launch fails
  void launch() const {
    const std::shared_ptr<FailureDetector> detector = detail::detector_slot().lock();
    if (detector != nullptr) detector->verify();
    const auto launch = [&] { return cudaGraphLaunch(executable_.get(), current_stream().get()); };
    check(detail::with_idle_memory(launch), "cuda::Graph::launch");
    if (detector != nullptr) detector->launched();
  }

 private:
  struct Destroy {
    void operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }
    void operator()(cudaGraphExec_t graph) const { static_cast<void>(cudaGraphExecDestroy(graph)); }
  };
  std::unique_ptr<CUgraphExec_st, Destroy> executable_;
};

}  // namespace cleave::inline v0::cuda
