// What ranks that share the GPUs of a process wait for: each other's streams.
//
// A rank enqueues its part of a collective and goes on; nothing waits on the host but at the
// barriers, where ranks learn what the others have enqueued. On the device the sources of all ranks
// are ready before any is read, and all reading is over before any rank's stream goes on.
#pragma once

#include <cleave/comm/thread/communicator.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::detail {

/// An event per point, recorded on the stream that is current at the call.
///
/// A point of the next collective is recorded only after every rank has asked for the one before:
/// barriers lie between them.
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

}  // namespace cleave::detail
