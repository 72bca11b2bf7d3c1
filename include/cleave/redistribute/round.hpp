// Calls of several tensors over the same axes that run together; small all-reduces among them are
// merged into one over all their elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <cleave/functional/bundle.hpp>
#include <cleave/redistribute/step_call.hpp>

namespace cleave::inline v0::redistribution {

template <class Device>
class Round {
 public:
  /// @param most  the most calls that may be added
  explicit Round(std::size_t most) { calls_.reserve(most); }

  /// @param call  its storage must stay valid until the round has run
  void add(const Call& call, const Context& context) {
    const Collective c = call.collective(context);
    if (!is_small_sum(c)) return calls_.push_back(c);
    auto sum = std::find_if(sums_.begin(), sums_.end(), [&](const Sum& other) {
      return other.call.dtype() == c.dtype() && other.call.op == c.op;
    });
    if (sum == sums_.end()) sum = sums_.insert(sum, {c, {}});
    sum->members.push_back({c.source, c.destination});
  }

  /// @collective every rank of the group
  void run(Communicator& group) {
    std::vector<cleave::detail::Bundle<Device>> bundles;
    for (Sum& sum : sums_) {
      if (sum.members.size() > 1) {
        bundles.emplace_back(CollectiveKind::all_reduce, group.size(), std::move(sum.members));
        const cleave::detail::Operand packed = bundles.back().operand();
        sum.call.source = packed.source;
        sum.call.destination = packed.result;
        sum.call.global_count = packed.source.size();
      }
      calls_.push_back(sum.call);
    }
    group.run_all(calls_);
    for (const auto& bundle : bundles) bundle.unpack();
  }

 private:
  /// All-reduces that can be merged.
  struct Sum {
    Collective call;  ///< the first one
    std::vector<cleave::detail::Operand> members;
  };

  /// Whether synchronisation costs more than a copy. The same on all ranks of the group.
  static bool is_small_sum(const Collective& c) {
    constexpr index_t small_bytes = 256 << 10;
    return c.kind == CollectiveKind::all_reduce && c.source.bytes() <= small_bytes;
  }

  std::vector<Collective> calls_{};
  std::vector<Sum> sums_{};
};

}  // namespace cleave::inline v0::redistribution
