// What FFTW has measured, in files, for later runs.
#pragma once

#include <string>

#include <cleave/core/config.hpp>

namespace cleave::inline v0 {

/// Writes what this process has measured with CLEAVE_FFT=measure to two files: `path` for double,
/// and `path` + "f" for float. With CLEAVE_FFT=path, later runs take the plans from there; on all
/// ranks the same ones, so that results have the same bits on any mesh.
///
///     if (world.rank() == 0) save_fft_wisdom("wisdom");
///
/// Not while another thread transforms.
/// @throws Error if a file cannot be written, or FFTW was not found when this program was built
CLEAVE_INLINE void save_fft_wisdom(const std::string& path);

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/ops/transforms/fft_wisdom_body.hpp>
#endif
