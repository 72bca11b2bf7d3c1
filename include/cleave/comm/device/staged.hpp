// Device memory through a communicator that passes the host's: staged in pinned memory.
//
// For processes without NCCL, or that share a GPU, which NCCL refuses. What is not dense is packed
// on the device, so that one copy per tensor crosses the bus each way. The host waits for the
// copies: MPI reads and writes the staging memory itself.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/kernels/cuda/strided_copy.hpp>
#include <cleave/tensor/cuda/transfer.hpp>

namespace cleave::detail {

/// A dense copy of a view in pinned memory.
class Staged {
 public:
  explicit Staged(const ConstView& view)
      : memory_(holds_nothing(view) ? nullptr
                                    : cuda::PinnedPool::get().take(std::size_t(view.bytes()))),
        view_(View::dense(memory_.get(), view.dtype, view.extents)) {}

  const View& view() const noexcept { return view_; }

  /// Enqueues the copy from the device. @return what has to live until it has run
  std::shared_ptr<void> fetch(const ConstView& from) const {
    if (memory_ == nullptr) return nullptr;
    std::shared_ptr<void> packed;
    const void* source = from.data;
    if (!from.contiguous()) {
      packed = allocate_bytes(Cuda{}, std::size_t(from.bytes()));
      strided_copy(Cuda{}, from, View::dense(packed.get(), from.dtype, from.extents));
      source = packed.get();
    }
    copy(source, view_.data, cudaMemcpyDeviceToHost);
    return packed;
  }

  /// Enqueues the copy back to the device.
  void store(const View& to) const {
    if (memory_ == nullptr) return;
    if (to.contiguous()) return copy(view_.data, to.data, cudaMemcpyHostToDevice);
    const std::shared_ptr<void> packed = allocate_bytes(Cuda{}, std::size_t(to.bytes()));
    copy(view_.data, packed.get(), cudaMemcpyHostToDevice);
    strided_copy(Cuda{}, ConstView::dense(packed.get(), to.dtype, to.extents), to);
  }

 private:
  void copy(const void* from, void* to, cudaMemcpyKind kind) const {
    cuda::check(
        cudaMemcpyAsync(to, from, std::size_t(view_.bytes()), kind, cuda::current_stream().get()),
        "redistribute");
  }

  std::shared_ptr<void> memory_;
  View view_;
};

/// Waits for the copies of a scope before its staging memory is used again, also where an error
/// ends the scope. Declared behind what owns the memory.
class CopiesEnd {
 public:
  CopiesEnd() = default;
  CopiesEnd(const CopiesEnd&) = delete;  // the scope has one
  CopiesEnd& operator=(const CopiesEnd&) = delete;
  ~CopiesEnd() {
    if (!over_ && cudaStreamSynchronize(cuda::current_stream().get()) != cudaSuccess)
      static_cast<void>(cudaGetLastError());  // an error is on its way already
  }

  /// @throws Error if a copy, or something enqueued before it, failed
  void wait() {
    over_ = true;
    cuda::current_stream().synchronize();
  }

 private:
  bool over_ = false;
};

class StagedCommunicator final : public Communicator {
 public:
  /// @param host  the same ranks; outlives this one if it is not held by the pointer
  explicit StagedCommunicator(std::shared_ptr<Communicator> host)
      : Communicator(host->rank(), host->size(), host->label(), host->shared_state()),
        host_(std::move(host)) {}

  const char* backend() const noexcept override { return "staged"; }
  Communicator& host() noexcept override { return *host_; }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    return std::make_shared<StagedCommunicator>(host_->subgroup(ranks, std::move(label)));
  }

 protected:
  void execute(const Collective& collective) override { execute_all({&collective, 1}); }

  void execute_all(std::span<const Collective> calls) override {
    std::vector<Collective> staged(calls.begin(), calls.end());
    std::vector<Staged> sources, destinations;
    std::vector<std::shared_ptr<void>> packed;
    CopiesEnd copies;
    for (Collective& c : staged) {
      // what no rank sends to stays as it is: the copy back is of everything
      packed.push_back(destinations.emplace_back(ConstView(c.destination)).fetch(c.destination));
      packed.push_back(sources.emplace_back(c.source).fetch(c.source));
      c.source = sources.back().view();
      c.destination = destinations.back().view();
    }
    cuda::current_stream().synchronize();
    pass_on(*host_, staged);
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (calls[i].kind != CollectiveKind::broadcast || rank() != calls[i].root)
        destinations[i].store(calls[i].destination);
    copies.wait();
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    pass_on(*host_, mine, all);
  }

 private:
  std::shared_ptr<Communicator> host_;
};

}  // namespace cleave::detail
