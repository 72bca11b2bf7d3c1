// Philox4x32-10: random bits as a function of a counter and a key, without state between draws. Any
// rank can draw any element of a distributed array.
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3.
// SC'11.
#pragma once

#include <array>
#include <cstdint>

#include <cleave/core/config.hpp>

namespace cleave::inline v0 {

/// The generator: 128 bits for a 128-bit counter under a 64-bit key.
struct Philox {
  using Counter = std::array<std::uint32_t, 4>;
  using Key = std::array<std::uint32_t, 2>;

  static CLEAVE_HOST_DEVICE constexpr Counter bits(Counter counter, Key key) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t(0xD2511F53u) * counter[0];
      const std::uint64_t b = std::uint64_t(0xCD9E8D57u) * counter[2];
      counter = {std::uint32_t(b >> 32) ^ counter[1] ^ key[0], std::uint32_t(b),
                 std::uint32_t(a >> 32) ^ counter[3] ^ key[1], std::uint32_t(a)};
      key[0] += 0x9E3779B9u;  // the golden ratio
      key[1] += 0xBB67AE85u;  // the square root of 3, minus 1
    }
    return counter;
  }
};

}  // namespace cleave::inline v0
