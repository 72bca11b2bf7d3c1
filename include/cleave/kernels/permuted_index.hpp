// A random permutation as a function of a single index, without a table.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <cleave/core/random_state.hpp>

namespace cleave::inline v0::kernels {

/// A bijection of [0, n), determined by a draw.
///
/// A Feistel network (M. Luby, C. Rackoff: How to construct pseudorandom permutations from
/// pseudorandom functions. SIAM J. Comput. 17 (1988)) permutes the numbers of as many bits as n
/// needs. Values outside [0, n) are permuted again until they fall inside (cycle walking: J. Black,
/// P. Rogaway: Ciphers with arbitrary finite domains. CT-RSA 2002): less than once more on average,
/// as at least half of the numbers are inside. Networks of few bits mix badly, so at least 8 are
/// used: all indices of a smaller permutation together cost as much as 256. Such networks are even
/// permutations, which would be detectable for n = 2^bits: a final random bit may swap 0 and 1.
class Permutation {
 public:
  static constexpr int rounds = 16;

  Permutation(index_t n, const RandomState& state) : n_(std::uint64_t(n)) {
    const int bits = n <= 256 ? 8 : int(std::bit_width(n_ - 1));
    low_bits_ = bits / 2;
    low_mask_ = mask(low_bits_);
    high_mask_ = mask(bits - low_bits_);
    for (int k = 0; k < rounds; k += 2) {
      const Philox::Counter words = state.bits(k / 2);
      keys_[std::size_t(k)] = std::uint64_t(words[0]) << 32 | words[1];
      keys_[std::size_t(k) + 1] = std::uint64_t(words[2]) << 32 | words[3];
    }
    coin_ = n_ > 1 ? state.bits(rounds / 2)[0] >> 31 : 0;
  }

  /// @pre 0 <= i < n
  CLEAVE_HOST_DEVICE index_t operator()(index_t i) const {
    auto value = std::uint64_t(i);
    do value = permuted(value);
    while (value >= n_);
    return index_t(value < 2 ? value ^ coin_ : value);
  }

 private:
  static constexpr std::uint64_t mask(int bits) { return (std::uint64_t(1) << bits) - 1; }

  CLEAVE_HOST_DEVICE std::uint64_t permuted(std::uint64_t value) const {
    std::uint64_t low = value & low_mask_, high = value >> low_bits_;
    for (int k = 0; k < rounds; k += 2) {
      high ^= mixed(low ^ keys_[std::size_t(k)]) & high_mask_;
      low ^= mixed(high ^ keys_[std::size_t(k) + 1]) & low_mask_;
    }
    return high << low_bits_ | low;
  }

  /// Mixes z so that every output bit depends on all bits of z. The multipliers are variant 13 of
  /// D. Stafford: Better bit mixing (2011).
  static CLEAVE_HOST_DEVICE std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }

  std::uint64_t n_;
  std::array<std::uint64_t, std::size_t(rounds)> keys_{};
  std::uint64_t low_mask_ = 0, high_mask_ = 0;
  std::uint64_t coin_ = 0;
  int low_bits_ = 0;
};

}  // namespace cleave::inline v0::kernels
