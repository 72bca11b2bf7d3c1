// Tells AddressSanitizer and ThreadSanitizer of a change of stack; does nothing without them.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_STAND_IN_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define CUDA_STAND_IN_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CUDA_STAND_IN_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define CUDA_STAND_IN_TSAN 1
#endif

#if defined(CUDA_STAND_IN_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(CUDA_STAND_IN_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace cuda_stand_in {

#if defined(CUDA_STAND_IN_ASAN)
inline void asan_start_switch(void** frames, const void* stack, std::size_t bytes) {
  __sanitizer_start_switch_fiber(frames, stack, bytes);
}
inline void asan_finish_switch(void* frames, const void** old_stack, std::size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(frames, old_stack, old_bytes);
}
/// Forgets the variables in abandoned frames.
inline void asan_clear_stack(void* stack, std::size_t bytes) {
  __asan_unpoison_memory_region(stack, bytes);
}
#else
inline void asan_start_switch(void**, const void*, std::size_t) {}
inline void asan_finish_switch(void*, const void**, std::size_t*) {}
inline void asan_clear_stack(void*, std::size_t) {}
#endif

#if defined(CUDA_STAND_IN_TSAN)
inline void* tsan_create_fiber() { return __tsan_create_fiber(0); }
inline void tsan_destroy_fiber(void* fiber) { __tsan_destroy_fiber(fiber); }
inline void* tsan_current_fiber() { return __tsan_get_current_fiber(); }
inline void tsan_switch_to(void* fiber) { __tsan_switch_to_fiber(fiber, 0); }
#else
inline void* tsan_create_fiber() { return nullptr; }
inline void tsan_destroy_fiber(void*) {}
inline void* tsan_current_fiber() { return nullptr; }
inline void tsan_switch_to(void*) {}
#endif

}  // namespace cuda_stand_in
