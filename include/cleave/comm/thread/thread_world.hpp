// The state shared by all ranks of a thread world: what each rank does, and where it sleeps.
//
// Abort notifications (a failure, a departure) wake every sleeping rank, whatever group it waits
// in.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/status_board.hpp>
#include <cleave/comm/thread/cancellable_barrier.hpp>
#include <cleave/core/cores.hpp>

namespace cleave::inline v0::detail {

class ThreadWorld final : public AbortNotification {
 public:
  explicit ThreadWorld(int size)
      : size_(size),
        spins_(size <= available_cores()),
        board_(StatusBoard::create(size)),
        parkers_(std::make_unique<Parker[]>(std::size_t(size))) {}

  int size() const noexcept { return size_; }

  /// Whether a waiting rank spins for a while before it sleeps: not if ranks outnumber the cores.
  bool spins() const noexcept { return spins_; }

  StatusBoard& board() noexcept { return *board_; }
  Parker& parker(int rank) noexcept { return parkers_[std::size_t(rank)]; }

  /// Records that `rank` failed, unless another rank failed before, and wakes all ranks.
  /// @return whether it is the first
  bool fail(int rank, std::string_view cause) noexcept {
    const bool first = board_->fail(rank, cause);
    announce();
    return first;
  }

  void raise(int rank, const char* cause) noexcept override { fail(rank, cause); }

  std::string heard() noexcept override {
    return board_->has_failed() ? to_string(board_->failure()) : std::string();
  }

  /// Records that a rank has left, and wakes all ranks.
  void leave(int rank) noexcept {
    if (board_->leave(rank)) announce();
  }

  /// Grows with every failure and departure.
  std::uint64_t abort_epoch() const noexcept { return abort_epoch_.load(); }

 private:
  void announce() noexcept {
    abort_epoch_.fetch_add(1);
    for (int r = 0; r < size_; ++r) parker(r).wake();
  }

  int size_;
  bool spins_;
  std::shared_ptr<StatusBoard> board_;
  std::unique_ptr<Parker[]> parkers_;
  alignas(64) std::atomic<std::uint64_t> abort_epoch_{0};
};

}  // namespace cleave::inline v0::detail
