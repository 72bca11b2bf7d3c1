#include "poison.hpp"

#include <algorithm>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_STAND_IN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_STAND_IN_ASAN 1
#endif
#endif
#if defined(CUDA_STAND_IN_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace cuda_stand_in {
namespace {

constexpr int filler = 0xCD;
constexpr std::size_t longest = std::size_t(256) << 20;
constexpr std::size_t end_of_long = std::size_t(1) << 20;

bool all_filler(const unsigned char* begin, std::size_t bytes) {
  // The first byte is the filler, and every byte equals the next.
  return bytes == 0 || (*begin == filler && std::memcmp(begin, begin + 1, bytes - 1) == 0);
}

}  // namespace

void poison(void* begin, std::size_t bytes) {
  if (bytes <= longest) {
    std::memset(begin, filler, bytes);
    return;
  }
  std::memset(begin, filler, end_of_long);
  std::memset(static_cast<char*>(begin) + bytes - end_of_long, filler, end_of_long);
}

bool is_poison(const void* begin, std::size_t bytes) {
  const auto* first = static_cast<const unsigned char*>(begin);
  if (bytes <= longest) return all_filler(first, bytes);
  return all_filler(first, end_of_long) && all_filler(first + bytes - end_of_long, end_of_long);
}

#if defined(CUDA_STAND_IN_ASAN)
void forbid(void* begin, std::size_t bytes) { __asan_poison_memory_region(begin, bytes); }
void permit(void* begin, std::size_t bytes) { __asan_unpoison_memory_region(begin, bytes); }
#else
void forbid(void*, std::size_t) {}
void permit(void*, std::size_t) {}
#endif

}  // namespace cuda_stand_in
