#include <complex>
#include <cstdint>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/map_elements_cuda.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

template <class T>
struct Mix {
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b, const T& c) const {
    return plus(times(a, b), c);
  }
};

struct Above {
  CLEAVE_HOST_DEVICE bool operator()(float x, std::int32_t y, float z) const {
    return x > float(y % 7) + z;
  }
};

/// The expected map of arrays with `n` elements, element by element.
template <class R, class F, class... T>
HostArray<R> mapped(index_t n, const F& f, const Placed<T>&... in) {
  return [&](const auto&... values) {
    HostArray<R> result(n);
    for (index_t i = 0; i < n; ++i) result[i] = R(f(values[i]...));
    return result;
  }(in.values()...);
}

/// The number of wrong elements after a map to `place`, with inputs placed at a, b and c.
template <class T>
index_t mismapped(const Place& place, const Place& a, const Place& b, const Place& c) {
  const Placed<T> out(place, 77), x(a, 100), y(b, 200), z(c, 300);
  map_elements(On<Cuda>{}, Mix<T>{}, out.write(), x.read(), y.read(), z.read());
  return out.wrong(mapped<T>(place.extents.product(), Mix<T>{}, x, y, z));
}

}  // namespace

TEST_CASE_TEMPLATE("a map sees every element once, whatever the strides", T, std::uint8_t, half,
                   std::int32_t, std::complex<double>) {
  for (const index_t m : {0, 1, 2, 5, 40})
    for (const index_t n : {0, 1, 3, 16, 64, 257})
      for (const index_t first : {0, 1, 16}) {
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(first);
        const Shape extents = shape({m, n});
        const Place dense = Place::of(extents, {}, {}, first);
        CHECK(mismapped<T>(dense, dense, Place::of(extents, {}, {}, 0), dense) == 0);
        CHECK(mismapped<T>(dense, Place::of(extents), Place::of(extents, {1, 0}),
                           Place::of(extents, {}, {0, 16}, first)) == 0);
        CHECK(mismapped<T>(Place::of(extents, {}, {0, 3}), dense, Place::of(extents, {}, {0, 5}),
                           Place::of(extents, {1, 0}, {0, 1})) == 0);
        CHECK(mismapped<T>(Place::of(extents, {1, 0}), Place::of(extents, {1, 0}, {0, 2}),
                           Place::of(extents, {1, 0}), dense) == 0);
      }
}

TEST_CASE_TEMPLATE("a stride of 0 repeats an element", T, float, std::int8_t, std::complex<float>) {
  for (const index_t n : {1, 8, 64, 130}) {
    CAPTURE(n);
    const Place dense = Place::of(shape({3, 4, n}));
    for (int d = 0; d < 3; ++d)
      for (int e = 0; e < 3; ++e)
        CHECK(mismapped<T>(dense, dense, dense.repeating(d), dense.repeating(d).repeating(e)) == 0);
  }
}

TEST_CASE("planes of up to eight dimensions are mapped") {
  const Shape extents = shape({2, 3, 2, 1, 3, 2, 2, 5});
  const std::vector<int> other{3, 1, 0, 5, 2, 7, 4, 6};
  CHECK(mismapped<float>(Place::of(extents), Place::of(extents, other),
                         Place::of(extents, {}, {0, 1, 0, 1, 0, 1, 0, 1}),
                         Place::of(extents)) == 0);
}

TEST_CASE("inputs, scalars and the result may differ in type and size") {
  for (const index_t n : {1, 7, 256, 1001}) {
    const Place place = Place::of(shape({2, n}));
    const Placed<float> a(place, 3);
    const Placed<std::int32_t> b(place, 4);
    const Placed<bool> out(place);
    map_elements(On<Cuda>{}, Above{}, out.write(), a.read(), b.read(), Scalar<float>{-2.5f});
    const auto expected =
        mapped<bool>(2 * n, [](float x, std::int32_t y) { return Above{}(x, y, -2.5f); }, a, b);
    CHECK(out.wrong(expected) == 0);

    using Complex = std::complex<double>;
    const ops::Cast<Complex> widen;
    const Placed<Complex> wide(place);
    map_elements(On<Cuda>{}, widen, wide.write(), a.read());
    CHECK(wide.wrong(mapped<Complex>(2 * n, widen, a)) == 0);
  }
}

TEST_CASE("an array without dimensions has one element") {
  const Place place = Place::of(shape({}));
  CHECK(mismapped<double>(place, place, place, place) == 0);
}

TEST_CASE("large transposed inputs are transposed first, and give the same values") {
  const Shape extents = shape({2, 513, 259});
  const Place dense = Place::of(extents), transposed = Place::of(extents, {0, 2, 1}, {0, 0, 3}, 1);
  CHECK(mismapped<float>(dense, transposed, dense, transposed) == 0);
  CHECK(mismapped<half>(transposed, dense, transposed, Place::of(extents, {2, 0, 1})) == 0);
  CHECK(mismapped<float>(dense, transposed.repeating(0), dense.repeating(2), transposed) == 0);
}
