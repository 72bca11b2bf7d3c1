// Definitions of fft_wisdom.hpp.
#pragma once

#include <string>

#include <cleave/core/error.hpp>
#include <cleave/kernels/host/fourier_lines.hpp>
#include <cleave/ops/transforms/fft_wisdom.hpp>

namespace cleave::inline v0 {

CLEAVE_INLINE void save_fft_wisdom(const std::string& path) {
#if CLEAVE_HAS_FFTW
  const auto write = [&]<class T>(T) {
    using Functions = kernels::detail::Fftw<T>;
    const std::string name = path + Functions::ending;
    if (Functions::write_wisdom(name.c_str()) == 0)
      throw Error("save_fft_wisdom", "cannot write '" + name + "'");
  };
  write(double{});
  write(float{});
#else
  throw Error("save_fft_wisdom", "cannot write '" + path +
                                     "': this program was built without FFTW (Debian: "
                                     "libfftw3-dev)");
#endif
}

}  // namespace cleave::inline v0
