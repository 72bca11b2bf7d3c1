// Communicators of ranks that are threads, for programs that start the threads themselves.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave {

/// One communicator for each of `ranks` threads, for programs that start their own threads; `run`
/// and `run_threads` do all of this.
///
/// Each must be used by one thread. A rank leaves when all its communicators are destroyed: peers
/// that wait for it then get an Error.
///
/// @throws Error if `ranks` is not positive
template <class Device = Host>
  requires std::is_same_v<Device, Host>
std::vector<std::shared_ptr<Communicator>> thread_communicators(int ranks);

}  // namespace cleave

#if !CLEAVE_COMPILED
#include <cleave/comm/thread/thread_communicator.hpp>
#endif
