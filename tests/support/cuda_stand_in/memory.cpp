#include "memory.hpp"

#include "host_guard.hpp"

namespace cuda_stand_in {

Arena& Memory::arena(int device, int kind) {
  auto& arena = arenas_[{device, kind}];
  if (arena == nullptr) arena = std::make_unique<Arena>(addresses_, device, kind);
  return *arena;
}

std::size_t Memory::available(int device) const {
  std::size_t held = 0;
  for (const auto& [key, arena] : arenas_)
    if (key.first == device) held += arena->held();
  return held < bytes_per_device_ ? bytes_per_device_ - held : 0;
}

void Memory::observe(int device, const std::uint64_t (&thresholds)[arenas_per_device]) {
  for (auto& [key, arena] : arenas_) {
    if (key.first != device || !arena->pool()) continue;
    arena->observe();
    if (arena->held() > thresholds[key.second]) arena->trim();
  }
}

Arena* Memory::arena_of(const void* address) {
  for (auto& [key, arena] : arenas_)
    if (arena->contains(address)) return arena.get();
  return nullptr;
}

Place Memory::place(const void* address, std::size_t bytes) {
  if (Arena* arena = arena_of(address)) {
    Block* block = arena->find(address, bytes);
    return {Place::Kind::device, arena, block, block != nullptr && !block->freed};
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  auto after = pinned_.upper_bound(begin);
  if (after != pinned_.begin()) {
    const auto& [start, pinned] = *std::prev(after);
    if (begin < start + pinned.bytes)
      return {.kind = Place::Kind::pinned, .whole = bytes <= start + pinned.bytes - begin};
  }
  return {};
}

std::pair<std::uintptr_t, std::size_t> Memory::usable(const void* address) {
  if (Arena* arena = arena_of(address)) {
    const Block* block = arena->exposed() ? arena->find(address, 1) : nullptr;
    if (block == nullptr || !block->usable) return {0, 0};
    return {reinterpret_cast<std::uintptr_t>(arena->begin_of(address)), block->size};
  }
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto after = pinned_.upper_bound(at);
  if (after == pinned_.begin()) return {0, 0};
  const auto& [begin, pinned] = *std::prev(after);
  if (at - begin >= pinned.bytes) return {0, 0};
  return {begin, pinned.bytes};
}

void Memory::add_pinned(const void* begin, std::size_t bytes, bool ours) {
  pinned_[reinterpret_cast<std::uintptr_t>(begin)] = {bytes, ours};
}

std::ptrdiff_t Memory::remove_pinned(const void* begin, bool ours) {
  const auto found = pinned_.find(reinterpret_cast<std::uintptr_t>(begin));
  if (found == pinned_.end() || found->second.ours != ours) return -1;
  const std::size_t bytes = found->second.bytes;
  pinned_.erase(found);
  return std::ptrdiff_t(bytes);
}

void Memory::expose(ArenaSet set) {
  for (auto& [key, arena] : arenas_) {
    if (set.has(key.first, key.second)) {
      arena->expose();
    } else {
      arena->hide();
    }
  }
}

void Memory::hide() {
  expose(ArenaSet::none());
  keep_guard();
}

}  // namespace cuda_stand_in
