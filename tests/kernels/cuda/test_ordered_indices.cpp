#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/ordered_indices_cuda.hpp>
#include <cleave/tensor/cuda/cuda_graph.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

/// The number of indices that differ from a stable sort on the host, where NaNs are largest.
template <class T>
index_t misordered(const Placed<T>& in, int dim, index_t count, bool descending) {
  Shape extents = in.place().extents;
  const index_t n = extents[dim];
  extents[dim] = count;
  const Placed<index_t> out(Place::of(extents, {}, {}, 2));
  ordered_indices(On<Cuda>{}, in.read(), dim, descending, out.write());

  index_t outer = 1, inner = 1;
  for (int d = 0; d < dim; ++d) outer *= extents[d];
  for (int d = dim + 1; d < extents.dims; ++d) inner *= extents[d];
  const HostArray<T> x = in.values();
  HostArray<index_t> expected(extents.product());
  for (index_t i = 0; i < outer; ++i)
    for (index_t j = 0; j < inner; ++j) {
      std::vector<index_t> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), index_t{0});
      const auto rank_of = [&](index_t k) { return x[(i * n + k) * inner + j]; };
      std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) {
        const T u = rank_of(descending ? b : a), v = rank_of(descending ? a : b);
        if (u != u) return false;
        return v != v || u < v;
      });
      for (index_t k = 0; k < count; ++k)
        expected[(i * count + k) * inner + j] = order[std::size_t(k)];
    }
  return out.wrong(expected);
}

}  // namespace

TEST_CASE_TEMPLATE("the first elements of an order are found, whatever the layout", T, float, half,
                   double, std::int8_t, std::uint64_t, bool) {
  for (const Shape& extents : {shape({5, 40, 3}), shape({1, 1, 1}), shape({2, 3, 300}),
                               shape({3, 2, 9}), shape({0, 4, 2}), shape({3, 0, 2})})
    for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 0, 1}})
      for (int dim = 0; dim < 3; ++dim) {
        CAPTURE(to_string(extents));
        CAPTURE(dim);
        const Placed<T> in(Place::of(extents, order, {0, 1, 0}, dim), 5);
        const index_t n = extents[dim];
        CHECK(misordered(in, dim, n, true) == 0);
        CHECK(misordered(in, dim, n, false) == 0);
        CHECK(misordered(in, dim, (n + 1) / 2, true) == 0);
        CHECK(misordered(in, dim, 0, true) == 0);
      }
}

TEST_CASE("lines that do not fit into a tile are sorted") {
  for (const index_t n : {511, 512, 513, 1024, 1500, 5000}) {
    CAPTURE(n);
    const Placed<float> in(Place::of(shape({2, n}), {1, 0}));
    CHECK(misordered(in, 1, n, false) == 0);
    CHECK(misordered(in, 1, 17, true) == 0);
  }
}

TEST_CASE("NaNs count as largest in an order") {
  const Place place = Place::of(shape({700}));
  HostArray<float> buffer(place.size);
  for (index_t i = 0; i < buffer.size; ++i)
    buffer[i] = i % 5 == 2   ? std::nanf("")
                : i % 7 == 1 ? -std::numeric_limits<float>::infinity()
                             : float(i * 37 % 101);
  const Placed<float> in(place, std::move(buffer));
  CHECK(misordered(in, 0, 700, true) == 0);
  CHECK(misordered(in, 0, 300, false) == 0);
}

TEST_CASE_TEMPLATE("zeros are equal in an order, and so are NaNs, whatever their signs", T, half,
                   bfloat16, float, double) {
  const Place place = Place::of(shape({3, 50}));
  HostArray<T> buffer(place.size);
  const float values[] = {-0.0f, 1.0f, 0.0f, std::nanf(""), -1e-5f, -std::nanf(""), 1e-5f};
  for (index_t i = 0; i < buffer.size; ++i) buffer[i] = T(values[i * i % 31 % 7]);
  const Placed<T> in(place, std::move(buffer));
  for (const int dim : {0, 1})
    for (const bool descending : {false, true})
      CHECK(misordered(in, dim, place.extents[dim], descending) == 0);
}

TEST_CASE("a graph sorts what its array has when it is launched") {
  const Place place = Place::of(shape({2, 6000}));
  const Placed<double> in(place);
  const Placed<index_t> out(place);
  const cuda::Graph graph([&] { ordered_indices(On<Cuda>{}, in.read(), 1, false, out.write()); });
  HostArray<index_t> expected(12000);
  for (const double sign : {1.0, -1.0}) {
    HostArray<double> elements(place.size);
    for (index_t i = 0; i < 12000; ++i) elements[i] = sign * double(i * 7919 % 6007);
    cuda::check(cudaMemcpyAsync(in.data(), elements.elements.get(), 12000 * sizeof(double),
                                cudaMemcpyDefault, cuda::current_stream().get()),
                "test");
    cuda::current_stream().synchronize();
    graph.launch();
    for (index_t line = 0; line < 2; ++line) {
      index_t* const order = &expected[line * 6000];
      std::iota(order, order + 6000, index_t{0});
      std::stable_sort(order, order + 6000, [&](index_t a, index_t b) {
        return elements[line * 6000 + a] < elements[line * 6000 + b];
      });
    }
    CHECK(out.wrong(expected) == 0);
  }
}
