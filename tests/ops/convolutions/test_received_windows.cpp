// What convolutions, pools and transposed convolutions receive of images that are sharded in space,
// counted by naive loops.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/convolutions/conv.hpp>
#include <cleave/ops/convolutions/conv_transpose.hpp>
#include <cleave/ops/convolutions/pool.hpp>

#include "../placed.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace received_windows {
namespace {

constexpr index_t images = 2, channels = 3, filters = 2;

/// Windows of an operation, alike in all dimensions.
struct Windows {
  index_t size = 1, stride = 1, padding = 0, dilation = 1;

  index_t span() const { return (size - 1) * dilation + 1; }
};

enum class Reads { window, overlapping };

/// The indices of n along a dimension that result i reads: those in its window, or those whose
/// windows overlap it.
std::set<index_t> read_by(index_t i, const Windows& windows, index_t n, Reads what) {
  std::set<index_t> all;
  for (index_t k = 0; k < windows.span(); ++k)
    for (index_t from = 0; from < n; ++from)
      if (what == Reads::window ? from == i * windows.stride - windows.padding + k
                                : i == from * windows.stride - windows.padding + k)
        all.insert(from);
  return all;
}

/// Calls op(x) and compares what this rank receives with what its part of the result reads and it
/// lacks, from the first to the last index of each dimension. There is one exchange, or none.
template <class X, class Op>
void check_windows(const std::string& name, const X& x, const Op& op, const Windows& windows,
                   Reads what = Reads::window) {
  CommTrace trace(x.mesh());
  const auto y = op(x);
  using Y = std::remove_cvref_t<decltype(y)>;
  static_assert(Y::layout == X::layout);
  const auto mesh = naive::to_indices(x.mesh().extents());
  const auto at = naive::to_indices(x.mesh().state().coordinate());
  index_t needed = 1, had = 1;
  for (int d = 2; d < X::dims; ++d) {
    std::set<index_t> read;
    for (const index_t i :
         naive::owned(Y::layout, d, naive::to_indices(Shape(y.shape())), mesh, at))
      read.merge(read_by(i, windows, x.shape()[std::size_t(d)], what));
    if (!read.empty())
      for (index_t i = *read.begin(); i < *read.rbegin(); ++i) read.insert(i);
    const auto own = naive::owned(X::layout, d, naive::to_indices(Shape(x.shape())), mesh, at);
    needed *= index_t(read.size());
    had *=
        index_t(std::count_if(own.begin(), own.end(), [&](index_t i) { return read.contains(i); }));
  }
  about(name + " of " + described(x) + " with windows of " + std::to_string(windows.size) +
            ", stride " + std::to_string(windows.stride) + ", padding " +
            std::to_string(windows.padding) + ", dilation " + std::to_string(windows.dilation),
        [&] {
          CHECK(trace.received_bytes() ==
                (needed - had) * images * channels * index_t(sizeof(typename X::value_type)));
          CHECK(trace.count() == (x.mesh().state().size() > 1));
        });
}

/// The same number for N dimensions.
template <int N>
constexpr std::array<index_t, std::size_t(N)> all(index_t n) {
  std::array<index_t, std::size_t(N)> values{};
  values.fill(n);
  return values;
}

template <int N>
struct Calls;
template <>
struct Calls<1> {
  static auto conv(const auto&... x) { return conv1d(x...); }
  static auto transposed(const auto&... x) { return conv_transpose1d(x...); }
  static auto largest(const auto&... x) { return max_pool1d(x...); }
  static auto mean(const auto&... x) { return avg_pool1d(x...); }
};
template <>
struct Calls<2> {
  static auto conv(const auto&... x) { return conv2d(x...); }
  static auto transposed(const auto&... x) { return conv_transpose2d(x...); }
  static auto largest(const auto&... x) { return max_pool2d(x...); }
  static auto mean(const auto&... x) { return avg_pool2d(x...); }
};
template <>
struct Calls<3> {
  static auto conv(const auto&... x) { return conv3d(x...); }
  static auto transposed(const auto&... x) { return conv_transpose3d(x...); }
  static auto largest(const auto&... x) { return max_pool3d(x...); }
  static auto mean(const auto&... x) { return avg_pool3d(x...); }
};

/// Calls all operations of N dimensions with images of the given extents.
template <class T, class P, class Everywhere, int N, class Mesh>
void check_all(const Mesh& mesh, const std::array<index_t, std::size_t(N)>& extents) {
  std::array<index_t, std::size_t(N) + 2> shape{images, channels};
  std::copy(extents.begin(), extents.end(), shape.begin() + 2);
  const index_t shortest = *std::min_element(extents.begin(), extents.end());
  const auto x = placed<T, P>(mesh, shape, 0);
  for (const Windows& windows : {Windows{3}, {3, 2, 1}, {2, 3}, {2, 1, 1, 2}, {1, 2}}) {
    if (shortest + 2 * windows.padding < windows.span()) continue;
    const auto with = [&](auto how) {
      how.stride = all<N>(windows.stride), how.padding = all<N>(windows.padding);
      how.dilation = all<N>(windows.dilation);
      if constexpr (requires { how.size; }) how.size = all<N>(windows.size);
      return how;
    };
    const std::string dims = std::to_string(N) + "d";
    const auto weights = [&](index_t first, index_t second) {
      std::array<index_t, std::size_t(N) + 2> of;
      of.fill(windows.size);
      of[0] = first, of[1] = second;
      return placed<T, Everywhere>(mesh, of, 1);
    };
    check_windows(
        "conv" + dims, x,
        [&](const auto& of) {
          return Calls<N>::conv(of, weights(filters, channels), with(Convolution<N>{}));
        },
        windows);
    check_windows(
        "conv_transpose" + dims, x,
        [&](const auto& of) {
          return Calls<N>::transposed(of, weights(channels, filters),
                                      with(TransposedConvolution<N>{}));
        },
        windows, Reads::overlapping);
    if constexpr (N < 3) {
      const ChannelGroups each{channels};
      check_windows(
          "grouped conv" + dims, x,
          [&](const auto& of) {
            return Calls<N>::conv(of, weights(channels, 1), each, with(Convolution<N>{}));
          },
          windows);
      check_windows(
          "grouped conv_transpose" + dims, x,
          [&](const auto& of) {
            return Calls<N>::transposed(of, weights(channels, 1), each,
                                        with(TransposedConvolution<N>{}));
          },
          windows, Reads::overlapping);
    }
    check_windows(
        "max_pool" + dims, x,
        [&](const auto& of) { return Calls<N>::largest(of, with(Pooling<N>{})); }, windows);
    for (const bool counts : {true, false})
      check_windows(
          "avg_pool" + dims, x,
          [&](const auto& of) {
            auto how = with(Pooling<N>{});
            how.count_include_pad = counts;
            return Calls<N>::mean(of, how);
          },
          windows);
  }
}

}  // namespace

