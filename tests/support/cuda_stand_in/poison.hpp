// Fills memory with bytes that no computation should read, and checks that they are unchanged.
//
// Very large ranges are poisoned at both ends only. AddressSanitizer, if enabled, is told too.
#pragma once

#include <cstddef>

namespace cuda_stand_in {

/// Fills the range.
void poison(void* begin, std::size_t bytes);

/// Whether the range is unchanged since `poison`.
bool is_poison(const void* begin, std::size_t bytes);

/// Tells AddressSanitizer that the range must not be touched, or may be touched again.
void forbid(void* begin, std::size_t bytes);
void permit(void* begin, std::size_t bytes);

}  // namespace cuda_stand_in
