// Transforms of lines by FFTW 3. @see plain_line_transform.hpp for the same without it
#pragma once

#include <complex>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <fftw3.h>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/kernels/host/line_transform_kind.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// FFTW's functions for an element type.
template <class T>
struct Fftw;
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Pair = fftw_complex;
  static constexpr auto plan = &fftw_plan_many_dft;
  static constexpr auto plan_real = &fftw_plan_dft_r2c_1d;
  static constexpr auto plan_hermitian = &fftw_plan_dft_c2r_1d;
  static constexpr auto plan_waves = &fftw_plan_r2r_1d;
  static constexpr auto destroy = &fftw_destroy_plan;
  static constexpr auto execute = &fftw_execute_dft;
  static constexpr auto execute_real = &fftw_execute_dft_r2c;
  static constexpr auto execute_hermitian = &fftw_execute_dft_c2r;
  static constexpr auto execute_waves = &fftw_execute_r2r;
  static constexpr auto read_wisdom = &fftw_import_wisdom_from_filename;
  static constexpr auto write_wisdom = &fftw_export_wisdom_to_filename;
  static constexpr const char* ending = "";  ///< of files of wisdom
};
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Pair = fftwf_complex;
  static constexpr auto plan = &fftwf_plan_many_dft;
  static constexpr auto plan_real = &fftwf_plan_dft_r2c_1d;
  static constexpr auto plan_hermitian = &fftwf_plan_dft_c2r_1d;
  static constexpr auto plan_waves = &fftwf_plan_r2r_1d;
  static constexpr auto destroy = &fftwf_destroy_plan;
  static constexpr auto execute = &fftwf_execute_dft;
  static constexpr auto execute_real = &fftwf_execute_dft_r2c;
  static constexpr auto execute_hermitian = &fftwf_execute_dft_c2r;
  static constexpr auto execute_waves = &fftwf_execute_r2r;
  static constexpr auto read_wisdom = &fftwf_import_wisdom_from_filename;
  static constexpr auto write_wisdom = &fftwf_export_wisdom_to_filename;
  static constexpr const char* ending = "f";
};

/// The flags of new plans, as CLEAVE_FFT says: `estimate`, `measure`, or a file of wisdom, which is
/// read when a plan is made under another name than before.
/// @throws Error if the file cannot be read
template <class T>
unsigned planning_flags() {
  const char* const given = std::getenv("CLEAVE_FFT");
  const std::string wanted = given == nullptr ? "estimate" : given;
  if (wanted.empty() || wanted == "estimate") return FFTW_ESTIMATE;
  if (wanted == "measure") return FFTW_MEASURE;
  static std::string read;  // by the planner, one at a time
  if (read != wanted && Fftw<T>::read_wisdom((wanted + Fftw<T>::ending).c_str()) == 0)
    throw Error("fft", "CLEAVE_FFT is '" + wanted + "': neither estimate nor measure, and '" +
                           wanted + Fftw<T>::ending + "' is no file of FFTW's wisdom");
  read = wanted;
  return FFTW_MEASURE | FFTW_WISDOM_ONLY;
}

}  // namespace detail

/// A transform in place of lines of one length: a plan of FFTW.
template <class T>
class FftwLineTransform {
 public:
  using Complex = std::complex<T>;

  /// One at a time: FFTW's planner is not thread-safe.
  /// @param interleaved  whether `interleaved` will be called, rather than operator()
  /// @throws Error if n is larger than FFTW's interface allows
  FftwLineTransform(LineTransformKind kind, index_t n, bool interleaved = false) {
    if (n > std::numeric_limits<int>::max())
      throw Error("fft", "FFTW transforms at most 2^31 - 1 elements, not " + std::to_string(n));
    const int apart = interleaved ? int(stride(n, group)) : 1, length = int(n);
    std::vector<Complex> line(static_cast<std::size_t>(n * apart)), other(line.size());
    Complex* const from = line.data();
    Complex* const to = interleaved ? from : other.data();
    const auto plan = [&](unsigned flags) {
      if (kind == LineTransformKind::real)
        return Functions::plan_real(length, numbers(from), pair(to), flags);
      if (kind == LineTransformKind::hermitian)
        return Functions::plan_hermitian(length, pair(from), numbers(to), flags);
      if (is_cosine_or_sine(kind))
        return Functions::plan_waves(length, numbers(from), numbers(to), waves_kind(kind), flags);
      return Functions::plan(1, &length, interleaved ? int(group) : 1, pair(from), nullptr, apart,
                             1, pair(to), nullptr, apart, 1,
                             kind == LineTransformKind::forward ? FFTW_FORWARD : FFTW_BACKWARD,
                             flags);
    };
    plan_ = plan(detail::planning_flags<T>());
    if (plan_ == nullptr) plan_ = plan(FFTW_ESTIMATE);  // the wisdom does not know it
    if (plan_ == nullptr && n > 0)                      // empty lines need none
      throw Error("fft", "FFTW has no plan for lines of " + std::to_string(n) + " elements");
  }

  FftwLineTransform(const FftwLineTransform&) = delete;
  FftwLineTransform& operator=(const FftwLineTransform&) = delete;
  ~FftwLineTransform() { Functions::destroy(plan_); }

  /// The number of elements of scratch memory.
  static constexpr index_t scratch() { return 0; }

  /// Whether complex lines along a dimension, the last one or not, are best interleaved.
  static constexpr bool interleaves(bool is_last) { return !is_last; }
  /// How far the elements of interleaved lines are apart. It depends on their length only, so a
  /// line has one plan, wherever it lies.
  static constexpr index_t stride(index_t n, index_t) { return n > 2048 ? group : 16; }

  /// Transforms interleaved lines of complex numbers in place. Thread-safe.
  void interleaved(Complex* x, index_t lines, Complex*) const {
    for (index_t r = 0; r < lines; r += group) Functions::execute(plan_, pair(x + r), pair(x + r));
  }

  /// Transforms a line to another place, both aligned to 16 bytes. Thread-safe.
  /// @param from  is overwritten if the kind is hermitian
  template <class In, class Out>
  void operator()(In* from, Out* to, Complex*) const {
    if constexpr (std::is_same_v<In, T> && std::is_same_v<Out, T>)
      Functions::execute_waves(plan_, from, to);
    else if constexpr (std::is_same_v<In, T>) Functions::execute_real(plan_, from, pair(to));
    else if constexpr (std::is_same_v<Out, T>) Functions::execute_hermitian(plan_, pair(from), to);
    else Functions::execute(plan_, pair(from), pair(to));
  }

 private:
  using Functions = detail::Fftw<T>;

  static auto* pair(Complex* line) { return reinterpret_cast<typename Functions::Pair*>(line); }

  static fftw_r2r_kind waves_kind(LineTransformKind kind) {
    constexpr fftw_r2r_kind kinds[] = {FFTW_REDFT00, FFTW_REDFT10, FFTW_REDFT01, FFTW_REDFT11,
                                       FFTW_RODFT00, FFTW_RODFT10, FFTW_RODFT01, FFTW_RODFT11};
    return kinds[int(kind) - int(LineTransformKind::cosine1)];
  }

  static T* numbers(Complex* line) { return reinterpret_cast<T*>(line); }

  static constexpr index_t group = 4;  // lines that a plan transforms together

  typename Functions::Plan plan_{};
};

}  // namespace cleave::inline v0::kernels
