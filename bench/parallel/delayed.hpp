// A communicator whose collectives take longer by a fixed time during which no core is busy:
// simulates network latency between threads of one machine.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <cleave/comm/communicator.hpp>

namespace cleave::bench {

class Delayed final : public Communicator {
 public:
  Delayed(std::shared_ptr<Communicator> ranks, std::chrono::duration<double> delay)
      : Communicator(ranks->rank(), ranks->size(), ranks->label(), ranks->shared_state()),
        ranks_(std::move(ranks)),
        delay_(delay) {}

  const char* backend() const noexcept override { return ranks_->backend(); }
  /// So that plans know of the delay.
  LinkCosts typical_costs() const noexcept override { return {1e6 * delay_.count() + 5, 10000}; }
  bool concurrent() const noexcept override { return ranks_->concurrent(); }
  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    return std::make_shared<Delayed>(ranks_->subgroup(ranks, std::move(label)), delay_);
  }

 protected:
  void execute(std::span<const Collective> collectives) override {
    std::this_thread::sleep_for(delay_);
    pass_on(*ranks_, collectives);
  }
  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    pass_on(*ranks_, mine, all);
  }

 private:
  std::shared_ptr<Communicator> ranks_;
  std::chrono::duration<double> delay_;
};

}  // namespace cleave::bench
