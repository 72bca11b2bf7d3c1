// The state of random numbers: where the next draw stands, and who takes it from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/core/philox.hpp>

namespace cleave {

/// Where the next draw stands: all of the random state of a program.
///
/// A draw takes the key (seed) and the counter (offset, index): `offset` numbers the draws since
/// the seed was set, `index` is the row-major index of an element in the global array. So no
/// counter is used twice, and the bits depend on neither mesh, placement nor number of ranks.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;

  /// The bits of one element of the draw that stands at `offset`.
  CLEAVE_HOST_DEVICE constexpr Philox::Counter bits(index_t index) const {
    return Philox::bits({std::uint32_t(std::uint64_t(index)), std::uint32_t(std::uint64_t(index) >> 32),
                         std::uint32_t(offset), std::uint32_t(offset >> 32)},
                        {std::uint32_t(seed), std::uint32_t(seed >> 32)});
  }

  friend constexpr bool operator==(const RandomState&, const RandomState&) = default;
};

/// A part of a program in which ranks draw different numbers. @see TensorParallelRNGTracker
struct RandomRegion {
  std::vector<std::uint64_t> shift{};  ///< of each rank of the world: what its seed is greater by
};

namespace detail {

/// The draws of a function that may be called a second time, to compute again what it has computed
/// before: it then gets the states that it has drawn from, and takes none from the program.
class DrawLog {
 public:
  /// That of the function being called on this rank's thread, or null.
  static DrawLog*& current() {
    static thread_local DrawLog* log = nullptr;
    return log;
  }

  /// From now on this log is the current one. @param again  whether it is the second call
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
      throw Error("checkpoint", "the function drew more random numbers the second time");
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
  std::size_t made_ = 0;  ///< by the second call so far
  DrawLog* outer_ = nullptr;
  bool again_ = false;
};

/// Where the next draws stand; those after them stand behind.
inline RandomState take_draws(RandomState& state, std::uint64_t count = 1) {
  return DrawLog::take_from(DrawLog::current(), state, count);
}

}  // namespace detail

}  // namespace cleave
