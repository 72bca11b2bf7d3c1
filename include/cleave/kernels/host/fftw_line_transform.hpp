// Transforms of one line by FFTW 3. @see plain_line_transform.hpp for the same without it
#pragma once

#include <complex>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <fftw3.h>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/kernels/host/line_transform_kind.hpp>

namespace cleave::kernels {

namespace detail {

/// FFTW's functions for an element type.
template <class T>
struct Fftw;
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Pair = fftw_complex;
  static constexpr auto plan = &fftw_plan_dft_1d;
  static constexpr auto plan_real = &fftw_plan_dft_r2c_1d;
  static constexpr auto plan_hermitian = &fftw_plan_dft_c2r_1d;
  static constexpr auto destroy = &fftw_destroy_plan;
  static constexpr auto execute = &fftw_execute_dft;
  static constexpr auto execute_real = &fftw_execute_dft_r2c;
  static constexpr auto execute_hermitian = &fftw_execute_dft_c2r;
};
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Pair = fftwf_complex;
  static constexpr auto plan = &fftwf_plan_dft_1d;
  static constexpr auto plan_real = &fftwf_plan_dft_r2c_1d;
  static constexpr auto plan_hermitian = &fftwf_plan_dft_c2r_1d;
  static constexpr auto destroy = &fftwf_destroy_plan;
  static constexpr auto execute = &fftwf_execute_dft;
  static constexpr auto execute_real = &fftwf_execute_dft_r2c;
  static constexpr auto execute_hermitian = &fftwf_execute_dft_c2r;
};

}  // namespace detail

/// A transform in place of lines of one length: a plan of FFTW.
template <class T>
class FftwLineTransform {
 public:
  using Complex = std::complex<T>;

  /// One at a time: FFTW's planner is not thread-safe.
  /// @throws Error if n is larger than FFTW's interface allows
  FftwLineTransform(LineTransformKind kind, index_t n) : kind_(kind) {
    if (n > std::numeric_limits<int>::max())
      throw Error("fft", "FFTW transforms at most 2^31 - 1 elements, not " + std::to_string(n));
    std::vector<Complex> line(static_cast<std::size_t>(n));
    T* const numbers = reinterpret_cast<T*>(line.data());
    if (kind == LineTransformKind::real)
      plan_ = Functions::plan_real(int(n), numbers, pair(line.data()), FFTW_ESTIMATE);
    else if (kind == LineTransformKind::hermitian)
      plan_ = Functions::plan_hermitian(int(n), pair(line.data()), numbers, FFTW_ESTIMATE);
    else
      plan_ = Functions::plan(int(n), pair(line.data()), pair(line.data()),
                              kind == LineTransformKind::forward ? FFTW_FORWARD : FFTW_BACKWARD,
                              FFTW_ESTIMATE);
  }

  FftwLineTransform(const FftwLineTransform&) = delete;
  FftwLineTransform& operator=(const FftwLineTransform&) = delete;
  ~FftwLineTransform() { Functions::destroy(plan_); }

  /// The number of elements of scratch memory.
  static constexpr index_t scratch() { return 0; }

  /// Transforms a line in place. Thread-safe.
  /// @param line  room for n complex numbers, aligned to 16 bytes; real numbers lie one behind the
  ///              other from its start on
  void operator()(Complex* line, Complex*) const {
    T* const numbers = reinterpret_cast<T*>(line);
    if (kind_ == LineTransformKind::real) Functions::execute_real(plan_, numbers, pair(line));
    else if (kind_ == LineTransformKind::hermitian)
      Functions::execute_hermitian(plan_, pair(line), numbers);
    else Functions::execute(plan_, pair(line), pair(line));
  }

 private:
  using Functions = detail::Fftw<T>;

  static auto* pair(Complex* line) { return reinterpret_cast<typename Functions::Pair*>(line); }

  LineTransformKind kind_;
  typename Functions::Plan plan_{};
};

}  // namespace cleave::kernels
