// Exact sums against plain ones, as a user calls them, on one core: `exact.sum_f64.vs_sum` is the
// processor time of sum<exact> divided by that of sum on the same array of normal random numbers,
// interleaved; likewise for dot, whose plain counterpart is a loop over both arrays with eight
// partial sums. Arrays have 2^22 elements, and also 2^24.
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include <cleave/ops/reductions/exact_reductions.hpp>

#include "timing.hpp"

using namespace cleave;
using bench::median;

namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

template <class F>
double seconds_of_one(const F& f) {
  const double start = processor_seconds();
  f();
  return processor_seconds() - start;
}

/// The median of the ratios of the two, interleaved.
template <class F, class G>
void compare(const std::string& name, const F& f, const G& plain) {
  std::vector<double> ratios;
  for (int i = 0; i < 31; ++i) {
    const double seconds = seconds_of_one(plain);
    ratios.push_back(seconds_of_one(f) / seconds);
  }
  std::printf("exact.%s %.3f ratio\n", name.c_str(), median(ratios));
}

template <class T>
Tensor<T, 1> normal_numbers(index_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<T> normal;
  const Tensor<T, 1> x({n});
  for (index_t i = 0; i < n; ++i) x.data()[i] = normal(random);
  return x;
}

volatile double sink;

template <class T>
void sums(const std::string& name, index_t n) {
  const auto x = normal_numbers<T>(n, 1);
  compare(
      name, [&] { sink = double(sum<exact>(x).item()); }, [&] { sink = double(sum(x).item()); });
}

void dots(const std::string& name, index_t n) {
  const auto x = normal_numbers<double>(n, 1), y = normal_numbers<double>(n, 2);
  compare(
      name, [&] { sink = dot<exact>(x, y).item(); },
      [&] {
        constexpr index_t lanes = 8;
        double sums[lanes] = {};
        for (index_t i = 0; i < n; i += lanes)
          for (index_t j = 0; j < lanes; ++j) sums[j] += x.data()[i + j] * y.data()[i + j];
        double total = 0;
        for (const double part : sums) total += part;
        sink = total;
      });
}

}  // namespace

int main() {
  constexpr index_t many = index_t(1) << 22, more = index_t(1) << 24;
  sums<double>("sum_f64.vs_sum", many);
  sums<double>("sum_f64.2^24.vs_sum", more);
  sums<float>("sum_f32.vs_sum", many);
  sums<float>("sum_f32.2^24.vs_sum", more);
  dots("dot_f64.vs_dot", many);
  dots("dot_f64.2^24.vs_dot", more);
}
