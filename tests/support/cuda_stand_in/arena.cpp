#include "arena.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "host_guard.hpp"
#include "poison.hpp"

namespace cuda_stand_in {
namespace {

constexpr std::size_t granule = 256;  // alignment of addresses, as with cudaMalloc
constexpr std::size_t guard = 256;    // bytes of poison behind every block
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

Arena::Arena(std::size_t capacity, int device, bool pool)
    : capacity_(round_up(capacity, huge_page)), device_(device), pool_(pool) {
  void* range = mmap(nullptr, capacity_ + huge_page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(huge_page_after(range));
  madvise(base_, capacity_, MADV_HUGEPAGE);  // exposing and hiding cost time per page
  holes_.emplace(0, capacity_);
  guard_range(base_, capacity_);
}

bool Arena::contains(const void* address) const {
  return address >= base_ && address < base_ + capacity_;
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
  if (exposed_ == 0 || !guards()) return;
  mprotect(base_, exposed_, PROT_NONE);
  exposed_ = 0;
}

void* Arena::allocate(std::size_t size) {
  const std::size_t reserved = round_up(size, granule) + guard;
  const auto hole = std::find_if(holes_.begin(), holes_.end(),
                                 [&](const auto& h) { return h.second >= reserved; });
  if (hole == holes_.end() || in_use_ + size > capacity_) return nullptr;
  const auto [offset, room] = *hole;
  holes_.erase(hole);
  if (room > reserved) holes_.emplace(offset + reserved, room - reserved);
  blocks_[offset] = {.size = size, .reserved = reserved};
  in_use_ += size;
  touched_ = std::max(touched_, round_up(offset + reserved, huge_page));
  forbid(base_ + offset, reserved);
  return base_ + offset;
}

void Arena::begin(void* address) {
  Block& block = *starting_at(address);
  permit(address, block.reserved);
  poison(address, block.size);
  auto* behind = static_cast<std::byte*>(address) + block.size;
  if (!std::exchange(block.guarded, true)) poison(behind, block.reserved - block.size);
  forbid(behind, block.reserved - block.size);
  block.usable = true;
}

void Arena::suspend(void* address) {
  Block& block = *starting_at(address);
  permit(address, block.size);
  poison(address, block.size);
  forbid(address, block.size);
  block.usable = false;
}

std::string Arena::end(void* address) {
  Block& block = *starting_at(address);
  const std::string fault = inspect_guard(offset_of(address), block);
  permit(address, block.reserved);
  if (block.reserved > large)
    madvise(huge_page_after(address), round_down(block.reserved, huge_page) - huge_page,
            MADV_DONTNEED);
  poison(address, block.reserved);
  forbid(address, block.reserved);
  block.usable = false;
  block.freed = true;
  in_use_ -= block.size;
  resting_ += block.reserved;
  quarantine_.push_back(offset_of(address));
  return fault;
}

std::string Arena::recycle(std::size_t bytes) {
  std::string fault;
  while (resting_ > bytes) {
    std::size_t offset = quarantine_.front();
    quarantine_.pop_front();
    std::size_t room = blocks_.at(offset).reserved;
    fault += inspect_dead(offset, blocks_.at(offset));
    blocks_.erase(offset);
    resting_ -= room;
    auto next = holes_.lower_bound(offset);
    if (next != holes_.end() && next->first == offset + room) {
      room += next->second;
      next = holes_.erase(next);
    }
    if (next != holes_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        room += before->second;
        holes_.erase(before);
      }
    }
    holes_.emplace(offset, room);
  }
  return fault;
}

std::string Arena::inspect_guard(std::size_t offset, const Block& block) {
  std::byte* behind = base_ + offset + block.size;
  const std::size_t bytes = block.reserved - block.size;
  if (!block.guarded) return {};
  permit(behind, bytes);
  std::string fault;
  if (!is_poison(behind, bytes)) {
    fault = "device code wrote behind an allocation of " + std::to_string(block.size) + " bytes\n";
    poison(behind, bytes);
  }
  forbid(behind, bytes);
  return fault;
}

std::string Arena::inspect_dead(std::size_t offset, const Block& block) {
  std::byte* first = base_ + offset;
  permit(first, block.reserved);
  std::string fault;
  if (!is_poison(first, block.reserved)) {
    fault = "device code wrote to freed memory of " + std::to_string(block.size) + " bytes\n";
    poison(first, block.reserved);
  }
  forbid(first, block.reserved);
  return fault;
}

std::string Arena::inspect() {
  std::string faults;
  for (const auto& [offset, block] : blocks_)
    if (block.usable) faults += inspect_guard(offset, block);
  for (const std::size_t offset : quarantine_) faults += inspect_dead(offset, blocks_.at(offset));
  return faults;
}

Block* Arena::find(const void* address, std::size_t size) {
  const std::size_t offset = offset_of(address);
  auto after = blocks_.upper_bound(offset);
  if (after == blocks_.begin()) return nullptr;
  auto& [start, block] = *std::prev(after);
  const std::size_t inside = offset - start;
  return inside <= block.size && size <= block.size - inside ? &block : nullptr;
}

Block* Arena::starting_at(const void* address) {
  const auto found = blocks_.find(offset_of(address));
  return found == blocks_.end() ? nullptr : &found->second;
}

}  // namespace cuda_stand_in
