// What a program was built with, and which settings it finds in the environment, as a text for
// logs.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <cleave/version.hpp>

namespace cleave::inline v0 {

/// Three lines: version, compiler and mode; the optional features of this build, and those that it
/// lacks; the variables of the environment whose names begin with CLEAVE_, in alphabetical order.
///
///     cleave 0.1.0, g++ 12.2.0, header-only
///     features: MPI, BLAS, LAPACK, FFTW; not ScaLAPACK, ELPA, HDF5, NetCDF, libmvec, NCCL
///     environment: CLEAVE_CHECK=collective
///
/// @collective none
inline std::string build_info() {
  std::string text = "cleave " + std::to_string(CLEAVE_VERSION_MAJOR) + '.' +
                     std::to_string(CLEAVE_VERSION_MINOR) + '.' +
                     std::to_string(CLEAVE_VERSION_PATCH);
#if defined(__clang__)
  text += ", clang++ " + std::to_string(__clang_major__) + '.' + std::to_string(__clang_minor__) +
          '.' + std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
  text += ", g++ " + std::to_string(__GNUC__) + '.' + std::to_string(__GNUC_MINOR__) + '.' +
          std::to_string(__GNUC_PATCHLEVEL__);
#endif
#if CLEAVE_COMPILED
  text += ", compiled mode\n";
#else
  text += ", header-only\n";
#endif

  struct Feature {
    const char* name;
    const char* value;  ///< of its macro; the macro's name if it is not defined
  };
#define CLEAVE_TEXT_OF(value) #value
#define CLEAVE_FEATURE(name, macro) {name, CLEAVE_TEXT_OF(macro)}
  static constexpr Feature features[] = {
      CLEAVE_FEATURE("MPI", CLEAVE_HAS_MPI),
      CLEAVE_FEATURE("BLAS", CLEAVE_HAS_CBLAS),
      CLEAVE_FEATURE("LAPACK", CLEAVE_HAS_LAPACK),
      CLEAVE_FEATURE("FFTW", CLEAVE_HAS_FFTW),
      CLEAVE_FEATURE("ScaLAPACK", CLEAVE_HAS_SCALAPACK),
      CLEAVE_FEATURE("ELPA", CLEAVE_HAS_ELPA),
      CLEAVE_FEATURE("HDF5", CLEAVE_HAS_HDF5),
      CLEAVE_FEATURE("NetCDF", CLEAVE_HAS_NETCDF),
      CLEAVE_FEATURE("libmvec", CLEAVE_HAS_LIBMVEC),
      CLEAVE_FEATURE("NCCL", CLEAVE_HAS_NCCL),
  };
#undef CLEAVE_FEATURE
#undef CLEAVE_TEXT_OF
  std::string present, missing;
  for (const Feature& feature : features) {
    std::string& names = feature.value[0] == '1' ? present : missing;
    names += (names.empty() ? "" : ", ") + std::string(feature.name);
  }
  text += "features: " + (present.empty() ? "none" : present);
  text += (missing.empty() ? "" : "; not ") + missing + '\n';

  std::vector<std::string_view> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    if (std::string_view(*variable).starts_with("CLEAVE_")) variables.push_back(*variable);
  std::sort(variables.begin(), variables.end());
  text += "environment:";
  for (const std::string_view variable : variables) text += ' ' + std::string(variable);
  return text + (variables.empty() ? " no variable CLEAVE_..\n" : "\n");
}

}  // namespace cleave::inline v0
