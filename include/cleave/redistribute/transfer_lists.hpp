// The transfers of calls, kept per mesh: they are computed once per key.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include <cleave/redistribute/keyed_cache.hpp>
#include <cleave/redistribute/step_call.hpp>

namespace cleave::inline v0::redistribution {

/// @tparam Key   has a checksum() and ==
/// @tparam List  Transfers, or derived from it
template <class Key, class List = Transfers>
class TransferLists {
 public:
  /// The transfers of a key: known, or those that make() returns.
  template <class Make>
  std::shared_ptr<const List> get(const Key& key, const Make& make) {
    if (const auto* known = lists_.find(key)) return *known;
    auto made = std::make_shared<const List>(make());
    const std::size_t count = weight_of(*made);
    return count > max_transfers ? made : lists_.add(key, made, std::max(count, min_weight));
  }

 private:
  static std::size_t weight_of(const List& list) {
    if constexpr (requires { list.weight(); }) return list.weight();
    else return list.sends.size() + list.receives.size();
  }

  static constexpr std::size_t max_transfers = 65536;  ///< in all lists: 20 MB
  static constexpr std::size_t min_weight = 128;       ///< at most 512 lists

  KeyedCache<Key, std::shared_ptr<const List>, max_transfers> lists_;
};

}  // namespace cleave::inline v0::redistribution
