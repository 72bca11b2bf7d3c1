// The generator compared with the known answers that its authors publish (Random123, kat_vectors),
// and with their code if it is installed.
#include <cstdint>

#include <doctest/doctest.h>

#include <cleave/core/philox.hpp>
#include <cleave/core/random_state.hpp>

#if __has_include(<Random123/philox.h>)
#include <Random123/philox.h>
#define HAS_RANDOM123
#endif

using namespace cleave;

TEST_CASE("the known answers of Philox4x32-10") {
  static_assert(Philox::bits({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5u);  // a constant expression
  constexpr std::uint32_t ones = 0xffffffffu;
  CHECK(Philox::bits({0, 0, 0, 0}, {0, 0}) ==
        Philox::Counter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  CHECK(Philox::bits({ones, ones, ones, ones}, {ones, ones}) ==
        Philox::Counter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  CHECK(Philox::bits({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                     {0xa4093822u, 0x299f31d0u}) ==
        Philox::Counter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("index, offset and seed fill the counter and the key without overlap") {
  const RandomState state{0x0123456789abcdefu, 0xfedcba9876543210u};
  const Philox::Counter expected = Philox::bits(
      {0x55667788u, 0x11223344u, 0x76543210u, 0xfedcba98u}, {0x89abcdefu, 0x01234567u});
  CHECK(state.bits(0x1122334455667788) == expected);
}

#if defined(HAS_RANDOM123)
TEST_CASE("the bits are those of Random123") {
  r123::Philox4x32 theirs;
  std::uint32_t word = 1;
  const auto next = [&] { return word = word * 1664525u + 1013904223u; };
  for (int i = 0; i < 1000; ++i) {
    const Philox::Counter counter{next(), next(), next(), next()};
    const Philox::Key key{next(), next()};
    const auto expected =
        theirs({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
    const Philox::Counter found = Philox::bits(counter, key);
    for (std::size_t k = 0; k < 4; ++k) CHECK(found[k] == expected[k]);
  }
}
#endif
