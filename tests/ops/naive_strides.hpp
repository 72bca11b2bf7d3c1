// Stencils between grids, and what they compute and read by naive loops over the global arrays.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "naive_stencils.hpp"

namespace stencil_tests {

/// Reads the offsets Lo .. Hi around every N-th element.
template <int Lo, int Hi, int N>
struct Coarse : Stencil {
  static constexpr auto stride = coarsen(N);
  constexpr auto operator()(const auto& u) const {
    return Line<Lo, Hi>{}(u) + decltype(u(0))(float(u.index(0)));
  }
};
/// Reads the offsets Lo .. Hi, and Hi + 1 from the middle between two elements on.
template <int Lo, int Hi, int N>
struct Fine : Stencil {
  static constexpr auto stride = refine(N);
  constexpr auto operator()(const auto& u) const {
    using V = decltype(u(0));
    const int place = int(u.index(0) % N), by = 2 * place >= N && N > 1 ? 1 : 0;
    V sum = V(float(u.index(0)));
    for (int i = Lo; i <= Hi; ++i) sum = sum + u(i + by) * V(float(i + 7 + place));
    return sum;
  }
};
/// Full weighting.
template <int N0, int N1>
struct Restrict : Stencil {
  static constexpr auto stride = coarsen(N0, N1);
  constexpr auto operator()(const auto& u) const { return Nine{}(u); }
};
/// The mean of four cells.
struct Mean : Stencil {
  static constexpr auto stride = coarsen(2, 2);
  constexpr auto operator()(const auto& u) const {
    return 0.25 * (u(0, 0) + u(0, 1) + u(1, 0) + u(1, 1));
  }
};
/// Bilinear interpolation between vertices.
struct Interpolate : Stencil {
  static constexpr auto stride = refine(2);
  constexpr auto operator()(const auto& u) const {
    const int i = int(u.index(0) % 2), j = int(u.index(1) % 2);
    return 0.25 * (u(0, 0) + u(i, 0) + u(0, j) + u(i, j));
  }
};
/// Reads the nearest neighbours in one dimension that is refined by 3.
struct Nearest : Stencil {
  static constexpr auto stride = refine(1, 3);
  constexpr auto operator()(const auto& u) const {
    return 2 * u(0, 0) + u(-1, 0) + u(0, int(u.index(1) % 3) - 1);
  }
};
struct Restrict3 : Stencil {
  static constexpr auto stride = coarsen(2, 1, 3);
  constexpr auto operator()(const auto& u) const { return Seven{}(u) + u(1, 1, 1); }
};
struct Interpolate3 : Stencil {
  static constexpr auto stride = refine(2);
  constexpr auto operator()(const auto& u) const {
    return 2 * u(0, 0, 0) +
           u(int(u.index(0) % 2), int(u.index(1) % 2), int(u.index(2) % 2)) * double(u.index(2));
  }
};
/// Two fields on the fine grid, one on the coarse one.
struct Correct : Stencil {
  static constexpr Stride stride[] = {Stride{}, refine(2), Stride{}};
  constexpr auto operator()(const auto& u, const auto& e, const auto& c) const {
    const int j = int(u.index(1) % 2);
    return u(0, 0) + c(-1, 0) * (e(0, 0) + e(int(u.index(0) % 2), j));
  }
};

/// How a naive loop finds the element of a field for an element of a result, in each dimension.
struct NaiveStride {
  std::vector<int> num, den;
};
template <std::size_t Rank>
NaiveStride naive_stride(const Stride& of) {
  NaiveStride result;
  for (std::size_t d = 0; d < Rank; ++d) {
    result.num.push_back(of.num[of.dims == 1 ? 0 : d]);
    result.den.push_back(of.den[of.dims == 1 ? 0 : d]);
  }
  return result;
}

/// A field of a naive loop over the result's indices.
template <class T>
struct NaiveGrid : NaiveField<T> {
  Indices result;
  std::array<Indices, 2>* read;  ///< the least and the greatest offset; empty: none

