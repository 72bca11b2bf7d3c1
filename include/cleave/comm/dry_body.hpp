// The communicator that executes nothing.
#pragma once

#include <concepts>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/dry.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/host_memory.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Constrained to one type: compiled where it is used, not wherever this file is included.
template <std::same_as<Communicator> Base>
class DryCommunicator final : public Base {
 public:
  DryCommunicator(int rank, int size, std::string label, std::shared_ptr<RankState> state)
      : Base(rank, size, std::move(label), std::move(state)) {}

  const char* backend() const noexcept override { return "dry"; }
  bool is_dry() const noexcept override { return true; }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    const int place = place_in_subgroup(*this, ranks);
    return std::make_shared<DryCommunicator>(place, int(ranks.size()), std::move(label),
                                             this->shared_state());
  }

 protected:
  void execute(std::span<const Collective> calls) override {
    for (const Collective& c : calls) verify_call(c, this->rank(), this->size());
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    for (Signature& theirs : all) theirs = mine;
  }
};

}  // namespace detail

template <std::same_as<Communicator> Result>
std::shared_ptr<Result> dry_communicator(int rank, int size) {
  if (rank < 0 || rank >= size)
    throw Error("dry_communicator",
                "there is no rank " + std::to_string(rank) + " of " + std::to_string(size));
  return std::make_shared<detail::DryCommunicator<Result>>(
      rank, size, "world", std::make_shared<RankState>(RankState::from_environment(rank, size)));
}

namespace detail {

template <std::same_as<Communicator> Result>
Budget dry_budget(int rank, int size, RankFunction f) {
  Budget cost;
  std::exception_ptr error;
  std::thread thread([&] {  // counts its memory from the start
    try {
      const DryScope scope;
      World world(dry_communicator(rank, size));
      CheckLevel& check = world.communicator().state().check;
      if (check == CheckLevel::collective) check = CheckLevel::local;  // that would communicate
      const CommTrace trace(world);
      f(world);
      cost = {trace, memory_stats()};
    } catch (...) {
      error = std::current_exception();
    }
  });
  thread.join();
  if (error != nullptr) std::rethrow_exception(error);
  return cost;
}

}  // namespace detail

}  // namespace cleave::inline v0
