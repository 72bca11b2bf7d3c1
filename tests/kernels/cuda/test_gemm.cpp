#include <cmath>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/gemm_cuda.hpp>
#include <cleave/tensor/cuda/transfer.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

/// Small integers: every product and sum is exact in all element types.
template <class T>
T small(index_t i) {
  const int value = int(i * 7 % 5) - 2;
  if constexpr (is_complex<T>) return T(float(value), float(int(i % 3) - 1));
  else if constexpr (std::is_unsigned_v<T>) return T(value + 2);
  else return T(float(value));
}

/// A matrix, or a batch of matrices, of small numbers.
template <class T>
Placed<T> factor(const Place& place, index_t seed) {
  HostArray<T> buffer(place.size);
  for (index_t i = 0; i < buffer.size; ++i) buffer[i] = small<T>(i * (seed + 1) + i / 7);
  return Placed<T>(place, std::move(buffer));
}

/// Ways to store a batch of matrices; the meaning of an index stays the same.
std::vector<Place> storages(index_t batches, index_t rows, index_t cols) {
  const Shape extents = shape({batches, rows, cols});
  Place every_other = Place::of(extents, {}, {0, int(cols), 0}, 1);
  every_other.strides[2] = 2;
  every_other.size *= 2;
  return {Place::of(extents), Place::of(extents, {0, 2, 1}), Place::of(extents, {}, {0, 0, 3}, 2),
          Place::of(extents, {0, 2, 1}, {1, 0, 3}, 1), every_other};
}

template <class T>
Matrix<T> matrix(T* data, const Place& p) {
  return {data, p.extents[1], p.extents[2], p.strides[1], p.strides[2]};
}

/// The products by three loops, for every matrix of a batch, `times` added to 0.
template <class T>
HostArray<T> products(const Placed<T>& a, const Placed<T>& b, int times = 1) {
  using A = accumulator_t<T>;
  const HostArray<T> x = a.values(), y = b.values();
  const index_t batches = a.place().extents[0], m = a.place().extents[1], k = a.place().extents[2],
                n = b.place().extents[2];
  HostArray<T> c(batches * m * n);
  for (index_t s = 0; s < batches; ++s)
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) {
        A sum = A(0);
        for (int t = 0; t < times; ++t)
          for (index_t p = 0; p < k; ++p)
            sum = A(sum + A(x[(s * m + i) * k + p]) * A(y[(s * k + p) * n + j]));
        c[(s * m + i) * n + j] = T(sum);
      }
  return c;
}

template <class T>
index_t mismultiplied(const Place& pa, const Place& pb, const Place& pc) {
  const Placed<T> a = factor<T>(pa, 1), b = factor<T>(pb, 2), c(pc);
  const Batches batches{pa.extents[0], pa.strides[0], pb.strides[0], pc.strides[0]};
  const Matrix<const T> x = matrix<const T>(a.data(), pa), y = matrix<const T>(b.data(), pb);
  if (batches.count == 1) gemm(On<Cuda>{}, x, y, matrix<T>(c.data(), pc));
  else gemm_batched(On<Cuda>{}, x, y, matrix<T>(c.data(), pc), batches);
  const auto equal = [](const T& actual, const T& expected) {
    return actual == expected;  // -0 equals 0
  };
  const index_t wrong = c.wrong(products(a, b), equal);
  gemm_batched(On<Cuda>{}, x, y, matrix<T>(c.data(), pc), batches, true);
  return wrong + c.wrong(products(a, b, 2), equal);
}

struct Size {
  index_t m, k, n;
};

/// The six elements of a product in a 16-bit type: each is the sum of row(i) * factor, i < k.
template <class Row>
std::vector<float> sums_in_half(index_t k, const Row& row, float factor) {
  const Place pa = Place::of(shape({1, 2, k})), pb = Place::of(shape({1, k, 3}));
  HostArray<half> rows(pa.size), factors(pb.size);
  for (index_t i = 0; i < rows.size; ++i) rows[i] = half(row(i % k));
  for (index_t i = 0; i < factors.size; ++i) factors[i] = half(factor);
  const Placed<half> a(pa, std::move(rows)), b(pb, std::move(factors));
  const Placed<half> c(Place::of(shape({1, 2, 3})));
  gemm(On<Cuda>{}, matrix<const half>(a.data(), pa), matrix<const half>(b.data(), pb),
       matrix<half>(c.data(), c.place()));
  const HostArray<half> result = c.result();
  std::vector<float> sums;
  for (index_t i = 0; i < result.size; ++i) sums.push_back(float(result[i]));
  return sums;
}

}  // namespace

