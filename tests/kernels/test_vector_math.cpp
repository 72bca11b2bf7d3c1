// Functions of rows compared with the standard library's in long double; errors in units in the
// last place.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/host/vector_math.hpp>
#include <cleave/kernels/host/whole_rows.hpp>

using namespace cleave;
using namespace cleave::kernels;

#if defined(CLEAVE_HAS_LIBMVEC) && CLEAVE_HAS_LIBMVEC

namespace {

struct Case {
  const char* name;
  RowFunctionId f;
  double low, high;  ///< the range where results neither underflow nor cancel
  double ulps;
  long double (*exact)(long double);
};

long double normal(long double x) { return (1 + erfl(x / sqrtl(2))) / 2; }
long double bent(long double x) {
  return tanhl(sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x));
}

const Case cases[] = {
    {"exp", RowFunctionId::exp, -80, 80, 4, [](long double x) { return expl(x); }},
    {"log", RowFunctionId::log, 1e-3, 100, 4, [](long double x) { return logl(x); }},
    {"sqrt", RowFunctionId::sqrt, 0, 100, 1, [](long double x) { return sqrtl(x); }},
    {"tanh", RowFunctionId::tanh, -10, 10, 4, [](long double x) { return tanhl(x); }},
    {"erf", RowFunctionId::erf, -3.5, 3.5, 4, [](long double x) { return erfl(x); }},
    {"sin", RowFunctionId::sin, -50, 50, 4, [](long double x) { return sinl(x); }},
    {"cos", RowFunctionId::cos, -50, 50, 4, [](long double x) { return cosl(x); }},
    {"sigmoid", RowFunctionId::sigmoid, -30, 30, 8,
     [](long double x) { return 1 / (1 + expl(-x)); }},
    {"silu", RowFunctionId::silu, -30, 30, 8, [](long double x) { return x / (1 + expl(-x)); }},
    {"gelu", RowFunctionId::gelu, -1, 8, 8, [](long double x) { return x * normal(x); }},
    {"gelu_tanh", RowFunctionId::gelu_tanh, -1, 8, 8,
     [](long double x) { return x / 2 * (1 + bent(x)); }},
    {"gelu_slope", RowFunctionId::gelu_slope, -0.2, 8, 8,
     [](long double x) { return normal(x) + x * expl(-x * x / 2) / sqrtl(2 * acosl(-1)); }},
    {"gelu_tanh_slope", RowFunctionId::gelu_tanh_slope, -0.2, 8, 32,
     [](long double x) {
       const long double inner = sqrtl(2 / acosl(-1)) * (1 + 3 * 0.044715L * x * x);
       return (1 + bent(x)) / 2 + x / 2 * (1 - bent(x) * bent(x)) * inner;
     }},
    {"silu_slope", RowFunctionId::silu_slope, -0.5, 30, 32,
     [](long double x) {
       const long double s = 1 / (1 + expl(-x));
       return s * (1 + x * (1 - s));
     }},
};

/// Calls f(level) for every instruction set that this processor has.
template <class F>
void each_level(const F& f) {
  for (const VectorLevel level : {VectorLevel::sse2, VectorLevel::avx2, VectorLevel::avx512}) {
    if (level > widest_level()) return;
    CAPTURE(int(level));
    f(level);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("functions of rows are accurate to a few units in the last place", T, float,
                   double) {
  constexpr index_t n = 20003;
  std::vector<T> x(n), y(n);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    for (index_t i = 0; i < n; ++i)
      x[std::size_t(i)] = T(c.low + (c.high - c.low) * double(i) / double(n - 1));
    each_level([&](VectorLevel level) {
      apply_to_row(c.f, x.data(), y.data(), n, level);
      long double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const long double exact = c.exact(static_cast<long double>(x[i]));
        const T size = T(fabsl(exact));
        const long double unit = std::nextafter(size, std::numeric_limits<T>::infinity()) - size;
        worst = std::fmax(worst, fabsl(static_cast<long double>(y[i]) - exact) / unit);
      }
      CHECK(worst <= c.ulps);
    });
  }
}

