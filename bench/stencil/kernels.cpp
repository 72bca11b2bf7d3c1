// Stencils on one core, each against the best loop written by hand for it and against memory
// bandwidth, in the same run.
#include <cstdio>
#include <cstring>
#include <vector>

#include <cleave/ops/stencil/apply.hpp>

#include "../timing.hpp"

using namespace cleave;

namespace {

struct Seven : Stencil {
  double c = 0.1;
  constexpr double operator()(const auto& u) const {
    return u(0, 0, 0) + c * (u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0) + u(0, 0, -1) +
                             u(0, 0, 1) - 6 * u(0, 0, 0));
  }
};
struct TwentySeven : Stencil {
  constexpr double operator()(const auto& u) const {
    double sum = 0;
    CLEAVE_UNROLL
    for (int i = -1; i <= 1; ++i) {
      CLEAVE_UNROLL
      for (int j = -1; j <= 1; ++j) sum = sum + u(i, j, -1) + u(i, j, 0) + u(i, j, 1);
    }
    return sum / 27;
  }
};

using Field = Tensor<double, 3>;

/// v[n, n, n] of u[n + 2, n + 2, n + 2].
[[gnu::noinline]] void seven_by_hand(const double* __restrict u, double* __restrict v, long n,
                                     double c) {
  const long row = n + 2, plane = row * row;
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < n; ++j) {
      const double* __restrict a = u + (i + 1) * plane + (j + 1) * row + 1;
      double* __restrict b = v + (i * n + j) * n;
      for (long k = 0; k < n; ++k)
        b[k] = a[k] + c * (a[k - plane] + a[k + plane] + a[k - row] + a[k + row] + a[k - 1] +
                           a[k + 1] - 6 * a[k]);
    }
}
[[gnu::noinline]] void twenty_seven_by_hand(const double* __restrict u, double* __restrict v,
                                            long n) {
  const long row = n + 2, plane = row * row;
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < n; ++j) {
      const double* __restrict a = u + (i + 1) * plane + (j + 1) * row + 1;
      double* __restrict b = v + (i * n + j) * n;
      for (long k = 0; k < n; ++k) {
        double sum = 0;
        for (long p = -plane; p <= plane; p += plane)
          for (long r = -row; r <= row; r += row)
            sum = sum + a[k + p + r - 1] + a[k + p + r] + a[k + p + r + 1];
        b[k] = sum / 27;
      }
    }
}

/// The median over turns of the seconds of the second action divided by those of the first.
template <class F, class G>
double ratio_in_turn(int turns, const F& f, const G& g) {
  std::vector<double> ratios;
  f(), g();
  for (int i = 0; i < turns; ++i) {
    const double first = bench::seconds_of(1, f);
    ratios.push_back(bench::seconds_of(1, g) / first);
  }
  return bench::median(ratios);
}

void print(const char* name, double value) { std::printf("%s %.3f ratio\n", name, value); }

}  // namespace

int main() {
  constexpr index_t n = 256;
  const Field padded({n + 2, n + 2, n + 2}), u({n, n, n}), v({n, n, n});
  for (index_t i = 0; i < padded.size(); ++i) padded.data()[i] = 0.5 + double(i % 7);
  u.fill_(0.5);
  v.fill_(0.5);
  const std::size_t bytes = std::size_t(u.size()) * sizeof(double);
  const auto seven = [&] { apply(out(v), Seven{}, padded); };
  print("stencil.kernel.vs_loop",
        ratio_in_turn(15, seven, [&] { seven_by_hand(padded.data(), v.data(), n, 0.1); }));
  print("stencil.27pt.vs_loop", ratio_in_turn(
                                    9, [&] { apply(out(v), TwentySeven{}, padded); },
                                    [&] { twenty_seven_by_hand(padded.data(), v.data(), n); }));
  print("stencil.7pt.vs_bandwidth",
        ratio_in_turn(15, seven, [&] { std::memcpy(v.data(), u.data(), bytes); }));
  print("stencil.edges.vs_none",
        ratio_in_turn(9, [&] { apply(out(v), Seven{}, u, edges(periodic)); }, seven));
}
