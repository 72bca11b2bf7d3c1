// The loops of strided copies and fills on the host.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include <cleave/core/shape.hpp>
#include <cleave/tensor/merged_loops.hpp>
#include <cleave/tensor/streaming.hpp>
#include <cleave/tensor/transpose_plane.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The loops of a copy by descending strides of the destination; array 0 is the source.
inline MergedLoops<2> copy_loops(const Shape& extents, const Shape& from, const Shape& to) {
  MergedLoops<2> loops;
  for (const index_t d : descending_order(extents.dims, std::array{&to, &from}))
    loops.push(extents[int(d)], {from[int(d)], to[int(d)]});
  return loops;
}

/// One loop of a copy; strides in bytes.
struct CopyLoop {
  index_t extent = 1;
  index_t from = 0;
  index_t to = 0;
};

/// At least two nested loops, outermost first, around a run of bytes.
struct CopyPlan {
  std::array<CopyLoop, std::size_t(max_dims)> loops{};
  int count = 0;
  index_t run = 1;
  std::size_t array = 0;  ///< bytes of the array that is being written

  constexpr CopyLoop& operator[](int i) { return loops[std::size_t(i)]; }
  constexpr const CopyLoop& operator[](int i) const { return loops[std::size_t(i)]; }
  constexpr const CopyLoop& outer() const { return (*this)[count - 2]; }
  constexpr const CopyLoop& inner() const { return (*this)[count - 1]; }
};

/// The inner loop has the smallest stride in the destination. If another loop has the smallest
/// stride in the source, it is the loop around the inner one.
inline CopyPlan plan_copy(const Shape& extents, const Shape& from, const Shape& to,
                          index_t element) {
  const MergedLoops<2> loops = copy_loops(extents, from, to);
  const auto& [source, destination] = loops.strides;
  CopyPlan plan;
  plan.run = element;
  int count = loops.dims;
  if (count > 0 && source[count - 1] == 1 && destination[count - 1] == 1)
    plan.run *= loops.extents[--count];
  while (plan.count + count < 2) ++plan.count;  // loops that run once
  for (int d = 0; d < count; ++d)
    plan[plan.count++] = {loops.extents[d], source[d] * element, destination[d] * element};

  int along = plan.count - 1;  // the loop with the smallest stride in the source
  for (int i = plan.count - 2; i >= 0; --i)
    if (plan[i].extent > 1 && magnitude(plan[i].from) < magnitude(plan[along].from)) along = i;
  for (; along < plan.count - 2; ++along) std::swap(plan[along], plan[along + 1]);
  return plan;
}

/// Calls `plane(from, to)` for every iteration of all loops but the two innermost.
template <class Plane>
void for_each_plane(const CopyPlan& plan, const std::byte* from, std::byte* to, const Plane& plane,
                    int loop = 0) {
  if (loop == plan.count - 2) return plane(from, to);
  const CopyLoop& l = plan[loop];
  for (index_t i = 0; i < l.extent; ++i)
    for_each_plane(plan, from + i * l.from, to + i * l.to, plane, loop + 1);
}

/// Elements as opaque words of N bytes.
template <std::size_t N>
struct Word {
  std::byte bytes[N];
};

/// Moves N bytes.
template <std::size_t N>
struct MoveWord {
  explicit MoveWord(const CopyPlan&) {}
  void operator()(const std::byte* from, std::byte* to) const {
    *reinterpret_cast<Word<N>*>(to) = *reinterpret_cast<const Word<N>*>(from);
  }
};

/// Moves `run` bytes, N <= run <= 2 N, as a head and a tail that may overlap.
template <std::size_t N>
struct MoveRun {
  index_t tail;
  MoveWord<N> word;
  explicit MoveRun(const CopyPlan& plan) : tail(plan.run - index_t(N)), word(plan) {}
  void operator()(const std::byte* from, std::byte* to) const {
    word(from, to);
    word(from + tail, to + tail);
  }
};

