// What every operation receives that reads elements of other shards: exactly those of its part of
// the result that are not in its own part, counted by naive loops, on even, uneven and empty
// shards.
#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/core/half.hpp>
#include <cleave/ops/convolutions/conv.hpp>
#include <cleave/ops/convolutions/pool.hpp>
#include <cleave/ops/reductions/diff.hpp>
#include <cleave/ops/shapes/cat.hpp>
#include <cleave/ops/shapes/slice.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace received {
namespace {

constexpr index_t columns = 2;

/// The indices of dimension 0 that result i reads, from the first to the last one.
using Reads = FunctionRef<std::vector<index_t>(index_t i)>;

/// Calls op(x), whose dimension 0 is sharded, and compares the bytes that this rank receives with
/// the elements that its part of the result reads and does not have.
template <class X, class Op>
void check_bytes(const std::string& name, const X& x, const Op& op, Reads reads) {
  CommTrace trace(x.mesh());
  const auto y = op(x);
  using Y = std::remove_cvref_t<decltype(y)>;
  const auto mesh = naive::to_indices(x.mesh().extents());
  const auto at = naive::to_indices(x.mesh().state().coordinate());
  const auto own = naive::owned(X::layout, 0, naive::to_indices(Shape(x.shape())), mesh, at);
  std::set<index_t> lacks;
  for (const index_t i : naive::owned(Y::layout, 0, naive::to_indices(Shape(y.shape())), mesh, at))
    for (const index_t from : reads(i))
      if (std::find(own.begin(), own.end(), from) == own.end()) lacks.insert(from);
  index_t row = 1;
  for (int d = 1; d < X::dims; ++d)
    row *=
        index_t(naive::owned(X::layout, d, naive::to_indices(Shape(x.shape())), mesh, at).size());
  about(name + " of " + described(x), [&] {
    CHECK(trace.received_bytes() ==
          index_t(lacks.size()) * row * index_t(sizeof(typename X::value_type)));
  });
}

template <class T, class P, class Mesh>
void check_all(const Mesh& mesh, index_t n) {
  const auto x = placed<T, P>(mesh, std::array<index_t, 2>{n, columns}, 0);
  const auto one = [](index_t i) { return std::vector<index_t>{i}; };
  check_bytes(
      "slice", x, [&](const auto& of) { return slice(of, dim<0>{}, n / 3, n); },
      [&](index_t i) { return one(i + n / 3); });
  check_bytes(
      "flip", x, [](const auto& of) { return flip(of, dim<0>{}); },
      [&](index_t i) { return one(n - 1 - i); });
  check_bytes(
      "roll", x, [](const auto& of) { return roll(of, dim<0>{}, 2); },
      [&](index_t i) { return one((i + 2 * n - 2) % n); });
  check_bytes(
      "pad", x, [](const auto& of) { return pad(of, dim<0>{}, 3, 1); },
      [&](index_t i) { return i < 3 || i >= n + 3 ? std::vector<index_t>{} : one(i - 3); });
  for (const index_t count : {1, 2, 3, 9})
    check_bytes(
        "tile", x, [&](const auto& of) { return tile(of, dim<0>{}, count); },
        [&](index_t i) { return one(i % n); });
  check_bytes(
      "pad circular", x,
      [&](const auto& of) { return pad<PadMode::circular>(of, dim<0>{}, n / 2, n); },
      [&](index_t i) { return one((i + n - n / 2) % n); });
  if constexpr (!std::is_same_v<T, bool>)
    for (const index_t order : {1, 3})
      check_bytes(
          "diff", x, [&](const auto& of) { return diff(of, dim<0>{}, order); },
          [&](index_t i) {
            std::vector<index_t> all;
            for (index_t k = i; k <= i + order; ++k) all.push_back(k);
            return all;
          });
  if (n == 0) return;
  check_bytes(
      "pad replicate", x,
      [](const auto& of) { return pad<PadMode::replicate>(of, dim<0>{}, 2, 9); },
      [&](index_t i) { return one(std::clamp<index_t>(i - 2, 0, n - 1)); });
  for (const index_t before : {index_t(0), n - 1})
    check_bytes(
        "pad reflect", x,
        [&](const auto& of) { return pad<PadMode::reflect>(of, dim<0>{}, before, n / 2); },
        [&](index_t i) {
          const index_t from = std::abs(i - before);
          return one(from < n ? from : 2 * (n - 1) - from);
        });
}

}  // namespace

TEST_CASE("operations receive exactly what their part of the result reads and lacks") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    for (const index_t n : {0, 1, 2, 5, 8, 16}) check_all<double, Placements<Shard<0>>>(mesh, n);
  });
}

TEST_CASE("they do so where two axes shard the dimension, and for elements of other sizes") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2}, TestDevice{});
    for (const index_t n : {1, 5, 12}) {
      check_all<std::complex<float>, Placements<Shard<0>, Shard<0>>>(mesh, n);
      check_all<bool, Placements<Replicate, Shard<0>>>(mesh, n);
      check_all<half, Placements<Shard<0>, Shard<1>>>(mesh, n);
    }
  });
}

