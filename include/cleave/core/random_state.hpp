// The random state: the position of the next draw.
#pragma once

#include <cstdint>

#include <cleave/core/philox.hpp>

namespace cleave::inline v0 {

/// The position of the next draw: the whole random state of a program.
///
/// A draw uses the key (seed) and the counter (offset, index): `offset` numbers the draws since
/// the seed was set, `index` is the row-major index of an element in the global array. So no
/// counter is used twice, and the bits depend on neither mesh, placement nor number of ranks.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;

  /// The bits of one element of the draw at `offset`.
  CLEAVE_HOST_DEVICE constexpr Philox::Counter bits(index_t index) const {
    return Philox::bits(
        {std::uint32_t(std::uint64_t(index)), std::uint32_t(std::uint64_t(index) >> 32),
         std::uint32_t(offset), std::uint32_t(offset >> 32)},
        {std::uint32_t(seed), std::uint32_t(seed >> 32)});
  }

  friend constexpr bool operator==(const RandomState&, const RandomState&) = default;
};

}  // namespace cleave::inline v0
