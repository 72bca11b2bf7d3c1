#include "arena.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "host_guard.hpp"
#include "poison.hpp"

namespace cuda_stand_in {
namespace {

constexpr std::size_t granule = 256;    // alignment of addresses, as with cudaMalloc
constexpr std::size_t gap_bytes = 256;  // between blocks, so that they have different ranges
constexpr std::size_t huge_page = std::size_t(2) << 20;

constexpr std::size_t large = std::size_t(256) << 20;  // larger dead blocks keep no pages

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

constexpr std::size_t round_down(std::size_t value, std::size_t to) { return value / to * to; }

void* huge_page_after(void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return reinterpret_cast<void*>(round_up(value, huge_page));
}

}  // namespace

Arena::Arena(std::size_t addresses, int device, int kind)
    : addresses_(round_up(addresses, huge_page)), device_(device), kind_(kind) {
  void* range = mmap(nullptr, addresses_ + huge_page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(huge_page_after(range));
  madvise(base_, addresses_, MADV_HUGEPAGE);  // exposing and hiding cost time per page
  holes_.emplace(0, addresses_);
  guard_range(base_, addresses_);
}

bool Arena::contains(const void* address) const {
  return address >= base_ && address < base_ + addresses_;
}

std::size_t Arena::offset_of(const void* address) const {
  return std::size_t(static_cast<const std::byte*>(address) - base_);
}

void Arena::expose() {
  if (exposed_ == touched_) return;
  mprotect(base_, touched_, PROT_READ | PROT_WRITE);
  exposed_ = touched_;
}

void Arena::hide() {
  if (exposed_ == 0) return;
  mprotect(base_, exposed_, PROT_NONE);
  exposed_ = 0;
}

void Arena::add_gap(Gaps& gaps, std::size_t offset, std::size_t bytes) {
  auto next = gaps.lower_bound(offset);
  if (next != gaps.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = gaps.erase(next);
  }
  if (next != gaps.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  gaps.emplace(offset, bytes);
}

// Takes the beginning of the first gap with room. Returns its offset; -1 if there is none.
std::ptrdiff_t Arena::take_gap(Gaps& gaps, std::size_t bytes) {
  const auto gap =
      std::find_if(gaps.begin(), gaps.end(), [&](const auto& g) { return g.second >= bytes; });
  if (gap == gaps.end()) return -1;
  const auto [offset, room] = *gap;
  gaps.erase(gap);
  if (room > bytes) gaps.emplace(offset + bytes, room - bytes);
  return std::ptrdiff_t(offset);
}

void* Arena::allocate(std::size_t size, std::size_t available) {
  const std::size_t reserved = round_up(size, granule) + gap_bytes;
  std::ptrdiff_t taken = take_gap(idle_, reserved);
  if (taken < 0 && reserved <= available) {
    taken = take_gap(holes_, reserved);
    if (taken >= 0) held_ += reserved;
  }
  if (taken < 0) return nullptr;
  const auto offset = std::size_t(taken);
  blocks_[offset] = {.size = size, .reserved = reserved};
  in_use_ += size;
  touched_ = std::max(touched_, round_up(offset + reserved, huge_page));
  return base_ + offset;
}

void Arena::trim() {
  if (!observed_) return;
  for (const std::size_t offset : quarantine_) {
    Block& block = blocks_.at(offset);
    if (std::exchange(block.held, false)) held_ -= block.reserved;
  }
  for (const auto& [offset, bytes] : idle_) {
    held_ -= bytes;
    add_gap(holes_, offset, bytes);
  }
  idle_.clear();
}

void Arena::begin(void* address) {
  Block& block = *starting_at(address);
  poison(address, block.size);
  block.usable = true;
}

void Arena::suspend(void* address) {
  Block& block = *starting_at(address);
  poison(address, block.size);
  block.usable = false;
}

void Arena::end(void* address) {
  Block& block = *starting_at(address);
  if (block.reserved > large)
    madvise(huge_page_after(address), round_down(block.reserved, huge_page) - huge_page,
            MADV_DONTNEED);
  block.usable = false;
  block.freed = true;
  in_use_ -= block.size;
  observed_ = false;
  if (!pool() && std::exchange(block.held, false)) held_ -= block.reserved;
  resting_ += block.reserved;
  quarantine_.push_back(offset_of(address));
}

void Arena::recycle(std::size_t bytes) {
  while (resting_ > bytes) {
    const std::size_t offset = quarantine_.front();
    quarantine_.pop_front();
    const Block block = blocks_.at(offset);
    blocks_.erase(offset);
    resting_ -= block.reserved;
    add_gap(block.held ? idle_ : holes_, offset, block.reserved);
  }
}

Block* Arena::find(const void* address, std::size_t size) {
  const std::size_t offset = offset_of(address);
  auto after = blocks_.upper_bound(offset);
  if (after == blocks_.begin()) return nullptr;
  auto& [start, block] = *std::prev(after);
  const std::size_t inside = offset - start;
  return inside <= block.size && size <= block.size - inside ? &block : nullptr;
}

const std::byte* Arena::begin_of(const void* address) const {
  return base_ + std::prev(blocks_.upper_bound(offset_of(address)))->first;
}

Block* Arena::starting_at(const void* address) {
  const auto found = blocks_.find(offset_of(address));
  return found == blocks_.end() ? nullptr : &found->second;
}

}  // namespace cuda_stand_in