/// Moves any number of bytes.
struct MoveBytes {
  std::size_t run, array;
  explicit MoveBytes(const CopyPlan& plan) : run(std::size_t(plan.run)), array(plan.array) {}
  void operator()(const std::byte* from, std::byte* to) const { copy_run(from, to, run, array); }
};

/// Copies all runs. If the outer loop has the smaller stride in the source, the inner loop is
/// blocked, so that cache lines of the source that several runs share are reused.
template <class Move>
void copy_runs(const CopyPlan& plan, const std::byte* from, std::byte* to) {
  for_each_plane(plan, from, to, [&](const std::byte* source, std::byte* destination) {
    const CopyLoop outer = plan.outer(), inner = plan.inner();  // copies: bytes alias everything
    const Move move(plan);
    const bool crossed = outer.extent > 1 && magnitude(outer.from) < magnitude(inner.from);
    const index_t width = crossed ? 32 : inner.extent;
    for (index_t begin = 0; begin < inner.extent; begin += width) {
      const index_t end = begin + width < inner.extent ? begin + width : inner.extent;
      for (index_t i = 0; i < outer.extent; ++i) {
        const std::byte* a = source + i * outer.from;
        std::byte* b = destination + i * outer.to;
        for (index_t j = begin; j < end; ++j) move(a + j * inner.from, b + j * inner.to);
      }
    }
  });
}

/// Copies words that are contiguous along the outer loop in the source and along the inner loop in
/// the destination.
template <int N>
void copy_transposed(const CopyPlan& plan, const std::byte* from, std::byte* to) {
  for_each_plane(plan, from, to, [&](const std::byte* source, std::byte* destination) {
    transpose_plane<N>({source, plan.inner().from, destination, plan.outer().to,
                        plan.inner().extent, plan.outer().extent});
  });
}

template <int N>
void copy_words(const CopyPlan& plan, const std::byte* from, std::byte* to) {
  if (plan.outer().extent > 1 && plan.outer().from == N && plan.inner().to == N)
    copy_transposed<N>(plan, from, to);
  else copy_runs<MoveWord<N>>(plan, from, to);
}

inline void copy_planned(const CopyPlan& plan, const std::byte* from, std::byte* to) {
  switch (plan.run) {
    case 1: return copy_words<1>(plan, from, to);
    case 2: return copy_words<2>(plan, from, to);
    case 4: return copy_words<4>(plan, from, to);
    case 8: return copy_words<8>(plan, from, to);
    case 16: return copy_words<16>(plan, from, to);
    default: break;
  }
  if (plan.run < 4) return copy_runs<MoveRun<2>>(plan, from, to);
  if (plan.run < 8) return copy_runs<MoveRun<4>>(plan, from, to);
  if (plan.run < 16) return copy_runs<MoveRun<8>>(plan, from, to);
  if (plan.run <= 32) return copy_runs<MoveRun<16>>(plan, from, to);
  if (plan.run <= 64) return copy_runs<MoveRun<32>>(plan, from, to);
  copy_runs<MoveBytes>(plan, from, to);
}

/// Sets all elements to the word of N bytes.
template <std::size_t N>
void fill_words(const View& view, const void* value) {
  const CopyPlan plan = plan_copy(view.extents, view.strides, view.strides, index_t(N));
  const Word<N> copy = *static_cast<const Word<N>*>(value);  // the value may lie inside the array
  auto* bytes = static_cast<std::byte*>(view.data);
  for_each_plane(plan, bytes, bytes, [&](const std::byte*, std::byte* to) {
    for (index_t i = 0; i < plan.outer().extent; ++i)
      for (index_t j = 0; j < plan.inner().extent; ++j) {
        auto* run = reinterpret_cast<Word<N>*>(to + i * plan.outer().to + j * plan.inner().to);
        for (index_t k = 0; k < plan.run / index_t(N); ++k) run[k] = copy;
      }
  });
}

}  // namespace detail

}  // namespace cleave::inline v0