  template <class... I>
  detail::stencil_value_t<T> operator()(I... offset) const {
    std::size_t d = 0;
    for (const index_t by : {index_t(offset)...}) {
      auto& [least, most] = *read;
      least.resize(sizeof...(I)), most.resize(sizeof...(I));
      least[d] = std::min(least[d], by), most[d] = std::max(most[d], by);
      ++d;
    }
    return NaiveField<T>::operator()(offset...);
  }
  index_t index(int d) const { return result[std::size_t(d)]; }
};

/// Fields of a naive loop.
template <class T, std::size_t Fields>
struct NaiveGrids {
  std::array<Indices, Fields> shape;
  std::array<NaiveStride, Fields> stride;
  std::array<std::vector<T>, Fields> values;
  BeyondAll beyond;

  /// The element at the offset 0.
  Indices centre(std::size_t k, const Indices& result) const {
    Indices here = result;
    for (std::size_t d = 0; d < here.size(); ++d)
      here[d] = result[d] * stride[k].num[d] / stride[k].den[d];  // not negative
    return here;
  }

  /// A result, and the offsets that are read for it.
  template <class S>
  auto compute(const S& stencil, const Indices& result,
               std::array<std::array<Indices, 2>, Fields>& read) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return stencil(
          NaiveGrid<T>{{&values[I], shape[I], &beyond, centre(I, result)}, result, &read[I]}...);
    }(std::make_index_sequence<Fields>{});
  }

  template <class R, class S>
  std::vector<R> results(const S& stencil, const Indices& begin, const Indices& end) const {
    std::vector<R> all;
    Indices extents;
    for (std::size_t d = 0; d < begin.size(); ++d) extents.push_back(end[d] - begin[d]);
    for (const Indices& at : naive::all_indices(extents)) {
      Indices result = begin;
      for (std::size_t d = 0; d < begin.size(); ++d) result[d] += at[d];
      std::array<std::array<Indices, 2>, Fields> read;
      all.push_back(static_cast<R>(compute(stencil, result, read)));
    }
    return all;
  }

  /// The indices of field k that results in a box read, from the least to the greatest of each
  /// dimension, as {begin, end}; unclipped.
  template <class S>
  std::array<Indices, 2> reads(const S& stencil, std::size_t k, const Indices& begin,
                               const Indices& end) const {
    std::array<Indices, 2> box;
    Indices extents;
    for (std::size_t d = 0; d < begin.size(); ++d) extents.push_back(end[d] - begin[d]);
    for (const Indices& at : naive::all_indices(extents)) {
      Indices result = begin;
      for (std::size_t d = 0; d < begin.size(); ++d) result[d] += at[d];
      std::array<std::array<Indices, 2>, Fields> read;
      static_cast<void>(compute(stencil, result, read));
      const Indices here = centre(k, result);
      if (box[0].empty()) box = {here, here};
      for (std::size_t d = 0; d < here.size(); ++d) {
        box[0][d] = std::min(box[0][d], here[d] + (read[k][0].empty() ? 0 : read[k][0][d]));
        box[1][d] = std::max(box[1][d], here[d] + (read[k][1].empty() ? 0 : read[k][1][d]) + 1);
      }
    }
    return box;
  }

  /// The first and the last result of [0, extents) all of whose neighbours exist where an edge is
  /// none, as {begin, end}.
  template <class S>
  std::array<Indices, 2> domain(const S& stencil, const Indices& extents) const {
    std::array<Indices, 2> found{Indices(extents.size(), 0), extents};
    for (std::size_t d = 0; d < extents.size(); ++d)
      for (std::size_t k = 0; k < Fields; ++k)
        for (index_t i = 0; i < extents[d]; ++i) {
          Indices begin(extents.size(), 0), end(extents);  // all results at i
          begin[d] = i, end[d] = i + 1;
          const auto [least, most] = reads(stencil, k, begin, end);
          if (least.empty()) continue;
          if (beyond[d][0].kind == '-' && least[d] < 0) found[0][d] = std::max(found[0][d], i + 1);
          if (beyond[d][1].kind == '-' && most[d] > shape[k][d])
            found[1][d] = std::min(found[1][d], i);
        }
    return found;
  }
};

}  // namespace stencil_tests
