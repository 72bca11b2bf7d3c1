// How draws are taken from the random state of a rank, and taken again when results are recomputed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/rank_slots.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/random_state.hpp>

namespace cleave::inline v0 {

/// A part of a program in which ranks draw different numbers. @see TensorParallelRNGTracker
struct RandomRegion {
  std::vector<std::uint64_t> shift{};  ///< added to the seed, for each rank of the world
};

namespace detail {

/// What a rank draws next.
struct RankDraws {
  RandomState state{};                           ///< equal on all ranks
  std::shared_ptr<const RandomRegion> region{};  ///< in which ranks draw different numbers, or null

  static RankDraws& of(RankState& rank) { return rank.slots->get<RankDraws>(); }
};

/// The draws of a function that may be called a second time to recompute its results: the second
/// call gets the states of the first one, and takes none from the program.
class DrawLog {
 public:
  /// The log of the function being called on this rank's thread, or null.
  static DrawLog*& current() {
    static thread_local DrawLog* log = nullptr;
    return log;
  }

  /// Makes this log the current one. @param again  whether this is the second call
  void open(bool again) {
    outer_ = std::exchange(current(), this);
    again_ = again;
    made_ = 0;
  }
  void close() noexcept { current() = outer_; }

  /// @throws Error if the second call draws more often than the first one
  RandomState take(RandomState& state, std::uint64_t count) {
    if (!again_) return draws_.emplace_back(take_from(outer_, state, count));
    if (made_ == draws_.size())
      throw Error("checkpoint", "the function drew more random numbers when it was recomputed");
    return draws_[made_++];
  }

  /// Takes `count` draws: from the log if there is one, else from the state.
  static RandomState take_from(DrawLog* log, RandomState& state, std::uint64_t count) {
    if (log != nullptr) return log->take(state, count);
    const RandomState taken = state;
    state.offset += count;
    return taken;
  }

 private:
  std::vector<RandomState> draws_{};
  std::size_t made_ = 0;  ///< draws by the second call so far
  DrawLog* outer_ = nullptr;
  bool again_ = false;
};

/// Takes `count` draws and advances the state. @return the state of the first of them
inline RandomState take_draws(RandomState& state, std::uint64_t count = 1) {
  return DrawLog::take_from(DrawLog::current(), state, count);
}

}  // namespace detail

}  // namespace cleave::inline v0
