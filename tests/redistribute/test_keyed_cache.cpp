#include <cstddef>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include <cleave/redistribute/keyed_cache.hpp>

using cleave::redistribution::KeyedCache;

namespace {

/// A key type with checksum collisions.
struct Key {
  int number = 0;

  std::uint64_t checksum() const { return std::uint64_t(number) % 3; }
  friend bool operator==(const Key&, const Key&) = default;
};

/// The keys up to 9 that have a value, which is the key as text: "1 4 9".
template <std::size_t Limit>
std::string kept(const KeyedCache<Key, std::string, Limit>& cache) {
  std::string text;
  for (int i = 0; i < 10; ++i)
    if (const std::string* value = cache.find({i})) text += (text.empty() ? "" : " ") + *value;
  return text;
}

}  // namespace

TEST_CASE("a cache finds values by their keys, also among keys of one checksum") {
  KeyedCache<Key, std::string, 100> cache;
  CHECK(cache.find({0}) == nullptr);
  for (const int i : {7, 1, 4, 2}) CHECK(cache.add({i}, std::to_string(i)) == std::to_string(i));
  CHECK(kept(cache) == "1 2 4 7");
}

TEST_CASE("the oldest values make room for new ones, as many as weigh enough") {
  KeyedCache<Key, std::string, 4> cache;
  for (const int i : {5, 6, 7, 8}) cache.add({i}, std::to_string(i));
  CHECK(kept(cache) == "5 6 7 8");
  cache.add({9}, "9");
  CHECK(kept(cache) == "6 7 8 9");
  cache.add({1}, "1", 3);
  CHECK(kept(cache) == "1 9");
  cache.add({2}, "2");
  CHECK(kept(cache) == "1 2");
  cache.add({3}, "3", 4);
  CHECK(kept(cache) == "3");
}
