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
#include <cleave/ops/convolutions/windows.hpp>
#include <cleave/ops/reductions/diff.hpp>
#include <cleave/ops/shapes/cat.hpp>
#include <cleave/ops/shapes/pad.hpp>
#include <cleave/ops/shapes/roll.hpp>
#include <cleave/ops/shapes/slice.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace received {
namespace {

constexpr index_t columns = 2;

/// The indices of dimension 0 of an operand that result i reads.
using Reads = FunctionRef<std::vector<index_t>(index_t i)>;

/// The bytes of x, whose dimension 0 is sharded, that this rank's part of y reads and does not
/// have.
///
/// @param along  the dimension of y that i is an index of
/// @param gaps   whether what lies between two elements that are read is read too
template <class X, class Y>
index_t lacking_bytes(const X& x, const Y& y, Reads reads, bool gaps = false, int along = 0) {
  const auto mesh = naive::to_indices(x.mesh().extents());
  const auto at = naive::to_indices(x.mesh().state().coordinate());
  const auto own_of = [&](const Layout& layout, int d, const auto& shape) {
    return naive::owned(layout, d, naive::to_indices(Shape(shape)), mesh, at);
  };
  std::set<index_t> read;
  for (const index_t i : own_of(Y::layout, along, y.shape()))
    for (const index_t from : reads(i)) read.insert(from);
  if (gaps && !read.empty())
    for (index_t i = *read.begin(); i < *read.rbegin(); ++i) read.insert(i);
  for (const index_t i : own_of(X::layout, 0, x.shape())) read.erase(i);
  index_t bytes = index_t(read.size()) * index_t(sizeof(typename X::value_type));
  for (int d = 1; d < X::dims; ++d) bytes *= index_t(own_of(X::layout, d, x.shape()).size());
  return bytes;
}

/// Calls op(x) and compares the bytes that this rank receives with those that it lacks.
template <class X, class Op>
void check_bytes(const std::string& name, const X& x, const Op& op, Reads reads, bool gaps = false,
                 int along = 0) {
  CommTrace trace(x.mesh());
  const auto y = op(x);
  about(name + " of " + described(x),
        [&] { CHECK(trace.received_bytes() == lacking_bytes(x, y, reads, gaps, along)); });
}

/// The same for parts of x. @param begin  where each begins
template <class X, class Op>
void check_parts(const std::string& name, const X& x, const Op& op,
                 FunctionRef<index_t(index_t)> begin) {
  CommTrace trace(x.mesh());
  const auto parts = op(x);
  index_t bytes = 0, part = 0;
  for (const auto& y : parts) {
    bytes += lacking_bytes(x, y, [&](index_t i) { return std::vector<index_t>{begin(part) + i}; });
    ++part;
  }
  about(name + " of " + described(x), [&] { CHECK(trace.received_bytes() == bytes); });
}

/// The same for arrays that are joined along dimension 0 or along a new one.
template <class T, class P, class Mesh>
void check_joined(const Mesh& mesh, index_t n) {
  const auto x = placed<T, P>(mesh, std::array<index_t, 2>{n, columns}, 0);
  const auto longer = placed<T, P>(mesh, std::array<index_t, 2>{n + 3, columns}, 1);
  const auto rows_of = [](index_t first, index_t count) {
    return [first, count](index_t i) {
      return i < first || i >= first + count ? std::vector<index_t>{}
                                             : std::vector<index_t>{i - first};
    };
  };
  CommTrace trace(mesh);
  const auto y = cat(dim<0>{}, x, longer, x);
  about("cat of " + described(x), [&] {
    CHECK(trace.received_bytes() == lacking_bytes(x, y, rows_of(0, n)) +
                                        lacking_bytes(longer, y, rows_of(n, n + 3)) +
                                        lacking_bytes(x, y, rows_of(2 * n + 3, n)));
  });
  const auto same = [](index_t i) { return std::vector<index_t>{i}; };
  check_bytes("stack", x, [](const auto& of) { return stack(dim<0>{}, of, of); }, same, false, 1);
  check_bytes("stack inside", x, [](const auto& of) { return stack(dim<1>{}, of, of); }, same);
}

/// The positions of windows that contain element i.
std::vector<index_t> positions(index_t i, const Window& window, index_t count) {
  std::vector<index_t> all;
  for (index_t p = 0; p < count; ++p)
    if (i >= p * window.stride && i < p * window.stride + window.span()) all.push_back(p);
  return all;
}

/// The same for windows along dimension 0, and for their sums.
template <class T, class P, class Mesh>
void check_sliding(const Mesh& mesh, index_t n) {
  const auto x = placed<T, P>(mesh, std::array<index_t, 2>{n, columns}, 0);
  for (const Window& window : {Window{1, 1, 1}, {3, 1, 1}, {2, 3, 1}, {2, 1, 3}, {3, 2, 2}}) {
    if (window.span() <= n)
      check_bytes(
          "windows", x, [&](const auto& of) { return windows(of, dim<0>{}, window); },
          [&](index_t i) {
            std::vector<index_t> all;
            for (index_t k = 0; k < window.span(); ++k) all.push_back(i * window.stride + k);
            return all;
          },
          true);
    if constexpr (!std::is_same_v<T, bool> && layout_of<P, 3>.sharding_axes(1) == 0) {
      const index_t extent = n * window.stride + window.span() + 1;
      const auto found = placed<T, P>(mesh, std::array<index_t, 3>{n, window.size, columns}, 0);
      check_bytes(
          "overlap_add", found,
          [&](const auto& of) { return overlap_add(of, dim<0>{}, extent, window); },
          [&](index_t i) { return positions(i, window, n); }, true);
      const auto all = expected(found, 0);
      check_equal(overlap_add(found, dim<0>{}, extent, window),
                  array_of<T>({extent, columns}, [&](const naive::Indices& to) {
                    T sum = T(0);
                    for (index_t p = 0; p < n; ++p)
                      for (index_t k = 0; k < window.size; ++k)
                        if (p * window.stride + k * window.dilation == to[0])
                          sum = T(sum + all.at({p, k, to[1]}));
                    return sum;
                  }));
    }
  }
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
  check_bytes(
      "pad with a value", x, [](const auto& of) { return pad(of, dim<0>{}, 2, 5, T(1)); },
      [&](index_t i) { return i < 2 || i >= n + 2 ? std::vector<index_t>{} : one(i - 2); });
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
  for (const index_t step : {2, 5})
    check_bytes(
        "slice with steps", x, [&](const auto& of) { return slice(of, dim<0>{}, n / 3, n, step); },
        [&](index_t i) { return one(n / 3 + step * i); }, true);
  for (const index_t step : {2, 3}) {  // the gradient of such a slice
    const ops::Embed<0> embed{step * n + 3, 1, step};
    const auto from = [&](index_t i) {
      return i % step == 1 && i < step * n ? one(i / step) : std::vector<index_t>{};
    };
    check_bytes("embed", x, [&](const auto& of) { return call_op(embed, of); }, from, true);
    const auto all = expected(x, 0);
    check_equal(call_op(embed, x),
                array_of<T>({embed.extent, columns}, [&](const naive::Indices& at) {
                  return from(at[0]).empty() ? T(0) : all.at({from(at[0])[0], at[1]});
                }));
  }
  const index_t third = n / 3;
  check_parts(
      "split", x, [&](const auto& of) { return split(of, dim<0>{}, {third, 0, n - third}); },
      [&](index_t part) { return part == 0 ? 0 : third; });
  check_parts(
      "split by length", x, [](const auto& of) { return split(of, dim<0>{}, 3); },
      [](index_t part) { return 3 * part; });
  if (n % 2 == 0)
    check_parts(
        "chunk", x, [](const auto& of) { return chunk<2>(of, dim<0>{}); },
        [&](index_t part) { return part * (n / 2); });
  check_joined<T, P>(mesh, n);
  check_sliding<T, P>(mesh, n);
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