namespace {

/// Calls op(x) with images whose rows and columns are sharded, and compares what this rank receives
/// with the elements that the windows of its part of the result contain and that it lacks. There is
/// one exchange, or none.
template <class X, class Op>
void check_windows(const X& x, const Op& op, index_t channels, const Window& window,
                   index_t padding) {
  CommTrace trace(x.mesh());
  const auto y = op(x);
  using Y = std::remove_cvref_t<decltype(y)>;
  static_assert(Y::layout == X::layout);
  const auto mesh = naive::to_indices(x.mesh().extents());
  const auto at = naive::to_indices(x.mesh().state().coordinate());
  index_t needed = 1, had = 1;
  for (const int d : {2, 3}) {
    const auto own = naive::owned(X::layout, d, naive::to_indices(Shape(x.shape())), mesh, at);
    std::set<index_t> read;
    for (const index_t i :
         naive::owned(Y::layout, d, naive::to_indices(Shape(y.shape())), mesh, at))
      for (index_t k = 0; k < window.span(); ++k) {
        const index_t from = i * window.stride + k - padding;
        if (from >= 0 && from < x.shape()[std::size_t(d)]) read.insert(from);
      }
    needed *= index_t(read.size());
    had *= index_t(std::count_if(own.begin(), own.end(),
                                 [&](index_t i) { return read.find(i) != read.end(); }));
  }
  CHECK(trace.received_bytes() == (needed - had) * x.shape()[0] * channels * 8);
  CHECK(trace.count() == (x.mesh().state().size() > 1));
}

}  // namespace

TEST_CASE("padded convolutions and pools make one exchange of what their windows lack") {
  on_ranks({1, 2, 4, 6}, [](World& world) {
    const index_t rows = world.size() == 1 ? 1 : 2;
    const auto mesh = init_device_mesh<dp, tp>(world, {rows, world.size() / rows}, TestDevice{});
    using Spread = Placements<Shard<2>, Shard<3>>;
    for (const std::array<index_t, 2> n : {std::array<index_t, 2>{8, 9}, {5, 4}, {3, 12}}) {
      const auto x = placed<double, Spread>(mesh, std::array<index_t, 4>{2, 3, n[0], n[1]}, 0);
      const auto weight = placed<double, Placements<Replicate, Replicate>>(
          mesh, std::array<index_t, 4>{2, 3, 3, 3}, 1);
      for (const index_t stride : {1, 2})
        for (const index_t padding : {0, 1})
          check_windows(
              x,
              [&](const auto& of) {
                return conv2d(of, weight,
                              {.stride = {stride, stride}, .padding = {padding, padding}});
              },
              3, {3, stride, 1}, padding);
      check_windows(
          x,
          [&](const auto& of) {
            return max_pool2d(
                of, {.size = {2, 2}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {2, 2}});
          },
          3, {2, 1, 2}, 1);
    }
  });
}

namespace {

/// The sum of two neighbours, whose map is too short if Reach is 0.
template <int Reach>
struct WithNext {
  static constexpr const char* name = "with_next";
  static constexpr const char* factors = "ab->ab";
  static constexpr const char* reads = "aa";
  static constexpr DimMap read_map(int, int, const OperandRef*) { return {1, 1, -1, Reach - 1}; }
  static void kernel(const auto& on, const Task& task, const auto& y, const auto& x) {
    const index_t first = task.box->begin[0] - task.in_box->begin[0];
    copy_elements(on, every(x, 0, first, 1, y.extents[0]), y);
  }
};
/// A view of the next row.
struct NextRow {
  static constexpr const char* name = "next_row";
  static constexpr const char* factors = "ab->ab";
  static constexpr const char* reads = "aa";
  static constexpr DimMap read_map(int, int, const OperandRef*) { return {1, 1, 0, 0}; }
  static void view(const Task& task) {
    const OperandRef& x = *task.in;
    task.out->data = static_cast<double*>(x.data) + x.strides[0];
    for (int d = 0; d < x.dims; ++d) task.strides[d] = x.strides[d];
  }
};

}  // namespace

TEST_CASE("a read map that is too short is an error") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>>>(mesh, std::array<index_t, 2>{6, 2}, 0);
    check_equal(call_op(WithNext<1>{}, x), expected(x, 0));
    CHECK(error_of([&] { call_op(WithNext<0>{}, x); }).find("kernel: reads or writes indices ") ==
          0);
    CHECK(error_of([&] {
            call_op(NextRow{}, x);
          }).find("next_row: the view has elements beyond those that the rank has read") == 0);
  });
}

TEST_CASE("padding longer than the dimension allows is an error") {
  const auto x = held<double, 2>({}, Shape(std::array<index_t, 2>{3, 2}), {}, {}, 0);
  CHECK(error_of([&] { pad<PadMode::reflect>(x, dim<0>{}, 3, 0); }) ==
        "pad: a side of 3 elements is longer than the extent 3 allows [shapes [3, 2]]");
  CHECK(error_of([&] { pad<PadMode::circular>(x, dim<0>{}, 0, 4); }).find("pad: a side of 4") == 0);
  CHECK(pad<PadMode::replicate>(x, dim<0>{}, 9, 9).shape()[0] == 21);
  CHECK(error_of([&] { pad<PadMode::replicate>(x, dim<0>{}, 9, -1); }).find("pad: a length") == 0);
  const auto none = held<double, 2>({}, Shape(std::array<index_t, 2>{0, 2}), {}, {}, 0);
  CHECK(error_of([&] { pad<PadMode::replicate>(none, dim<0>{}, 1, 0); }).find("pad: a side") == 0);
  CHECK(pad<PadMode::reflect>(none, dim<0>{}, 0, 0).shape()[0] == 0);
}

}  // namespace received
