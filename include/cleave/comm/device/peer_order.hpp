// The order among the streams of ranks that are threads of one process.
//
// A rank enqueues its copies and reductions and continues; the host waits only at the barriers,
// where ranks learn what their peers have enqueued. On the device, the sources of all ranks are
// ready before any is read, and all reads have ended before any rank's stream continues.
#pragma once

#include <cleave/comm/thread/thread_communicator.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::inline v0::detail {

/// An event per point, recorded on the stream that is current at the call.
///
/// A rank records a point of the next collective only after every peer has waited for the previous
/// one: barriers separate them.
template <>
class PeerOrder<Cuda> {
 public:
  static constexpr const char* backend = "device_thread";
  static constexpr bool concurrent = false;  // work is asynchronous without a second thread
  static constexpr index_t short_bytes = 256 * 1024;

  void mark(PeerPoint point) { event(point).record(cuda::current_stream()); }
  void await(const PeerOrder& peer, PeerPoint point) {
    peer.event(point).wait_on(cuda::current_stream());
  }

 private:
  const cuda::Event& event(PeerPoint point) const { return events_[std::size_t(point)]; }

  cuda::Event events_[3];
};

}  // namespace cleave::inline v0::detail
