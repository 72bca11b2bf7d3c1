// Runs a kernel: the threads of a block one after the other, each until it ends or waits.
//
// Mistakes of device code are faults that name the kernel, block, thread and line of the PTX:
// - an access that is not aligned to its size, or not within one allocation that is usable;
// - an access to shared memory that another thread accesses between the same two barriers, or
//   synchronizations of all threads of a warp, if one of them writes and not both are atomic;
// - a barrier that not all threads of the block reach, an instruction of a warp that not all
//   threads of its mask reach;
// - a thread that does not end.
// An instruction that the interpreter does not know is an error when its kernel is decoded.
// Registers, local and shared memory contain a pattern until they are written.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ptx_code.hpp"

namespace ptx {

using Extents = std::array<std::uint32_t, 3>;

/// A range of addresses.
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool holds(std::uintptr_t address, std::size_t bytes) const {
    return address >= begin && address <= end && bytes <= end - address;
  }
};

struct Launch {
  const Kernel* kernel = nullptr;
  Extents grid{1, 1, 1};
  Extents block{1, 1, 1};
  std::vector<std::uint64_t> frame{};  ///< with the parameters
  /// The usable memory that holds an address; an empty range if none does.
  std::function<Range(std::uintptr_t)> memory{};
  /// Orders the numbers of blocks and, between barriers, of threads; may be empty.
  std::function<void(std::span<std::uint32_t>)> reorder{};
};

/// The initial contents of frames, with what a launch passes as addresses of arguments.
std::vector<std::uint64_t> frame_of(const Kernel& kernel, void* const* arguments);

/// Runs all blocks. @throws Fault
void run(const Launch& launch);

/// Barriers that a thread has passed, and synchronizations of its warp.
struct Epoch {
  std::uint32_t of_block = 0;
  std::uint32_t of_warp = 0;
};

/// Who accessed a byte of shared memory, and when last: a thread, several threads of a warp, or
/// threads of several warps.
struct Access {
  static constexpr std::uint16_t several = 0xffff, of_warp = 0x8000;
  Epoch written_in{};
  Epoch read_in{};
  std::uint16_t writer = several;
  std::uint16_t reader = several;
  bool atomic = false;  ///< the last write
};

/// The block that is running.
struct Block {
  const Launch& launch;
  Extents index{};
  std::uint32_t threads = 0;
  std::uint32_t epoch = 1;                      ///< counts barriers
  std::array<std::uint32_t, 32> warp_epochs{};  ///< counts synchronizations of all its threads
  std::vector<std::uint64_t> shared{};
  std::vector<Access> accesses{};  ///< to bytes of shared memory
  std::array<Range, 4> known{};    ///< memory that was accessed last
  std::size_t next_known = 0;

  std::size_t shared_bytes() const { return accesses.size(); }
  std::byte* shared_begin() { return reinterpret_cast<std::byte*>(shared.data()); }
};

/// Completes an instruction that the threads of a warp wait at. @throws Fault
void exchange(std::span<Thread> warp);

/// The same for the reduction, if there is one, at the barrier that all threads wait at.
void finish_barrier(std::span<Thread> block);

}  // namespace ptx
