// The basis of every header of cleave: the language version, the index type, fixed limits and the
// macro for functions that run on host and device.
//
// The build enables features with macros of value 1: CLEAVE_HAS_MPI, CLEAVE_HAS_CBLAS,
// CLEAVE_HAS_LAPACK, CLEAVE_HAS_FFTW, CLEAVE_HAS_SCALAPACK, CLEAVE_HAS_ELPA, CLEAVE_HAS_HDF5,
// CLEAVE_HAS_NETCDF, CLEAVE_HAS_LIBMVEC. This header includes none of these libraries.
//
// With CLEAVE_COMPILED=1, functions that do not depend on the user's types are only declared; their
// definitions, in headers named *_body.hpp, are compiled in the one file that includes
// cleave/compiled.hpp.
#pragma once

#include <cstdint>

#include <cleave/core/macros.hpp>

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error "cleave needs C++20: compile with -std=c++20 (Meson: cpp_std=c++20)"
#endif

#if defined(__CUDACC__)
#define CLEAVE_HOST_DEVICE __host__ __device__
#else
#define CLEAVE_HOST_DEVICE
#endif

/// Before a function that is defined in a *_body.hpp.
#if CLEAVE_COMPILED
#define CLEAVE_INLINE
#else
#define CLEAVE_INLINE inline
#endif

#if CLEAVE_COMPILED
/// Defined by cleave/compiled.hpp.
extern "C" const char cleave_error_link_cleave_compiled_or_include_cleave_compiled_hpp_in_one_file;
#endif

/// Before a loop of few iterations, known at compile time: unrolls it, even at -O2. nvcc's front
/// end has a different pragma; its host compiler decides.
#if defined(__CUDACC__)
#define CLEAVE_UNROLL
#else
#define CLEAVE_UNROLL _Pragma("GCC unroll 16")
#endif

/// Before a loop no iteration of which reads what another one writes, even if it reads and writes
/// the same array: permits vectorisation.
#if defined(__clang__)
#define CLEAVE_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define CLEAVE_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace cleave::inline v0 {

namespace detail {

// A program whose files differ in CLEAVE_COMPILED does not link: the variable is thread-local in
// some files and not in others, which ELF linkers reject with its name.
#if defined(__ELF__) && !defined(__CUDA_ARCH__)
#if CLEAVE_COMPILED
[[gnu::used]] inline thread_local char error_all_files_of_a_program_must_agree_on_CLEAVE_COMPILED =
    0;
[[gnu::used]] inline const char* const needs_compiled =
    &cleave_error_link_cleave_compiled_or_include_cleave_compiled_hpp_in_one_file;
#else
[[gnu::used]] inline char error_all_files_of_a_program_must_agree_on_CLEAVE_COMPILED = 0;
#endif
#endif

}  // namespace detail

/// Extents, strides, offsets and element counts: signed and 64 bits wide everywhere.
using index_t = std::int64_t;

/// The most dimensions a tensor may have.
inline constexpr int max_dims = 8;

/// The most axes a mesh may have: the placements of one tensor then pack into 64 bits.
inline constexpr int max_axes = 8;

}  // namespace cleave::inline v0
