// CLEAVE_FFT: plans that are estimated, measured, or taken from files.
#include <cmath>
#include <complex>
#include <string>

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cleave/ops/transforms/fft_wisdom.hpp>
#include <cleave/ops/transforms/fourier.hpp>

#include "cases.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace fft_wisdom {
namespace {

/// Sets CLEAVE_FFT for the lifetime of this object.
struct Setting {
  explicit Setting(const std::string& value) { setenv("CLEAVE_FFT", value.c_str(), 1); }
  ~Setting() { unsetenv("CLEAVE_FFT"); }
};

/// The largest error of a transform of n elements, a length that no other test has.
template <class T>
double error_of_transform(index_t n) {
  const Tensor<std::complex<T>, 1> x({n});
  for (index_t i = 0; i < n; ++i) x(i) = {T(std::sin(double(i * i))), T(std::cos(double(3 * i)))};
  const auto y = fft(x);
  double worst = 0;
  for (index_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (index_t i = 0; i < n; ++i)
      sum +=
          std::complex<double>(x(i)) * std::polar(1.0, -2 * M_PI * double(i * k % n) / double(n));
    worst = std::max(worst, std::abs(std::complex<double>(y(k)) - sum));
  }
  return worst;
}

}  // namespace
}  // namespace fft_wisdom

#if CLEAVE_HAS_FFTW

TEST_CASE("plans are measured, written to files, and read from there") {
  const std::string path = "/tmp/cleave_wisdom_" + std::to_string(getpid());
  {
    const fft_wisdom::Setting measure("measure");
    CHECK(fft_wisdom::error_of_transform<double>(1021) < 1e-11);
    CHECK(fft_wisdom::error_of_transform<float>(1021) < 1e-2);
  }
  save_fft_wisdom(path);
  fftw_forget_wisdom();
  fftwf_forget_wisdom();
  {
    const fft_wisdom::Setting file(path);
    CHECK(fft_wisdom::error_of_transform<double>(1019) < 1e-11);  // not in the files
    CHECK(fft_wisdom::error_of_transform<float>(1019) < 1e-2);
    const auto knows = [](index_t n) {
      fftw_complex* const line = fftw_alloc_complex(std::size_t(n));
      fftw_complex* const other = fftw_alloc_complex(std::size_t(n));
      const fftw_plan plan =
          fftw_plan_dft_1d(int(n), line, other, FFTW_FORWARD, FFTW_MEASURE | FFTW_WISDOM_ONLY);
      const bool known = plan != nullptr;
      fftw_destroy_plan(plan);
      fftw_free(line);
      fftw_free(other);
      return known;
    };
    CHECK(knows(1021));
    CHECK(!knows(1013));
  }
  unlink(path.c_str());
  unlink((path + "f").c_str());
}

TEST_CASE("what is no file of wisdom is an error") {
  const fft_wisdom::Setting setting("mesure");
  CHECK(contains(error_of([] { fft_wisdom::error_of_transform<double>(1009); }),
                 "fft: CLEAVE_FFT is 'mesure': neither estimate nor measure, and 'mesure' is no "
                 "file of FFTW's wisdom"));
  CHECK(contains(error_of([] { fft_wisdom::error_of_transform<float>(1009); }), "'mesuref'"));
  CHECK(contains(error_of([] { save_fft_wisdom("/no/such/folder/wisdom"); }), "cannot write"));
}

#else

TEST_CASE("without FFTW there is nothing to write") {
  CHECK(contains(error_of([] { save_fft_wisdom("wisdom"); }), "Debian: libfftw3-dev"));
  const fft_wisdom::Setting setting("measure");  // has no effect
  CHECK(fft_wisdom::error_of_transform<double>(1009) < 1e-11);
}

#endif
