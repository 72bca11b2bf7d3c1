#include <complex>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include <cleave/tensor/print.hpp>

using namespace cleave;

TEST_CASE("integers are aligned to the right") {
  CHECK(to_string(Tensor<std::int32_t, 1>({3}, {1, -20, 3})) == "[  1, -20,   3]");
  CHECK(to_string(Tensor<std::uint8_t, 2>({2, 2}, {1, 2, 3, 200})) == "[[  1,   2],\n [  3, 200]]");
  CHECK(to_string(Tensor<std::int8_t, 1>({1}, {-128})) == "[-128]");
  CHECK(to_string(Tensor<std::uint64_t, 1>({1}, {~std::uint64_t{0}})) == "[18446744073709551615]");
}

TEST_CASE("floats have as many decimals as they need, up to the precision") {
  CHECK(to_string(Tensor<float, 1>({3}, {1, 2.5f, -3})) == "[ 1.0,  2.5, -3.0]");
  CHECK(to_string(Tensor<double, 1>({2}, {1, 2})) == "[1., 2.]");
  CHECK(to_string(Tensor<double, 1>({2}, {1.0 / 3, 10})) == "[ 0.3333, 10.0000]");
  CHECK(to_string(Tensor<double, 1>({2}, {1.0 / 3, 10}), {.precision = 2}) == "[ 0.33, 10.00]");
  CHECK(to_string(Tensor<double, 1>({2}, {1.6, 10}), {.precision = 0}) == "[ 2., 10.]");
  CHECK(to_string(Tensor<half, 1>({2}, {half(0.5f), half(1024)})) == "[   0.5, 1024.0]");
  CHECK(to_string(Tensor<bfloat16, 1>({1}, {bfloat16(-0.25f)})) == "[-0.25]");
}

TEST_CASE("very large and very small floats are scientific; infinities and NaNs are named") {
  CHECK(to_string(Tensor<double, 1>({2}, {1e10, -1})) == "[ 1.0000e+10, -1.0000e+00]");
  CHECK(to_string(Tensor<double, 1>({2}, {0, 1e-300}), {.precision = 1}) == "[ 0.0e+00, 1.0e-300]");
  CHECK(to_string(Tensor<double, 1>({1}, {1.7976931348623157e308}), {.precision = 17}) ==
        "[1.79769313486231571e+308]");
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(to_string(Tensor<float, 1>(
            {4}, {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 1})) ==
        "[ inf, -inf,  nan,   1.]");
}

TEST_CASE("complex numbers show both parts, truth values their names") {
  CHECK(to_string(Tensor<std::complex<float>, 1>({2}, {{1, -2}, {0.5f, 3}})) ==
        "[1.0-2.j, 0.5+3.j]");
  CHECK(to_string(Tensor<std::complex<double>, 1>({1}, {{0, 0.25}})) == "[0.+0.25j]");
  CHECK(to_string(Tensor<bool, 1>({2}, {true, false})) == "[ true, false]");
}

TEST_CASE("dimensions nest, with an empty line between matrices") {
  Tensor<std::int32_t, 3> x({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(to_string(x) == "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]");
  CHECK(to_string(x.permute({2, 1, 0})) == "[[[0, 4],\n  [2, 6]],\n\n [[1, 5],\n  [3, 7]]]");
  CHECK(to_string(x.select(2, 1)) == "[[1, 3],\n [5, 7]]");
}

TEST_CASE("a scalar has no brackets, an empty tensor no elements") {
  CHECK(to_string(Tensor<float, 0>({}, {2.5f})) == "2.5");
  CHECK(to_string(Tensor<float, 1>({0})) == "[]");
  CHECK(to_string(Tensor<float, 2>({0, 4})) == "[] of shape [0, 4]");
  CHECK(to_string(Tensor<float, 3>({2, 0, 5000})) == "[] of shape [2, 0, 5000]");
}

TEST_CASE("of a large tensor the ends are shown") {
  Tensor<std::int32_t, 2> x({100, 20});
  for (int i = 0; i < 2000; ++i) x.data()[i] = i;
  CHECK(to_string(x, {.edge = 2}) ==
        "[[   0,    1, ...,   18,   19],\n"
        " [  20,   21, ...,   38,   39],\n"
        " ...,\n"
        " [1960, 1961, ..., 1978, 1979],\n"
        " [1980, 1981, ..., 1998, 1999]]");
  CHECK(to_string(x.slice(1, 0, 3), {.threshold = 10, .edge = 1}) ==
        "[[   0, ...,    2],\n ...,\n [1980, ..., 1982]]");
  CHECK(to_string(x.slice(0, 0, 1).slice(1, 0, 6), {.threshold = 1, .edge = 3}) ==
        "[[0, 1, 2, 3, 4, 5]]");
  CHECK(to_string(x.slice(0, 0, 1).slice(1, 0, 7), {.threshold = 7, .edge = 3}) ==
        "[[0, 1, 2, 3, 4, 5, 6]]");
}

TEST_CASE("long rows are broken before they are wider than a line") {
  Tensor<std::int32_t, 2> x({2, 7});
  for (int i = 0; i < 14; ++i) x.data()[i] = i;
  CHECK(to_string(x, {.width = 18}) ==
        "[[ 0,  1,  2,  3,\n"
        "   4,  5,  6],\n"
        " [ 7,  8,  9, 10,\n"
        "  11, 12, 13]]");
}

TEST_CASE("a tensor goes into a stream as its text") {
  std::ostringstream out;
  out << Tensor<float, 1>({2}, {1, 2}) << "!";
  CHECK(out.str() == "[1., 2.]!");
}
