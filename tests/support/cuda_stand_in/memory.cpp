#include "memory.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "machine.hpp"

namespace cuda_stand_in {
namespace {

constexpr std::size_t addresses = std::size_t(1) << 40;
constexpr std::size_t granule = 256;  // alignment of addresses, as with cudaMalloc
constexpr std::size_t huge_page = std::size_t(2) << 20;

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

const std::byte* bytes_at(const void* address) { return static_cast<const std::byte*>(address); }

}  // namespace

void poison(void* begin, std::size_t bytes) {
  constexpr int filler = 0xCD;
  constexpr std::size_t longest = std::size_t(256) << 20, end_of_long = std::size_t(1) << 20;
  const std::size_t filled = bytes <= longest ? bytes : end_of_long;
  std::memset(begin, filler, filled);
  std::memset(static_cast<char*>(begin) + bytes - filled, filler, filled);
}

int Place::device() const {
  return on_device && block != nullptr ? block->pool->device->index : -1;
}

Memory::Memory(std::size_t bytes) : bytes_per_device(bytes) {
  void* range = mmap(nullptr, addresses + huge_page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw std::bad_alloc();
  range_ =
      reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(range), huge_page));
  madvise(range_, addresses, MADV_HUGEPAGE);  // exposing and hiding cost time per page
}

void* Memory::allocate(CUmemPoolHandle_st& pool, std::size_t bytes) {
  const auto end = kept_.end();
  auto fit = end;
  for (auto piece = kept_.begin(); piece != end; ++piece)
    if (piece->pool == &pool && piece->bytes >= bytes && (fit == end || piece->bytes < fit->bytes))
      fit = piece;
  const std::size_t used = round_up(bytes + 1, granule);  // a byte more, to keep blocks apart
  if (used > addresses - top_) return nullptr;
  std::size_t held = bytes;
  if (fit != end && fit->bytes < 2 * bytes) {  // only larger pieces are divided
    held = fit->bytes;
    kept_.erase(fit);
  } else if (fit != end) {
    fit->bytes -= bytes;
  } else if (bytes <= available(*pool.device)) {
    pool.device->held += bytes;
  } else {
    return nullptr;
  }
  std::byte* const address = range_ + top_;
  top_ += used;
  blocks_[address] = {.size = bytes, .pool = &pool, .held = held};
  return address;
}

void Memory::begin(void* address) {
  Block& block = blocks_.at(bytes_at(address));
  poison(address, block.size);
  block.usable = true;
}

void Memory::end(void* address) {
  Block& block = blocks_.at(bytes_at(address));
  block.usable = false;
  if (!block.of_graph) release(address);
}

void Memory::release(void* address) {
  const auto found = blocks_.find(bytes_at(address));
  const auto [pool, held] = std::pair(found->second.pool, found->second.held);
  if (pool->in_stream_order) kept_.push_back({pool, held});
  else pool->device->held -= held;

  // Pages between the block's neighbours are not needed any more.
  const auto next = blocks_.erase(found);
  const std::byte *first = range_, *last = range_ + top_;
  if (next != blocks_.end()) last = std::min(last, next->first);
  if (next != blocks_.begin())
    first = std::max(first, std::prev(next)->first + std::prev(next)->second.size);
  const std::size_t begin = round_up(std::size_t(first - range_), huge_page);
  const std::size_t end = std::size_t(last - range_) / huge_page * huge_page;
  if (begin < end) madvise(range_ + begin, end - begin, MADV_DONTNEED);
}

void Memory::trim(const CUmemPoolHandle_st& pool) {
  std::erase_if(kept_, [&](const Piece& piece) {
    if (piece.pool != &pool || !piece.awaited) return false;
    pool.device->held -= piece.bytes;
    return true;
  });
}

void Memory::observe(Device& device) {
  for (Piece& piece : kept_) piece.awaited |= piece.pool->device == &device;
  for (const CUmemPoolHandle_st& pool : device.pools)
    if (pool.threshold == 0) trim(pool);
}

void Memory::add_pinned(void* begin, std::size_t bytes, bool registered) {
  blocks_[bytes_at(begin)] = {.size = bytes, .usable = true, .registered = registered};
}

std::size_t Memory::remove_pinned(void* begin, bool registered) {
  const auto found = blocks_.find(bytes_at(begin));
  if (found == blocks_.end() || found->second.pool != nullptr ||
      found->second.registered != registered)
    return 0;
  const std::size_t bytes = found->second.size;
  blocks_.erase(found);
  return bytes;
}

Place Memory::place(const void* address, std::size_t bytes) {
  const std::byte* const first = bytes_at(address);
  Place place{.on_device = first >= range_ && first < range_ + addresses};
  const auto after = blocks_.upper_bound(first);
  if (after == blocks_.begin()) return place;
  auto& [begin, block] = *std::prev(after);
  const auto inside = std::size_t(first - begin);
  if (inside >= block.size) return place;
  place.begin = const_cast<std::byte*>(begin);
  place.block = &block;
  place.within = bytes <= block.size - inside;
  return place;
}

Block* Memory::live(void* address) {
  const auto found = blocks_.find(bytes_at(address));
  if (found == blocks_.end() || found->second.pool == nullptr) return nullptr;
  return found->second.freed ? nullptr : &found->second;
}

std::size_t Memory::used(const CUmemPoolHandle_st& pool) const {
  std::size_t bytes = 0;
  for (const auto& [begin, block] : blocks_)
    if (block.pool == &pool) bytes += block.size;
  return bytes;
}

std::size_t Memory::available(const Device& device) const {
  return device.held < bytes_per_device ? bytes_per_device - device.held : 0;
}

void Memory::expose() {
  const std::size_t touched = round_up(top_, huge_page);
  if (exposed_ == touched) return;
  mprotect(range_, touched, PROT_READ | PROT_WRITE);
  exposed_ = touched;
}

void Memory::hide() {
  if (exposed_ == 0) return;
  mprotect(range_, exposed_, PROT_NONE);
  exposed_ = 0;
}

}  // namespace cuda_stand_in
