// All memory that the machine knows: device memory, in arenas, and pinned host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arena.hpp"
#include "settings.hpp"

namespace cuda_stand_in {

/// For cudaMalloc, the default pool, and pools that are created.
inline constexpr int arenas_per_device = 4;
static_assert(arenas_per_device * max_devices <= 64);  // the bits of an ArenaSet

/// A set of arenas, by device and kind, or those that a kernel of the operation's device may touch.
class ArenaSet {
 public:
  static constexpr ArenaSet own() { return ArenaSet(0, true); }
  static constexpr ArenaSet none() { return ArenaSet(0, false); }
  static constexpr ArenaSet all() { return ArenaSet(~std::uint64_t(0), false); }
  static constexpr ArenaSet of(int device, int kind) {
    return ArenaSet(std::uint64_t(1) << (arenas_per_device * device + kind), false);
  }
  static constexpr ArenaSet of(int device) {
    return of(device, 0) | of(device, 1) | of(device, 2) | of(device, 3);
  }

  constexpr ArenaSet operator|(ArenaSet other) const {
    return ArenaSet(bits_ | other.bits_, own_ || other.own_);
  }
  constexpr bool has(int device, int kind) const {
    return (bits_ >> (arenas_per_device * device + kind) & 1) != 0;
  }
  constexpr bool has_own() const { return own_; }

 private:
  constexpr ArenaSet(std::uint64_t bits, bool own) : bits_(bits), own_(own) {}

  std::uint64_t bits_;
  bool own_;
};

/// The memory that holds a range of addresses.
struct Place {
  enum class Kind { device, pinned, pageable };
  Kind kind = Kind::pageable;
  Arena* arena = nullptr;  ///< null for host memory
  Block* block = nullptr;  ///< device memory: null unless a single block holds the range
  bool whole = true;       ///< whether one allocation holds the whole range, as far as known

  bool on_device() const { return kind == Kind::device; }
};

class Memory {
 public:
  /// Addresses are twice the bytes: memory of gaps that are too small can be used elsewhere.
  explicit Memory(std::size_t bytes_per_device)
      : bytes_per_device_(bytes_per_device), addresses_(2 * bytes_per_device) {}

  Arena& arena(int device, int kind);
  /// The arena that holds the address; null if none does.
  Arena* arena_of(const void* address);
  Place place(const void* address, std::size_t bytes);
  /// The allocation that holds the address, if operations may use it now: its first byte, as an
  /// integer, and its bytes. {0, 0} otherwise.
  std::pair<std::uintptr_t, std::size_t> usable(const void* address);
  std::size_t bytes_per_device() const { return bytes_per_device_; }
  void set_bytes_per_device(std::size_t bytes) { bytes_per_device_ = bytes; }
  /// Bytes of the device that no arena holds.
  std::size_t available(int device) const;
  /// The host has waited for work of the device: pools that hold more than their thresholds release
  /// memory. @param thresholds  by kind
  void observe(int device, const std::uint64_t (&thresholds)[arenas_per_device]);

  void add_pinned(const void* begin, std::size_t bytes, bool ours);
  /// @return the bytes pinned from the address on; -1 if none were pinned by cudaHostAlloc (`ours`)
  /// or by cudaHostRegister (otherwise)
  std::ptrdiff_t remove_pinned(const void* begin, bool ours);

  /// Exposes exactly these arenas.
  void expose(ArenaSet arenas);
  void hide();

 private:
  struct Pinned {
    std::size_t bytes;
    bool ours;  ///< allocated by cudaHostAlloc, not registered
  };

  std::size_t bytes_per_device_;
  std::size_t addresses_;  ///< of an arena, in bytes
  std::map<std::pair<int, int>, std::unique_ptr<Arena>> arenas_;
  std::map<std::uintptr_t, Pinned> pinned_;
};

}  // namespace cuda_stand_in
