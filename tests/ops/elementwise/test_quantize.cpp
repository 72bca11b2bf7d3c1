// Tensors stored as floats of 8 bits with a scale, on the test's device, compared with loops.
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/elementwise/quantize.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "../placed.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace quantization {
namespace {

/// x rounded to `mantissa` bits behind the leading one, in steps of at least `step`, at most
/// `most`.
double rounded(double x, int mantissa, double step, double most) {
  if (x == 0) return 0;
  const double unit = std::max(std::ldexp(1, std::ilogb(x) - mantissa), step);
  return std::clamp(std::nearbyint(x / unit) * unit, -most, most);
}
template <class T>
double rounded(double x) {
  if constexpr (std::is_same_v<T, float8_e4m3>) return rounded(x, 3, std::ldexp(1, -9), 448);
  else return rounded(x, 2, std::ldexp(1, -16), 57344);
}

/// [rows, 5] fractions of very different size; the last is the largest.
template <class X>
Tensor<X, 2> numbers(index_t rows) {
  Tensor<X, 2> x({rows, 5});
  for (index_t i = 0; i < x.size(); ++i)
    x.data()[i] = X(float(std::ldexp(double(i * 37 % 23 - 11) / 8, int(i * 5 % 11) - 8)));
  if (x.size() > 0) x.data()[x.size() - 1] = X(-56);
  return x;
}

template <class T, class X>
void check_quantized(World& world, index_t rows) {
  const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
  const auto x = numbers<X>(rows);
  const auto placed = distribute_tensor(x, mesh, Shard<0>{});
  const auto check = [&](const auto& q, double s, const std::string& what) {
    CAPTURE(what);
    const auto back = dequantize<float>(q, float(s));
    const auto bytes = q.redistribute(Replicate{}).to_local().to(Host{});
    const auto wide = back.full_tensor().to(Host{});
    index_t wrong = 0;
    for (index_t i = 0; i < x.size(); ++i) {
      const double expected = rounded<T>(double(float(x.data()[i]) / float(s)));
      wrong += double(float(bytes.data()[i])) != expected;
      wrong += double(wide.data()[i]) != double(float(expected * double(float(s))));
    }
    CHECK(wrong == 0);
  };
  check(quantize<T>(placed, 0.001f), 0.001, "beyond the largest number");
  check(quantize<T>(placed, 10.f), 10, "below the smallest number");
  if (rows == 0) return;
  const auto scale = quantization_scale<T>(placed);
  const float expected = 56.f / (std::is_same_v<T, float8_e4m3> ? 448.f : 57344.f);
  CHECK(scale.full_tensor().to(Host{}).data()[0] == expected);
  const auto q = quantize<T>(placed, scale);
  static_assert(lies<decltype(q), Shard<0>>);
  check(q, double(expected), "by its own scale");
  const auto target = zeros<T>({rows, 5}, mesh, Shard<0>{});
  quantize<T>(out(target), placed, scale);
  check(target, double(expected), "into a given result");
}

}  // namespace
}  // namespace quantization

using namespace quantization;

TEST_CASE("quantized tensors are the nearest floats of 8 bits, and come back times the scale") {
  on_ranks({1, 2, 3}, [](World& world) {
    for (const index_t rows : {7, 2, 0}) {
      check_quantized<float8_e4m3, float>(world, rows);
      check_quantized<float8_e5m2, bfloat16>(world, rows);
    }
  });
}

TEST_CASE("a scale per column, transposed bytes, and casts") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto x = numbers<float>(4);
    const auto scales = Tensor<float, 1>({5}, {1, 0.5f, 2, 0.25f, 8}).to(TestDevice{});
    const auto q = quantize<float8_e5m2>(distribute_tensor(x, mesh, Shard<0>{}),
                                         distribute_tensor(scales, mesh, Replicate{}));
    const auto bytes = transpose(q).full_tensor().to(Host{}).clone();
    const auto cast_to_double = cast<double>(q).full_tensor().to(Host{});
    const auto narrow = cast<float8_e4m3>(q).full_tensor().to(Host{});
    const float by[] = {1, 0.5f, 2, 0.25f, 8};
    for (index_t i = 0; i < 4; ++i)
      for (index_t j = 0; j < 5; ++j) {
        const double expected = rounded<float8_e5m2>(double(x.data()[i * 5 + j] / by[j]));
        CHECK(double(float(bytes.data()[j * 4 + i])) == expected);
        CHECK(cast_to_double.data()[i * 5 + j] == expected);
        CHECK(double(float(narrow.data()[i * 5 + j])) == rounded<float8_e4m3>(expected));
      }
  });
}

TEST_CASE("the scale of zeros is 1") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto zero = distribute_tensor(Tensor<double, 1>({2}, {0, -0.}), mesh, Shard<0>{});
    CHECK(quantization_scale<float8_e5m2>(zero).full_tensor().to(Host{}).data()[0] == 1);
  });
}

TEST_CASE_TEMPLATE("all bytes, and the numbers between them, are converted on the device as here",
                   T, float8_e4m3, float8_e5m2) {
  Tensor<T, 1> bytes({256});
  for (index_t i = 0; i < 256; ++i) bytes.data()[i].bits = std::uint8_t(i);
  const auto wide = dequantize<float>(bytes.to(TestDevice{}), 1.f).to(Host{});
  Tensor<float, 1> between({256});
  index_t wrong = 0;
  for (index_t i = 0; i < 256; ++i) {
    const float here = float(bytes.data()[i]);
    wrong += std::isnan(here) ? !std::isnan(wide.data()[i]) : wide.data()[i] != here;
    between.data()[i] = i == 255 ? here : (here + float(bytes.data()[i + 1])) / 2;
  }
  CHECK(wrong == 0);
  const auto rounded = quantize<T>(between.to(TestDevice{}), 1.f).to(Host{});
  for (index_t i = 0; i < 256; ++i) wrong += rounded.data()[i].bits != T(between.data()[i]).bits;
  CHECK(wrong == 0);
}
