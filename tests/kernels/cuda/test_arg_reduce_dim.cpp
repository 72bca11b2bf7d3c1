#include <cmath>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/arg_reduce_dim_cuda.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

/// Checks values and indices: along the dimension, a NaN is the most extreme value, and the first
/// of equal elements wins. @return an error message; empty if all is well
template <class Op, class T>
index_t misfound(const Placed<T>& in, int dim, index_t first) {
  const Shape& extents = in.place().extents;
  Shape kept;
  for (int d = 0; d < extents.dims; ++d)
    if (d != dim) kept[kept.dims++] = extents[d];
  const Placed<T> values(Place::of(kept, {}, {}, 3));
  const Placed<index_t> indices(Place::of(kept, {}, {}, 1)), alone(Place::of(kept));
  arg_reduce_dim<Op>(On<Cuda>{}, in.read(), dim, first, values.data(), indices.data());
  arg_reduce_dim<Op>(On<Cuda>{}, in.read(), dim, first, static_cast<T*>(nullptr), alone.data());

  index_t outer = 1, inner = 1;
  for (int d = 0; d < dim; ++d) outer *= extents[d];
  for (int d = dim + 1; d < extents.dims; ++d) inner *= extents[d];
  const HostArray<T> x = in.values();
  HostArray<T> best(outer * inner);
  HostArray<index_t> at(outer * inner);
  for (index_t i = 0; i < outer; ++i)
    for (index_t j = 0; j < inner; ++j) {
      T& b = best[i * inner + j] = Fold<Op>::template identity<T>();
      index_t& where = at[i * inner + j] = no_index;
      for (index_t k = 0; k < extents[dim]; ++k) {
        const T value = x[(i * extents[dim] + k) * inner + j];
        const bool better = std::is_same_v<Op, Max> ? value > b : value < b;
        if (where != no_index && !better && (value == value || b != b)) continue;
        b = value;
        where = first + k;
      }
    }
  return values.wrong(best) + indices.wrong(at) + alone.wrong(at);
}

}  // namespace

TEST_CASE_TEMPLATE("the first extreme element of a dimension is found, whatever the layout", T,
                   float, half, double, std::int8_t, std::uint64_t, bool) {
  for (const Shape& extents : {shape({5, 40, 3}), shape({1, 1, 1}), shape({2, 3, 300}),
                               shape({300, 2, 9}), shape({0, 4, 2}), shape({3, 0, 2})})
    for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 0, 1}, {1, 2, 0}})
      for (int dim = 0; dim < 3; ++dim) {
        CAPTURE(to_string(extents));
        CAPTURE(dim);
        const Placed<T> in(Place::of(extents, order, {0, 1, 0}, dim), 5);
        CHECK(misfound<Min>(in, dim, 0) == 0);
        CHECK(misfound<Max>(in, dim, 1000) == 0);
      }
}

TEST_CASE("long dimensions are split over blocks") {
  for (const std::vector<int>& order : {std::vector<int>{0, 1}, {1, 0}})
    for (const Shape& extents : {shape({2, 40001}), shape({1, 70000})}) {
      const Placed<float> in(Place::of(extents, order));
      CHECK(misfound<Min>(in, 1, 7) == 0);
      CHECK(misfound<Max>(in, 1, 0) == 0);
    }
}

TEST_CASE("the first NaN counts as most extreme, and an infinity as an element") {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const index_t n : {4, 500})
    for (const std::vector<int>& order : {std::vector<int>{0, 1}, {1, 0}}) {
      const Place place = Place::of(shape({n, 3}), order);
      HostArray<float> buffer(place.size);
      for (index_t i = 0; i < n; ++i) {
        buffer[i * place.strides[0]] = i >= n / 2 ? nan : float(i);
        buffer[i * place.strides[0] + place.strides[1]] = -infinity;
        buffer[i * place.strides[0] + 2 * place.strides[1]] = infinity;
      }
      const Placed<float> in(place, std::move(buffer));
      CHECK(misfound<Max>(in, 0, 0) == 0);
      CHECK(misfound<Min>(in, 0, 0) == 0);
    }
}
