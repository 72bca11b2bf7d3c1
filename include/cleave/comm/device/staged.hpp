// Collectives on device memory through a communicator of host memory.
//
// For processes without NCCL, or that share a GPU, which NCCL refuses. Non-contiguous views are
// packed on the device, so that one copy per tensor crosses the bus each way. A tensor is copied to
// pageable host memory through pinned blocks of a fixed size; the host waits for the copies.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/transfer.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::detail {

/// A dense copy of a view in host memory.
class Staged {
 public:
  explicit Staged(const ConstView& view)
      : bytes_(holds_nothing(view) ? 0 : std::size_t(view.bytes())),
        memory_(bytes_ == 0 ? nullptr : allocate_bytes(Host{}, bytes_)),
        view_(View::dense(memory_.get(), view.dtype, view.extents)) {}

  const View& view() const noexcept { return view_; }

  void fetch(const ConstView& from) const {
    if (bytes_ == 0) return;
    std::shared_ptr<void> packed;
    if (!from.contiguous()) {
      packed = allocate_bytes(Cuda{}, bytes_);
      strided_copy(Cuda{}, from, View::dense(packed.get(), from.dtype, from.extents));
    }
    transfer(Cuda{}, Host{}, packed == nullptr ? from.data : packed.get(), view_.data, bytes_,
             "redistribute");
  }

  void store(const View& to) const {
    if (bytes_ == 0) return;
    std::shared_ptr<void> packed;
    if (!to.contiguous()) packed = allocate_bytes(Cuda{}, bytes_);
    transfer(Host{}, Cuda{}, view_.data, packed == nullptr ? to.data : packed.get(), bytes_,
             "redistribute");
    if (packed != nullptr)
      strided_copy(Cuda{}, ConstView::dense(packed.get(), to.dtype, to.extents), to);
  }

 private:
  std::size_t bytes_;
  std::shared_ptr<void> memory_;
  View view_;
};

class StagedCommunicator final : public Communicator {
 public:
  /// @param host  the same ranks; must outlive this object if the pointer does not own it
  explicit StagedCommunicator(std::shared_ptr<Communicator> host)
      : Communicator(host->rank(), host->size(), host->label(), host->shared_state()),
        host_(std::move(host)) {}

  const char* backend() const noexcept override { return "staged"; }
  Communicator& host() noexcept override { return *host_; }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    return std::make_shared<StagedCommunicator>(host_->subgroup(ranks, std::move(label)));
  }

 protected:
  void execute(std::span<const Collective> calls) override {
    std::vector<Collective> staged(calls.begin(), calls.end());
    std::vector<Staged> sources, destinations;
    for (Collective& c : staged) {
      // elements that no rank sends to keep their values: the whole destination is copied back
      destinations.emplace_back(ConstView(c.destination)).fetch(c.destination);
      sources.emplace_back(c.source).fetch(c.source);
      c.source = sources.back().view();
      c.destination = destinations.back().view();
    }
    pass_on(*host_, staged);
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (calls[i].kind != CollectiveKind::broadcast || rank() != calls[i].root)
        destinations[i].store(calls[i].destination);
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    pass_on(*host_, mine, all);
  }

 private:
  std::shared_ptr<Communicator> host_;
};

}  // namespace cleave::inline v0::detail
