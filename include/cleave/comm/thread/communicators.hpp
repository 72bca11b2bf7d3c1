// Communicators of ranks that are threads, for programs that start these themselves.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave {

/// One communicator for each of `ranks` threads, for programs that start their own; `run` and
/// `run_threads` do all of this.
///
/// Each is to be used by one thread. A rank whose communicators are all destroyed has left: peers
/// that wait for it get an Error.
///
/// @throws Error if `ranks` is not positive
template <class Device = Host>
  requires std::is_same_v<Device, Host>
std::vector<std::shared_ptr<Communicator>> thread_communicators(int ranks);

}  // namespace cleave

#if !CLEAVE_COMPILED
#include <cleave/comm/thread/communicator.hpp>
#endif
