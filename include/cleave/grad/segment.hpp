// A checkpointed part of a program: its saved values are recomputed by calling it again.
// @see checkpoint
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/dtensor/draws.hpp>
#include <cleave/grad/record.hpp>

namespace cleave::inline v0::tape {

/// While the function runs for the first time, records enlist here instead of saving values. The
/// first of them that backward reaches calls the function again; the k-th record of that call
/// passes its saved values to the k-th enlisted record.
struct Segment {
  std::vector<RecordBase*> enlisted{};  ///< null: destroyed since
  std::function<void()> call{};         ///< calls the function again and discards its records
  std::size_t made = 0;                 ///< records of the second call so far
  bool again = false;                   ///< whether the second call is in progress
  cleave::detail::DrawLog draws{};      ///< random draws: the same in both calls

  /// The segment whose function is being called on this rank's thread, or null.
  static std::shared_ptr<Segment>& current() {
    static thread_local std::shared_ptr<Segment> segment;
    return segment;
  }

  /// The first call's record that corresponds to the second call's next one; null if destroyed.
  /// @throws Error if the second call differs from the first
  RecordBase* counterpart(const Table* table) {
    if (made == enlisted.size())
      throw Error("checkpoint", "the function called more operations when it was recomputed");
    RecordBase* const first = enlisted[made++];
    if (first != nullptr && first->table != table)
      throw Error("checkpoint", "the function called different operations when it was recomputed");
    return first;
  }
};

/// The membership of a record in a segment; ends when the record is destroyed.
class Enlistment {
 public:
  Enlistment() = default;
  Enlistment(std::shared_ptr<Segment> segment, RecordBase* record)
      : segment_(std::move(segment)), place_(segment_->enlisted.size()) {
    segment_->enlisted.push_back(record);
  }
  Enlistment(const Enlistment&) = delete;  // of one record
  Enlistment& operator=(Enlistment&& other) noexcept {
    leave();
    segment_ = std::move(other.segment_);
    place_ = other.place_;
    return *this;
  }
  ~Enlistment() { leave(); }

  explicit operator bool() const { return segment_ != nullptr; }
  /// Recomputes the saved values of all records of the segment.
  void call_again() const { segment_->call(); }

  void leave() noexcept {
    if (segment_ != nullptr) segment_->enlisted[place_] = nullptr;
    segment_ = nullptr;
  }

 private:
  std::shared_ptr<Segment> segment_{};
  std::size_t place_ = 0;
};

/// Sets the current segment while its function is called.
class SegmentScope {
 public:
  explicit SegmentScope(std::shared_ptr<Segment> segment)
      : draws_(segment->draws), before_(std::exchange(Segment::current(), std::move(segment))) {
    draws_.open(Segment::current()->again);
  }
  SegmentScope(const SegmentScope&) = delete;  // a scope guard
  ~SegmentScope() {
    draws_.close();
    Segment::current() = std::move(before_);
  }

 private:
  cleave::detail::DrawLog& draws_;  ///< lives as long as the segment is current
  std::shared_ptr<Segment> before_;
};

}  // namespace cleave::inline v0::tape
