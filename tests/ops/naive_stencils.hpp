// Stencils, and their results by naive loops over the global arrays.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/ops/stencil/apply.hpp>

#include "device.hpp"
#include "naive.hpp"

namespace stencil_tests {

using namespace cleave;
using naive::Indices;

struct Heat : Stencil {
  double c = 0.25;
  constexpr auto operator()(const auto& u) const {
    return u(0, 0) + c * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0));
  }
};
struct Nine : Stencil {
  constexpr auto operator()(const auto& u) const {
    auto sum = u(0, 0);
    for (int i = -1; i <= 1; ++i)
      for (int j = -1; j <= 1; ++j) sum = sum * 3 + u(i, j);
    return sum;
  }
};
struct Velocity : Stencil {
  constexpr auto operator()(const auto& vx, const auto& vy, const auto& p) const {
    return std::tuple{vx(0, 0) - (p(1, 0) - p(0, 0)), vy(0, 0) - (p(0, 1) - p(0, 0))};
  }
};
struct Upwind : Stencil {
  constexpr auto operator()(const auto& u) const {
    return u(0, 0) > 0 ? u(0, 0) - u(-1, 0) : u(1, 0) - u(0, 0);
  }
};
/// Reads the offsets Lo .. Hi of one dimension.
template <int Lo, int Hi>
struct Line : Stencil {
  constexpr auto operator()(const auto& u) const {
    using V = decltype(u(0));
    V sum = V(0);
    for (int i = Lo; i <= Hi; ++i) {
      const auto weight = float(i + 7);
      if constexpr (is_complex<V>)  // nvcc does not compile the operators of std::complex
        sum = V(sum.real() + u(i).real() * weight, sum.imag() + u(i).imag() * weight);
      else sum = sum + u(i) * V(weight);
    }
    return sum;
  }
};
/// Products of std::complex are not constant expressions for all compilers.
template <int Lo, int Hi>
struct DeclaredLine : Line<Lo, Hi> {
  static constexpr auto reach = star(Sides{Lo, Hi});
};
struct Unequal : Stencil {
  constexpr auto operator()(const auto& u) const {
    return u(0, 0) + 2 * (u(-3, 0) + u(2, 0) + u(0, -2) + 3 * u(0, 1));
  }
};
struct Seven : Stencil {
  constexpr auto operator()(const auto& u) const {
    return u(-1, 0, 0) + 2 * u(1, 0, 0) + 3 * u(0, -1, 0) + 4 * u(0, 1, 0) + 5 * u(0, 0, -1) +
           6 * u(0, 0, 1) - 7 * u(0, 0, 0);
  }
};
struct Source : Stencil {
  constexpr auto operator()(const auto& u, auto scale) const {
    return scale * u(0, 1) + decltype(scale)(100 * u.index(0) + u.index(1));
  }
};
struct Position : Stencil {
  constexpr auto operator()(const auto& u) const {
    return u(0, 0, 1) + double(u.index(0) * 100 + u.index(1) * 10 + u.index(2));
  }
};
struct Twice : Stencil {
  constexpr auto operator()(const auto& u) const { return 2 * u(0, 0); }
};
struct Weighted : Stencil {
  constexpr auto operator()(const auto& u, const auto& c) const {
    return c(0, 0) * u(1, 0) + c(1, 1) * u(0, -1);
  }
};

/// What is beyond one side of a dimension.
struct Beyond1 {
  char kind = '-';  ///< Periodic, Value, Neumann, Mirror, - for none
  double value = 0;
  bool by_position = false;
};
using BeyondAll = std::vector<std::array<Beyond1, 2>>;

template <class E>
Beyond1 beyond_of(const E&) {
  const char kinds[] = "-PVNM";
  return {kinds[int(E::kind)]};
}
template <class V>
Beyond1 beyond_of(const Dirichlet<V>& edge) {
  if constexpr (std::is_arithmetic_v<V>) return {'V', double(edge.value)};
  else return {'V', 0, true};
}
template <class E>
std::array<Beyond1, 2> both_sides(const E& e) {
  return {beyond_of(e), beyond_of(e)};
}
template <class L, class H>
std::array<Beyond1, 2> both_sides(const SidesOf<L, H>& e) {
  return {beyond_of(e.low), beyond_of(e.high)};
}
template <class... E>
BeyondAll beyond_all(const Edges<E...>& of, int dims) {
  BeyondAll all;
  of.of_dim.apply([&](const auto&... e) { (all.push_back(both_sides(e)), ...); });
  while (int(all.size()) < dims) all.push_back(all[0]);
  return all;
}