TEST_CASE("windows along one dimension receive what they contain and the rank lacks") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    for (const index_t n : {1, 3, 8, 13})
      check_all<double, Placements<Shard<2>>, Placements<Replicate>, 1>(mesh, {n});
  });
}

TEST_CASE("they do so where two axes shard the dimension") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2}, TestDevice{});
    for (const index_t n : {3, 11})
      check_all<float, Placements<Shard<2>, Shard<2>>, Placements<Replicate, Replicate>, 1>(mesh,
                                                                                            {n});
  });
}

TEST_CASE("windows of rows and columns make one exchange of what they lack") {
  on_ranks({1, 2, 4, 6}, [](World& world) {
    const index_t rows = world.size() == 1 ? 1 : 2;
    const auto mesh = init_device_mesh<dp, tp>(world, {rows, world.size() / rows}, TestDevice{});
    for (const std::array<index_t, 2> n : {std::array<index_t, 2>{8, 9}, {5, 4}, {3, 12}})
      check_all<double, Placements<Shard<2>, Shard<3>>, Placements<Replicate, Replicate>, 2>(mesh,
                                                                                             n);
  });
}

TEST_CASE("so do windows of layers, rows and columns") {
  on_ranks({1, 2, 4}, [](World& world) {
    const index_t rows = world.size() == 1 ? 1 : 2;
    const auto mesh = init_device_mesh<dp, tp>(world, {rows, world.size() / rows}, TestDevice{});
    check_all<float, Placements<Shard<4>, Shard<2>>, Placements<Replicate, Replicate>, 3>(
        mesh, {5, 3, 4});
  });
}

}  // namespace received_windows
