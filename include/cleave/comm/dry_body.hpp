// The communicator that runs nothing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/dry.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/core/error.hpp>

namespace cleave {

namespace detail {

class DryCommunicator final : public Communicator {
 public:
  DryCommunicator(int rank, int size, std::string label, std::shared_ptr<RankState> state)
      : Communicator(rank, size, std::move(label), std::move(state)) {}

  const char* backend() const noexcept override { return "dry"; }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    const int place = place_in_subgroup(*this, ranks);
    return std::make_shared<DryCommunicator>(place, int(ranks.size()), std::move(label),
                                             shared_state());
  }

 protected:
  void execute(const Collective& collective) override { verify_call(collective, rank(), size()); }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    for (Signature& theirs : all) theirs = mine;
  }
};

}  // namespace detail

CLEAVE_INLINE std::shared_ptr<Communicator> dry_communicator(int rank, int size) {
  if (rank < 0 || rank >= size)
    throw Error("dry_communicator",
                "there is no rank " + std::to_string(rank) + " of " + std::to_string(size));
  return std::make_shared<detail::DryCommunicator>(
      rank, size, "world", std::make_shared<RankState>(RankState::from_environment(rank, size)));
}

}  // namespace cleave