/// The value that tests prescribe at a position beyond the edge.
inline double value_at(const Indices& at) {
  double value = 1000;
  for (const index_t i : at) value = value * 10 + double(i);
  return value;
}
struct ByPosition {
  CLEAVE_HOST_DEVICE constexpr double operator()(auto... i) const {
    double value = 1000;
    ((value = value * 10 + double(i)), ...);
    return value;
  }
};
inline constexpr ByPosition by_position;

/// A field of a naive loop: walks to the element that is meant one step at a time.
template <class T>
struct NaiveField {
  const std::vector<T>* values;
  Indices shape;
  const BeyondAll* beyond;
  Indices here{};

  template <class... I>
  detail::stencil_value_t<T> operator()(I... offset) const {
    const Indices by{index_t(offset)...};
    Indices at;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      index_t i = here[d] + by[d];
      while (i < 0 || i >= shape[d]) {
        const Beyond1& edge = (*beyond)[d][i < 0 ? 0 : 1];
        if (edge.kind == 'V') {
          Indices position = here;
          for (std::size_t e = 0; e < shape.size(); ++e) position[e] += by[e];
          return static_cast<T>(float(edge.by_position ? value_at(position) : edge.value));
        }
        if (edge.kind == 'P') i += i < 0 ? shape[d] : -shape[d];
        else if (edge.kind == 'N') i = i < 0 ? -i - 1 : shape[d] - 1 - (i - shape[d]);
        else if (shape[d] == 1) i = 0;
        else i = i < 0 ? -i : shape[d] - 2 - (i - shape[d]);
      }
      at.push_back(i);
    }
    index_t place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + at[d];
    return (*values)[std::size_t(place)];
  }
  index_t index(int d) const { return here[std::size_t(d)]; }
};

template <class T, int Rank, class Device>
std::vector<T> elements_of(const Tensor<T, Rank, Device>& x) {
  const Tensor<T, Rank> dense = x.to(Host{}).clone();
  return {dense.data(), dense.data() + dense.size()};
}

/// A field with small integers, which all sums below represent exactly.
template <class T, std::size_t Rank>
Tensor<T, int(Rank)> numbered(const index_t (&extents)[Rank], int seed = 0) {
  Tensor<T, int(Rank)> x(std::to_array(extents));
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = T(float((i * 7 + seed * 5) % 11 - 4));
  return x;
}

/// The results of a stencil of fields with the same shape, by naive loops.
///
/// @param begin,end  the indices that are computed
template <class R, class T, std::size_t Fields, class S>
std::vector<R> naive_results(const S& stencil, const Indices& shape,
                             const std::array<std::vector<T>, Fields>& fields,
                             const BeyondAll& beyond, const Indices& begin, const Indices& end) {
  std::vector<R> results;
  Indices extents;
  for (std::size_t d = 0; d < shape.size(); ++d) extents.push_back(end[d] - begin[d]);
  for (const Indices& at : naive::all_indices(extents)) {
    Indices here = begin;
    for (std::size_t d = 0; d < shape.size(); ++d) here[d] += at[d];
    results.push_back([&]<std::size_t... I>(std::index_sequence<I...>) {
      return static_cast<R>(stencil(NaiveField<T>{&fields[I], shape, &beyond, here}...));
    }(std::make_index_sequence<Fields>{}));
  }
  return results;
}

/// Whether the elements are equal bit by bit.
template <class T, int Rank, class Device>
bool same_bits(const Tensor<T, Rank, Device>& x, const std::vector<T>& y) {
  const std::vector<T> found = elements_of(x);
  return found.size() == y.size() &&
         (y.empty() || std::memcmp(found.data(), y.data(), y.size() * sizeof(T)) == 0);
}

}  // namespace stencil_tests
