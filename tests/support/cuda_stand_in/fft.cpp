// Entry points of cuFFT: plans of equally spaced lines, and their execution as sums of roots of
// unity. Only the calls and layouts that the project uses are supported.
//
// As the cuFFT manual says: a plan whose work area the caller allocates, as all do here, fails
// without one ("Caller Allocated Work Area Support"), data have to be aligned to complex elements
// and, out of place, complex-to-real transforms may overwrite their input ("cuFFT Execution", "Data
// Layout"). Those of input that is not Hermitian are not defined ("Fourier Transform Types"): their
// results are NaN.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <cufft.h>

#include "entry.hpp"

using namespace cuda_stand_in;

namespace {

struct Spacing {
  long long step, line;
};

struct Plan {
  cufftType type{};
  long long n = 0, lines = 0;  ///< 0 until the plan is made
  Spacing in{}, out{};
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;

  bool is_double() const { return type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D; }
  bool from_real() const { return type == CUFFT_R2C || type == CUFFT_D2Z; }
  bool to_real() const { return type == CUFFT_C2R || type == CUFFT_Z2D; }
  std::size_t part() const { return is_double() ? sizeof(double) : sizeof(float); }
  long long in_count() const { return to_real() ? n / 2 + 1 : n; }
  long long out_count() const { return from_real() ? n / 2 + 1 : n; }

  std::size_t bytes(const Spacing& of, long long count, bool is_real) const {
    return std::size_t((lines - 1) * of.line + (count - 1) * of.step + 1) *
           (is_real ? part() : 2 * part());
  }
  std::size_t in_bytes() const { return bytes(in, in_count(), from_real()); }
  std::size_t out_bytes() const { return bytes(out, out_count(), to_real()); }
};

constexpr std::size_t workspace_bytes = 512;

/// The plan of a handle, which one thread uses at a time.
Plan& plan_of(cufftHandle handle) {
  static std::mutex mutex;
  static std::map<cufftHandle, Plan> plans;
  const std::lock_guard guard(mutex);
  return plans[handle];
}

cufftResult fft_result(cudaError_t error) {
  return error == cudaSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

/// All lines, each from and to memory that may be the same.
template <class T>
void transform(const Plan& plan, const void* in, void* out, int sign) {
  const T* const from = static_cast<const T*>(in);
  T* const to = static_cast<T*>(out);
  std::vector<std::complex<double>> roots, x(std::size_t(plan.n));
  for (long long k = 0; k < plan.n; ++k)
    roots.push_back(
        std::polar(1.0, sign * 2 * 3.14159265358979323846 * double(k) / double(plan.n)));
  for (long long r = 0; r < plan.lines; ++r) {
    for (long long j = 0; j < plan.in_count(); ++j) {
      const long long at = r * plan.in.line + j * plan.in.step;
      if (plan.from_real()) x[std::size_t(j)] = double(from[at]);
      else x[std::size_t(j)] = {double(from[2 * at]), double(from[2 * at + 1])};
      if (plan.to_real() && (j == 0 || 2 * j == plan.n) && x[std::size_t(j)].imag() != 0)
        x[std::size_t(j)] = NAN;  // not Hermitian
      if (plan.to_real() && j > 0) x[std::size_t(plan.n - j)] = std::conj(x[std::size_t(j)]);
    }
    std::vector<std::complex<double>> y;
    for (long long k = 0; k < plan.out_count(); ++k) {
      y.emplace_back();
      for (long long j = 0; j < plan.n; ++j)
        y.back() += x[std::size_t(j)] * roots[std::size_t(j * k % plan.n)];
    }
    for (long long k = 0; k < plan.out_count(); ++k) {
      const long long at = r * plan.out.line + k * plan.out.step;
      const std::complex<double>& value = y[std::size_t(k)];
      if (plan.to_real()) to[at] = T(value.real());
      else to[2 * at] = T(value.real()), to[2 * at + 1] = T(value.imag());
    }
  }
}

/// @param type  that the plan must have
cufftResult execute(const char* function, cufftHandle handle, cufftType type, void* in, void* out,
                    int sign) {
  const Plan plan = plan_of(handle);
  if (plan.n == 0) return CUFFT_INVALID_PLAN;
  if (plan.type != type) return CUFFT_INVALID_TYPE;
  if (plan.workspace == nullptr) return CUFFT_NO_WORKSPACE;
  const std::size_t alignment = 2 * plan.part();
  if (reinterpret_cast<std::uintptr_t>(in) % alignment != 0 ||
      reinterpret_cast<std::uintptr_t>(out) % alignment != 0)
    return CUFFT_UNALIGNED_DATA;
  const std::string what =
      "a Fourier transform of " + std::to_string(plan.lines) + "x" + std::to_string(plan.n);
  return fft_result(entry(function, {.stream = plan.stream, .detail = what}, [&](Context& context) {
    CUstream_st* const stream = context.stream(plan.stream);
    if (stream == nullptr) return cudaErrorInvalidValue;
    Machine& machine = context.machine;
    const auto run = [=, &machine] {
      if (!machine.check_usable(what, in, plan.in_bytes()) ||
          !machine.check_usable(what, out, plan.out_bytes()) ||
          !machine.check_usable(what, plan.workspace, workspace_bytes))
        return;
      poison(plan.workspace, workspace_bytes);
      if (plan.is_double()) transform<double>(plan, in, out, sign);
      else transform<float>(plan, in, out, sign);
      if (plan.to_real() && in != out) poison(in, plan.in_bytes());
    };
    machine.enqueue(*stream, {.name = what, .body = run});
    return cudaSuccess;
  }));
}

}  // namespace

cufftResult cufftCreate(cufftHandle* handle) {
  return fft_result(entry("cufftCreate", {}, [&](Context&) {
    static cufftHandle last = 0;
    *handle = ++last;
    return cudaSuccess;
  }));
}

cufftResult cufftDestroy(cufftHandle handle) {
  plan_of(handle) = {};
  return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle, int allocates) {
  return allocates == 0 ? CUFFT_SUCCESS : CUFFT_NOT_SUPPORTED;
}

cufftResult cufftSetWorkArea(cufftHandle handle, void* workspace) {
  plan_of(handle).workspace = workspace;
  return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  plan_of(handle).stream = stream;
  return CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* n, long long* in_embed,
                                long long in_step, long long in_line, long long* out_embed,
                                long long out_step, long long out_line, cufftType type,
                                long long lines, std::size_t* workspace) {
  return fft_result(entry("cufftMakePlanMany64", {}, [&](Context&) {
    if (rank != 1 || in_embed == nullptr || out_embed == nullptr) return cudaErrorNotSupported;
    if (std::min({n[0], lines, in_step, out_step, in_line, out_line}) < 1)
      return cudaErrorInvalidValue;
    Plan& plan = plan_of(handle);
    plan.type = type;
    plan.n = n[0];
    plan.lines = lines;
    plan.in = {in_step, in_line};
    plan.out = {out_step, out_line};
    *workspace = workspace_bytes;
    return cudaSuccess;
  }));
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int sign) {
  return execute("cufftExecC2C", plan, CUFFT_C2C, in, out, sign);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out) {
  return execute("cufftExecR2C", plan, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out) {
  return execute("cufftExecC2R", plan, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out,
                         int sign) {
  return execute("cufftExecZ2Z", plan, CUFFT_Z2Z, in, out, sign);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out) {
  return execute("cufftExecD2Z", plan, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out) {
  return execute("cufftExecZ2D", plan, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}
