// Several small collectives as one message per pair of ranks, which contains the data of all of
// them, one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/messages.hpp>
#include <cleave/comm/reduce.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

/// Whether latency dominates the cost of a call. All ranks agree, whatever their own parts are.
inline bool goes_packed(const Collective& c, int ranks) {
  constexpr index_t small_bytes = 64 << 10;
  return c.global_count > 0 && c.global_count * index_t(size_of(c.dtype())) <= small_bytes * ranks;
}

/// Calls f(view) for each view that a rank sends to a peer, call after call.
template <class F>
void each_sent(std::span<const Collective> calls, int peer, const F& f) {
  for (const Collective& c : calls) {
    if (c.kind == CollectiveKind::all_gather) f(c.source);
    else if (c.kind == CollectiveKind::reduce_scatter) f(c.source[c.pieces[std::size_t(peer)]]);
    else
      for (const Transfer& t : c.sends)
        if (t.peer == peer) f(c.source[t.source]);
  }
}

/// Calls f(view) for each view that a rank receives from a peer, call after call.
/// @param addend  where the peer's addend of reduce-scatter i goes
template <class Addend, class F>
void each_received(std::span<const Collective> calls, int peer, const Addend& addend, const F& f) {
  std::size_t reductions = 0;
  for (const Collective& c : calls) {
    if (c.kind == CollectiveKind::all_gather) f(c.destination[c.pieces[std::size_t(peer)]]);
    else if (c.kind == CollectiveKind::reduce_scatter) f(addend(reductions++, c));
    else
      for (const Transfer& t : c.receives)
        if (t.peer == peer) f(c.destination[t.destination]);
  }
}

/// Sends each peer its part of all calls in one message; packed once if all parts are the same.
inline void send_packed(std::span<const Collective> calls, MpiMessages& messages) {
  const bool alike = std::ranges::all_of(
      calls, [](const Collective& c) { return c.kind == CollectiveKind::all_gather; });
  std::byte* packed = nullptr;
  std::size_t bytes = 0;
  for (int step = 1; step < messages.size(); ++step) {
    const int peer = messages.after(step);
    if (packed == nullptr || !alike) {
      bytes = 0;
      each_sent(calls, peer, [&](const ConstView& view) { bytes += std::size_t(view.bytes()); });
      std::byte* at = packed = messages.scratch(bytes);
      each_sent(calls, peer, [&](const ConstView& view) {
        if (view.size() == 0) return;
        pack_view(view, at);
        at += view.bytes();
      });
    }
    messages.send(packed, bytes, peer);
  }
}

/// Copies the data that a rank sends to itself, except addends.
inline void copy_own(std::span<const Collective> calls, int self) {
  for (const Collective& c : calls) {
    if (c.kind == CollectiveKind::reduce_scatter) continue;
    if (c.kind == CollectiveKind::all_gather) {
      if (c.source.size() > 0) strided_copy(c.source, c.destination[c.pieces[std::size_t(self)]]);
    } else {
      for (const Transfer& t : c.sends)
        if (t.peer == self && !t.source.empty())
          strided_copy(c.source[t.source], c.destination[t.destination]);
    }
  }
}

/// @param calls  all_gather, reduce_scatter, all_to_all, exchange
inline void exchange_packed(std::span<const Collective> calls, MpiMessages& messages) {
  const int self = messages.rank();
  // the addends of all ranks for this rank's pieces: [reduction][rank]
  std::vector<std::vector<ConstView>> addends;
  for (const Collective& c : calls)
    if (c.kind == CollectiveKind::reduce_scatter) {
      const ConstView own = c.source[c.pieces[std::size_t(self)]];
      std::vector<ConstView>& views = addends.emplace_back(std::size_t(messages.size()), own);
      for (int r = 0; r < messages.size(); ++r)
        if (r != self)
          views[std::size_t(r)] =
              ConstView::dense(messages.scratch(std::size_t(own.bytes())), own.dtype, own.extents);
    }
  const auto received = [&](int peer, const auto& f) {
    const auto addend = [&](std::size_t i, const Collective&) {
      const ConstView& view = addends[i][std::size_t(peer)];
      return View{const_cast<void*>(view.data), view.dtype, view.extents, view.strides};
    };
    each_received(calls, peer, addend, f);
  };

  std::vector<std::byte*> arriving(std::size_t(messages.size()), nullptr);
  for (int step = 1; step < messages.size(); ++step) {
    const int peer = messages.before(step);
    std::size_t bytes = 0;
    received(peer, [&](const View& view) { bytes += std::size_t(view.bytes()); });
    arriving[std::size_t(peer)] = messages.scratch(bytes);
    messages.receive(arriving[std::size_t(peer)], bytes, peer);
  }
  send_packed(calls, messages);
  copy_own(calls, self);
  messages.finish();
  for (int step = 1; step < messages.size(); ++step) {
    const int peer = messages.before(step);
    const std::byte* at = arriving[std::size_t(peer)];
    received(peer, [&](const View& view) {
      if (view.size() == 0) return;
      unpack_view(at, view);
      at += view.bytes();
    });
  }
  std::size_t i = 0;
  for (const Collective& c : calls)
    if (c.kind == CollectiveKind::reduce_scatter)
      reduce_range(c.op, addends[i++], c.destination, 0, c.destination.size());
}

}  // namespace cleave::detail
