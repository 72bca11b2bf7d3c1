// Bytes that no computation should read, and whether they are still there.
//
// Very large ranges are poisoned at both ends only. AddressSanitizer, where it is on, is told too.
#pragma once

#include <cstddef>

namespace cuda_stand_in {

/// Fills the range.
void poison(void* begin, std::size_t bytes);

/// Whether the range is as `poison` left it.
bool is_poison(const void* begin, std::size_t bytes);

/// Tells AddressSanitizer that the range must not, or may, be touched.
void forbid(void* begin, std::size_t bytes);
void permit(void* begin, std::size_t bytes);

}  // namespace cuda_stand_in