TEST_CASE_TEMPLATE("a product equals the naive one for every storage of the factors", T, float,
                   double, half, bfloat16, std::complex<float>, std::complex<double>, std::int8_t,
                   std::uint8_t, std::int32_t, std::int64_t) {
  for (const Place& a : storages(1, 13, 17))
    for (const Place& b : storages(1, 17, 19))
      CHECK(mismultiplied<T>(a, b, Place::of(shape({1, 13, 19}), {}, {0, 0, 5}, 5)) == 0);
  for (const Size& s : {Size{1, 1, 1},
                        {0, 3, 2},
                        {3, 0, 2},
                        {3, 2, 0},
                        {1, 7, 5},
                        {5, 7, 1},
                        {4, 1, 6},
                        {70, 33, 65}})
    for (const std::size_t storage : {0, 1, 4}) {
      CAPTURE(s.m);
      CAPTURE(s.k);
      CAPTURE(s.n);
      CHECK(mismultiplied<T>(storages(1, s.m, s.k)[storage], storages(1, s.k, s.n)[storage],
                             Place::of(shape({1, s.m, s.n}))) == 0);
    }
}

TEST_CASE_TEMPLATE("a batch of products is one call", T, float, std::complex<double>, half,
                   std::int32_t) {
  for (const index_t batches : {0, 2, 5})
    for (const Place& a : storages(batches, 6, 9))
      for (const Place& b : storages(batches, 9, 4)) {
        CAPTURE(batches);
        CHECK(mismultiplied<T>(a, b, Place::of(shape({batches, 6, 4}))) == 0);
        CHECK(mismultiplied<T>(a, b.repeating(0),
                               Place::of(shape({batches, 6, 4}), {}, {1, 2, 3})) == 0);
      }
}

TEST_CASE_TEMPLATE("a product over nothing is zero", T, float, std::int32_t) {
  for (const index_t batches : {1, 3})
    CHECK(mismultiplied<T>(Place::of(shape({batches, 4, 0})), Place::of(shape({batches, 0, 5})),
                           Place::of(shape({batches, 4, 5}), {}, {0, 0, 2})) == 0);
}

TEST_CASE("a factor may repeat rows or columns") {
  const Place a = Place::of(shape({1, 6, 9})), b = Place::of(shape({1, 9, 4})),
              c = Place::of(shape({1, 6, 4}));
  CHECK(mismultiplied<float>(a.repeating(1), b, c) == 0);
  CHECK(mismultiplied<float>(a, b.repeating(2), c) == 0);
  CHECK(mismultiplied<std::int64_t>(a.repeating(2), b.repeating(1), c) == 0);
}

TEST_CASE("floats are multiplied with all their bits, unless TF32 is allowed") {
  const Place place = Place::of(shape({1, 16, 16}));
  HostArray<float> fine(place.size), ones(place.size);
  for (index_t i = 0; i < place.size; ++i) {
    fine[i] = 1 + std::ldexp(float(i % 7), -20);
    ones[i] = float(i % 17 == 0);  // the identity
  }
  const Placed<float> a(place, std::move(fine)), identity(place, std::move(ones)), c(place);
  const auto multiply = [&] {
    gemm(On<Cuda>{}, matrix<const float>(a.data(), place),
         matrix<const float>(identity.data(), place), matrix<float>(c.data(), place));
  };
  multiply();
  CHECK(c.wrong(a.values()) == 0);
  cuda::allow_tf32(true);
  multiply();
  cuda::allow_tf32(false);
  CHECK(c.wrong(a.values(), [](float x, float y) { return std::abs(x - y) < 2e-3f; }) == 0);
  multiply();
  CHECK(c.wrong(a.values()) == 0);
}