TEST_CASE_TEMPLATE("functions of rows match the standard library's at the ends of the range", T,
                   float, double) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  each_level([&](VectorLevel level) {
    const auto applied = [level](RowFunctionId f, T x) {
      apply_to_row(f, &x, &x, 1, level);
      return x;
    };
    CHECK(applied(RowFunctionId::exp, inf) == inf);
    CHECK(applied(RowFunctionId::exp, -inf) == 0);
    CHECK(applied(RowFunctionId::exp, T(1e4)) == inf);
    CHECK(applied(RowFunctionId::exp, T(-1e4)) == 0);
    CHECK(applied(RowFunctionId::log, T(0)) == -inf);
    CHECK(applied(RowFunctionId::log, inf) == inf);
    CHECK(std::isnan(applied(RowFunctionId::log, T(-1))));
    CHECK(applied(RowFunctionId::tanh, inf) == 1);
    CHECK(applied(RowFunctionId::tanh, -inf) == -1);
    CHECK(applied(RowFunctionId::erf, -inf) == -1);
    CHECK(applied(RowFunctionId::sigmoid, -inf) == 0);
    CHECK(applied(RowFunctionId::sigmoid, inf) == 1);
    CHECK(applied(RowFunctionId::gelu, inf) == inf);
    CHECK(std::isnan(applied(RowFunctionId::sin, inf)));
    for (const Case& c : cases) {
      CAPTURE(c.name);
      CHECK(std::isnan(applied(c.f, std::numeric_limits<T>::quiet_NaN())));
    }
  });
}

TEST_CASE_TEMPLATE("the value of an element does not depend on its position", T, float, double) {
  std::vector<T> x(67), whole(67);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(i) / 7 - T(4);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    each_level([&](VectorLevel level) {
      apply_to_row(c.f, x.data(), whole.data(), 67, level);
      for (std::size_t first = 0; first < x.size(); first += 5)
        for (std::size_t count = 1; first + count <= x.size(); count += 9) {
          std::vector<T> part(x.begin() + index_t(first), x.begin() + index_t(first + count));
          apply_to_row(c.f, part.data(), part.data(), index_t(count), level);
          CHECK(std::memcmp(part.data(), whole.data() + first, count * sizeof(T)) == 0);
        }
    });
  }
}

#else

TEST_CASE("functions of rows: skipped, this program was compiled without libmvec") {}

#endif

TEST_CASE("each row of an array with any strides is computed once") {
  for (const index_t n : {0, 1, 5, 40})
    for (int d = 0; d < 3; ++d) {
      const std::array<index_t, 3> extents{n, 3, 37};
      std::vector<double> x(std::size_t(n * 3 * 37)), y(x.size(), -1);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i);
      const Shape shape(extents);
      const Shape strides(std::array<index_t, 3>{3 * 37, 37, 1});
      const Shape transposed(std::array<index_t, 3>{1, n, 3 * n});
      each_whole_row(Strided<const double>{x.data(), shape, strides},
                     Strided<double>{y.data(), shape, transposed}, d,
                     [&](const double* in, double* out, index_t count) {
                       CHECK(count == extents[std::size_t(d)]);
                       double sum = 0;
                       for (index_t i = 0; i < count; ++i) sum += in[i];
                       for (index_t i = 0; i < count; ++i) out[i] = sum - in[i];
                     });
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < 3; ++j)
          for (index_t k = 0; k < 37; ++k) {
            double others = 0;
            for (index_t r = 0; r < extents[std::size_t(d)]; ++r) {
              index_t at[] = {i, j, k};
              const bool is_own = at[d] == r;
              at[d] = r;
              if (!is_own) others += x[std::size_t(at[0] * 3 * 37 + at[1] * 37 + at[2])];
            }
            CHECK(y[std::size_t(i + j * n + k * 3 * n)] == others);
          }
    }
}
