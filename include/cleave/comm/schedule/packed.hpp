// The schedule of several short calls: one message to each peer, with its pieces of all calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/schedule/schedule.hpp>
#include <cleave/comm/schedule/topology.hpp>

namespace cleave::inline v0::detail {

class PackedSchedule {
 public:
  PackedSchedule(Schedule& schedule, const Topology& topology)
      : schedule_(schedule), size_(topology.size) {}

  /// @pre is_packed(c, topology) for every call c
  void append(std::span<const Collective> calls) {
    // where the pieces from each rank arrive, and the addends of each reduction
    const std::vector<index_t> in = offsets([&](int r, auto f) { each_received(calls, r, f); });
    const std::vector<index_t> out = offsets([&](int r, auto f) { each_sent(calls, r, f); });
    const View sent = schedule_.scratch(DType::uint8, out.back());
    const View received = schedule_.scratch(DType::uint8, in.back());
    std::vector<Transfer> sends, receives;
    for (int r = 0; r < size_; ++r) {
      const auto at = std::size_t(r);
      sends.push_back({r, interval(out[at], out[at + 1]), {}});
      receives.push_back({r, {}, interval(in[at], in[at + 1])});
      index_t end = out[at];
      each_sent(calls, r,
                [&](const ConstView& view) { schedule_.copy(view, next(sent, end, view)); });
    }
    schedule_.call(
        StepAction::library, RankLevel::group,
        Collective::exchange(CollectiveKind::all_to_all, sent, received,
                             schedule_.keep(std::move(sends)), schedule_.keep(std::move(receives)))
            .within(calls[0]));

    std::vector<std::vector<ConstView>> addends(calls.size());
    for (int r = 0; r < size_; ++r) {
      index_t end = in[std::size_t(r)];
      std::size_t i = 0;
      for (const Collective& c : calls) {
        each_of(c, r, [&](const View& to) {
          const View from = next(received, end, to);
          if (c.kind == CollectiveKind::reduce_scatter) addends[i].push_back(from);
          else schedule_.copy(from, to);
        });
        ++i;
      }
    }
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (!addends[i].empty())
        schedule_.reduce(calls[i].op, std::move(addends[i]), calls[i].destination);
  }

 private:
  static constexpr index_t alignment = 16;  // of the largest element

  static index_t padded(index_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  /// Memory for the elements of a view, after `end`, which moves behind it.
  static View next(const View& bytes, index_t& end, const ConstView& view) {
    std::byte* const data =
        bytes.data == nullptr ? nullptr : static_cast<std::byte*>(bytes.data) + end;
    end += padded(view.bytes());
    return View::dense(data, view.dtype, view.extents);
  }

  /// Where the pieces of each rank begin, and the end.
  template <class Each>
  std::vector<index_t> offsets(const Each& each) const {
    std::vector<index_t> at{0};
    for (int r = 0; r < size_; ++r) {
      index_t bytes = 0;
      each(r, [&](const ConstView& view) { bytes += padded(view.bytes()); });
      at.push_back(at.back() + bytes);
    }
    return at;
  }

  /// Calls f(view) for each view that this rank sends to rank r, call after call.
  template <class F>
  static void each_sent(std::span<const Collective> calls, int r, const F& f) {
    for (const Collective& c : calls) {
      if (c.kind == CollectiveKind::all_gather) f(c.source);
      else if (c.kind == CollectiveKind::reduce_scatter) f(c.source[c.pieces[std::size_t(r)]]);
      else
        for (const Transfer& t : c.sends)
          if (t.peer == r) f(c.source[t.source]);
    }
  }

  /// Calls f(view) for each view of a call that this rank receives from rank r, or reduces.
  template <class F>
  static void each_of(const Collective& c, int r, const F& f) {
    if (c.kind == CollectiveKind::all_gather) f(c.destination[c.pieces[std::size_t(r)]]);
    else if (c.kind == CollectiveKind::reduce_scatter) f(c.destination);
    else
      for (const Transfer& t : c.receives)
        if (t.peer == r) f(c.destination[t.destination]);
  }
  template <class F>
  static void each_received(std::span<const Collective> calls, int r, const F& f) {
    for (const Collective& c : calls) each_of(c, r, f);
  }

  Schedule& schedule_;
  int size_;
};

}  // namespace cleave::inline v0::detail