TEST_CASE("sums of 16-bit floats are accumulated in float") {
  // a sum accumulated in half would stay at 512
  const auto sums = sums_in_half(4096, [](index_t) { return 1.0f; }, 0.25f);
  CHECK(sums == std::vector<float>(6, 1024));
}

TEST_CASE("parts of sums of 16-bit floats are not rounded, and do not overflow") {
  const index_t k = 65536;  // each half of the sum exceeds the largest half-precision number
  const auto sums = sums_in_half(k, [](index_t i) { return i < k / 2 ? 4.0f : -4.0f; }, 1);
  CHECK(sums == std::vector<float>(6, 0));
}

TEST_CASE("a batch may have more products, and a complex matrix more rows, than cuBLASLt takes") {
  CHECK(mismultiplied<float>(Place::of(shape({65537, 1, 2})), Place::of(shape({65537, 2, 1})),
                             Place::of(shape({65537, 1, 1}))) == 0);
  using C = std::complex<float>;
  const index_t rows = 4194250;
  const std::size_t bytes = std::size_t(rows) * sizeof(C);
  std::vector<C> column(static_cast<std::size_t>(rows)), doubled(column.size());
  for (std::size_t i = 0; i < column.size(); ++i) column[i] = C(float(i % 1000), float(i % 7));
  const C two(2, 0);
  const auto x = allocate_bytes(Cuda{}, bytes), y = allocate_bytes(Cuda{}, bytes),
             w = allocate_bytes(Cuda{}, sizeof(C));
  transfer(Host{}, Cuda{}, column.data(), x.get(), bytes);
  transfer(Host{}, Cuda{}, &two, w.get(), sizeof(C));
  gemm(On<Cuda>{}, Matrix<const C>{static_cast<const C*>(x.get()), rows, 1, 1, 1},
       Matrix<const C>{static_cast<const C*>(w.get()), 1, 1, 1, 1},
       Matrix<C>{static_cast<C*>(y.get()), rows, 1, 1, 1});
  transfer(Cuda{}, Host{}, y.get(), doubled.data(), bytes);
  index_t wrong = 0;
  for (std::size_t i = 0; i < column.size(); ++i) wrong += doubled[i] != column[i] + column[i];
  CHECK(wrong == 0);
}

TEST_CASE("complex factors may lie at any address that their type allows") {
  using C = std::complex<double>;
  const Place place = Place::of(shape({1, 2, 2}));
  const Placed<double> parts(Place::of(shape({9})));  // parts + 1 is aligned to 8 bytes only
  const auto* const factors = reinterpret_cast<const C*>(parts.data() + 1);
  const Placed<C> c(place);
  gemm(On<Cuda>{}, Matrix<const C>{factors, 2, 2, 2, 1}, Matrix<const C>{factors, 2, 2, 2, 1},
       matrix<C>(c.data(), place));
  const HostArray<double> v = parts.values();
  const C x[] = {{v[1], v[2]}, {v[3], v[4]}, {v[5], v[6]}, {v[7], v[8]}};
  const C expected[] = {x[0] * x[0] + x[1] * x[2], x[0] * x[1] + x[1] * x[3],
                        x[2] * x[0] + x[3] * x[2], x[2] * x[1] + x[3] * x[3]};
  CHECK(c.wrong(expected, [](C found, C right) { return std::abs(found - right) < 1e-9; }) == 0);
}

TEST_CASE("sums of integers wrap") {
  const Place place = Place::of(shape({1, 1, 1}));
  HostArray<std::int32_t> large(place.size);
  large[0] = 0x40000001;
  const Placed<std::int32_t> a(place, std::move(large)), c(place);
  gemm(On<Cuda>{}, matrix<const std::int32_t>(a.data(), place),
       matrix<const std::int32_t>(a.data(), place), matrix<std::int32_t>(c.data(), place));
  CHECK(c.result()[0] == std::int32_t(0x80000001u));
}

TEST_CASE("more products than a thread remembers are each computed") {
  for (int round = 0; round < 2; ++round)
    for (index_t n = 1; n < 20; ++n)
      for (index_t m = 1; m < 15; ++m)
        CHECK(mismultiplied<float>(Place::of(shape({1, m, 3})), Place::of(shape({1, 3, n})),
                                   Place::of(shape({1, m, n}))) == 0);
}
