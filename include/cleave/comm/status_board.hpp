// What the ranks of a world do, in memory that all of them read: threads of a process, or processes
// that share a segment. Nobody waits for anybody to read or write it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cleave/comm/rank_status.hpp>

namespace cleave::inline v0::detail {

/// A text that one thread writes at a time, and that others read while it changes.
template <std::size_t words>
class SharedText {
 public:
  void write(std::string_view text) noexcept {
    std::array<std::uint64_t, words> copy{};
    std::memcpy(copy.data(), text.data(), std::min(text.size(), sizeof copy - 1));
    const std::uint32_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);  // odd: being written
    for (std::size_t i = 0; i < words; ++i) words_[i].store(copy[i], std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  /// Empty if it is written all the time, or if its writer was killed meanwhile.
  std::string read() const {
    std::array<std::uint64_t, words> copy{};
    for (int attempt = 0; attempt < 100; ++attempt) {
      const std::uint32_t version = version_.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < words; ++i) copy[i] = words_[i].load(std::memory_order_acquire);
      if (version % 2 == 0 && version_.load(std::memory_order_relaxed) == version)
        return reinterpret_cast<const char*>(copy.data());
    }
    return {};
  }

 private:
  std::atomic<std::uint32_t> version_{0};
  std::array<std::atomic<std::uint64_t>, words> words_{};
};

class alignas(64) StatusBoard {
  /// A call that a thread of the rank waits in.
  struct Entry {
    std::atomic<bool> taken{false};
    SharedText<30> text{};
  };
  struct alignas(64) Seat {
    std::atomic<bool> left{false};
    std::array<Entry, 2> waits{};  ///< of the rank's own thread and its worker thread
  };

 public:
  static std::size_t bytes(int ranks) noexcept {
    return sizeof(StatusBoard) + std::size_t(ranks) * sizeof(Seat);
  }
  /// @param memory  `bytes(ranks)` bytes, aligned to a cache line
  static StatusBoard* create(void* memory, int ranks) noexcept {
    auto* const board = new (memory) StatusBoard;
    for (int r = 0; r < ranks; ++r) new (&board->seat(r)) Seat;
    return board;
  }
  /// In the memory of this process.
  static std::shared_ptr<StatusBoard> create(int ranks) {
    constexpr std::align_val_t line{alignof(StatusBoard)};
    return {create(::operator new(bytes(ranks), line), ranks),
            [](StatusBoard* board) { ::operator delete(board, line); }};
  }

  /// Records that a rank has failed, unless another one failed before.
  /// @return whether it is the first
  bool fail(int rank, std::string_view cause) noexcept {
    int none = -1;
    if (!first_.compare_exchange_strong(none, rank)) return false;
    cause_.write(cause);
    failed_.store(true);
    return true;
  }
  bool has_failed() const noexcept { return failed_.load(); }
  RankFailure failure() const {
    if (!has_failed()) return {};
    return {first_.load(), cause_.read()};
  }
  /// @throws PeerError on `rank` if a rank has failed
  void verify(const char* operation, int rank) const {
    if (has_failed()) throw PeerError(operation, failure(), rank);
  }

  /// Records that a rank needs no other rank any more. @return whether it was not known
  bool leave(int rank) noexcept { return !seat(rank).left.exchange(true); }
  bool has_left(int rank) const noexcept { return seat(rank).left.load(); }

  /// States for its lifetime in which call a rank waits.
  class Wait {
   public:
    Wait(StatusBoard& board, int rank, std::string_view place) noexcept {
      for (Entry& entry : board.seat(rank).waits)
        if (!entry.taken.exchange(true)) {
          entry.text.write(place);
          entry_ = &entry;
          return;
        }
    }
    Wait(const Wait&) = delete;  // one entry
    Wait& operator=(const Wait&) = delete;
    ~Wait() {
      if (entry_ == nullptr) return;
      entry_->text.write("");
      entry_->taken.store(false);
    }

   private:
    Entry* entry_ = nullptr;
  };

  /// What those of these ranks do that are still missing, ascending.
  /// @param missing  (int) -> bool, of an index in `ranks`: whether that rank is awaited
  template <class Missing>
  std::vector<PeerStatus> missing_peers(std::span<const int> ranks, const Missing& missing) const {
    std::vector<PeerStatus> peers;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const RankStatus status = status_of(ranks[i]);  // first: it may arrive now, and leave
      if (missing(int(i))) peers.push_back({ranks[i], status});
    }
    std::ranges::sort(peers, {}, &PeerStatus::rank);
    return peers;
  }

  /// What a rank does, except whether it has failed.
  RankStatus status_of(int rank) const {
    RankStatus status;
    if (has_left(rank)) return status.state = RankStatus::State::left, status;
    status.state = RankStatus::State::computes;
    for (const Entry& entry : seat(rank).waits)
      if (const std::string text = entry.text.read(); !text.empty()) {
        status.state = RankStatus::State::waits;
        status.set_text(text);
      }
    return status;
  }

 private:
  StatusBoard() = default;

  // the seats follow the board
  Seat& seat(int rank) noexcept { return reinterpret_cast<Seat*>(this + 1)[rank]; }
  const Seat& seat(int rank) const noexcept {
    return reinterpret_cast<const Seat*>(this + 1)[rank];
  }

  std::atomic<bool> failed_{false};
  std::atomic<int> first_{-1};
  SharedText<125> cause_{};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // used between processes

}  // namespace cleave::inline v0::detail
