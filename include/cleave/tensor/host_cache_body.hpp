// The cache of host memory: keeping blocks, and taking them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/tensor/host_cache.hpp>

namespace cleave::inline v0::detail {

CLEAVE_INLINE void* HostCache::allocate(std::size_t bytes) noexcept {
  if (bytes > max_bytes) return nullptr;
  const std::size_t size = block_bytes(bytes);
  void* data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Kept>& blocks = kept_[place_of(size)];
    if (!blocks.empty()) {
      data = blocks.back().data;
      blocks.pop_back();
      stats_.cached -= size;
      ++stats_.reused;
      hold(size);
    }
  }
  if (data == nullptr) data = fresh(size);
  if (data == nullptr) return nullptr;
  unpoison(data, bytes);
  poison(static_cast<std::byte*>(data) + bytes, size - bytes);
  return data;
}

CLEAVE_INLINE void HostCache::deallocate(void* data, std::size_t bytes) noexcept {
  const std::size_t size = block_bytes(bytes);
  {
    const std::lock_guard lock(mutex_);
    stats_.allocated -= size;
    if (size <= limit_) {
      try {
        kept_[place_of(size)].push_back({data, ++clock_});
        poison(data, size);
        stats_.cached += size;
        data = nullptr;
      } catch (...) {  // no memory for the list: free the block
      }
    }
    while (stats_.cached > limit_) free_oldest();
  }
  if (data != nullptr) to_heap(data, size);
}

CLEAVE_INLINE void HostCache::release() noexcept {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    for (const Kept& block : kept_[i]) to_heap(block.data, size_at(i));
    kept_[i].clear();
  }
  stats_.cached = 0;
}

CLEAVE_INLINE void HostCache::free_oldest() noexcept {
  std::size_t oldest = kept_.size();
  for (std::size_t i = 0; i < kept_.size(); ++i)
    if (!kept_[i].empty() &&
        (oldest == kept_.size() || kept_[i].front().since < kept_[oldest].front().since))
      oldest = i;
  to_heap(kept_[oldest].front().data, size_at(oldest));
  kept_[oldest].erase(kept_[oldest].begin());
  stats_.cached -= size_at(oldest);
}

CLEAVE_INLINE void* HostCache::fresh(std::size_t size) noexcept {
  void* data = from_heap(size);
  if (data == nullptr) {
    release();
    data = from_heap(size);
  }
  if (data == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  ++stats_.fresh;
  hold(size);
  return data;
}

CLEAVE_INLINE std::size_t requested_cache(const char* variable, std::size_t default_mib) {
  constexpr double mebibyte = 1 << 20, most = double(std::size_t(1) << 40);
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return default_mib << 20;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != '\0' || !(value >= 0))
    throw Error("run", std::string(variable) + " is '" + text + "'; use MiB >= 0");
  return std::size_t((value < most ? value : most) * mebibyte);
}

CLEAVE_INLINE std::shared_ptr<HostCache> host_cache(std::shared_ptr<HostCache> joined) {
  thread_local bool has_ended = false;  // readable until the thread ends
  if (has_ended) return nullptr;
  struct Place {
    std::shared_ptr<HostCache> cache{};
    bool is_own = true;
    ~Place() {
      if (is_own && cache != nullptr) cache->close();
      has_ended = true;
    }
  };
  thread_local Place place;
  if (joined != nullptr) {
    place.cache = std::move(joined);
    place.is_own = false;
  }
  if (place.cache == nullptr)
    place.cache.reset(new HostCache(requested_cache("CLEAVE_HOST_CACHE_MB", 512)));
  return place.cache;
}

}  // namespace cleave::inline v0::detail
