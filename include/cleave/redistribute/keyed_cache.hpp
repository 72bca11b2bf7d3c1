// A bounded cache of results by key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cleave::inline v0::redistribution {

/// Values whose total weight is at most `Limit`; the oldest are evicted for new ones.
/// @tparam Key  has a checksum() and ==
template <class Key, class Value, std::size_t Limit>
class KeyedCache {
 public:
  /// The value of a key, valid until the next `add`; null if there is none.
  const Value* find(const Key& key) const {
    const std::uint64_t sum = key.checksum();
    for (std::size_t i = 0; i < sums_.size(); ++i)
      if (sums_[i] == sum && entries_[i]->key == key) return &entries_[i]->value;
    return nullptr;
  }
  /// Adds the value of a key that is not in the cache. @param weight  at most the limit
  const Value& add(const Key& key, Value value, std::size_t weight = 1) {
    for (; weight_ + weight > Limit; sums_.erase(sums_.begin())) {
      weight_ -= entries_[0]->weight;
      entries_.erase(entries_.begin());
    }
    weight_ += weight;
    sums_.push_back(key.checksum());
    entries_.push_back(std::unique_ptr<const Entry>(new Entry{key, std::move(value), weight}));
    return entries_.back()->value;
  }

 private:
  struct Entry {
    Key key;
    Value value;
    std::size_t weight;
  };

  std::size_t weight_ = 0;
  std::vector<std::uint64_t> sums_;  ///< of the keys, compared first
  std::vector<std::unique_ptr<const Entry>> entries_;
};

}  // namespace cleave::inline v0::redistribution
