// Fourier transforms of cubes of doubles there and back, complex and real: on one core against
// FFTW's plan of three dimensions, with FFTW below and with the kernel of our own; on several
// processes in slabs, which stay exchanged in between, against FFTW-MPI with transposed output and
// SpFFT if they are installed. FFTW plans by FFTW_ESTIMATE everywhere.
//
// `fft seconds` prints instead the median seconds of each cube, for fft_by_dtfft.py to compare.
#include <algorithm>
#include <array>
#include <complex>
#include <cstdio>
#include <string>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/kernels/host/plain_line_transform.hpp>
#include <cleave/ops/transforms/fourier.hpp>

#if CLEAVE_BENCH_FFTW_MPI
#include <fftw3-mpi.h>
#elif CLEAVE_HAS_FFTW
#include <fftw3.h>
#endif
#if CLEAVE_BENCH_SPFFT
#include <spfft/spfft.hpp>
#endif

#include "../in_turn.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

using Complex = std::complex<double>;
constexpr dim<0, 1, 2> all{};

template <class T>
Tensor<T, 3> filled(const std::array<index_t, 3>& shape) {
  const Tensor<T, 3> x(shape);
  std::fill_n(x.data(), x.size(), T(0.5));
  return x;
}

int turns_of(index_t n) { return n > 128 ? 3 : 15; }

void print(const World& world, const std::string& name, index_t n, const char* kind, double value) {
  if (world.rank() == 0)
    std::printf("fft.%s.%s_%d %.3f ratio\n", name.c_str(), kind, int(n), value);
}

#if CLEAVE_HAS_FFTW
fftw_complex* pair(Complex* data) { return reinterpret_cast<fftw_complex*>(data); }

/// Plans there and back, out of place, and their arrays.
class Fftw {
 public:
  Fftw(index_t n, bool is_real)
      : numbers_(filled<double>({is_real ? n : 0, n, n})),
        x_(filled<Complex>({is_real ? 0 : n, n, n})),
        y_(filled<Complex>({n, n, is_real ? n / 2 + 1 : n})) {
    const int m = int(n);
    double* const r = numbers_.data();
    fftw_complex *const x = pair(x_.data()), *const y = pair(y_.data());
    plan_[0] = is_real ? fftw_plan_dft_r2c_3d(m, m, m, r, y, FFTW_ESTIMATE)
                       : fftw_plan_dft_3d(m, m, m, x, y, FFTW_FORWARD, FFTW_ESTIMATE);
    plan_[1] = is_real ? fftw_plan_dft_c2r_3d(m, m, m, y, r, FFTW_ESTIMATE)
                       : fftw_plan_dft_3d(m, m, m, y, x, FFTW_BACKWARD, FFTW_ESTIMATE);
  }
  Fftw(const Fftw&) = delete;  // owns plans
  ~Fftw() { fftw_destroy_plan(plan_[0]), fftw_destroy_plan(plan_[1]); }
  void operator()() const { fftw_execute(plan_[0]), fftw_execute(plan_[1]); }

 private:
  Tensor<double, 3> numbers_;
  Tensor<Complex, 3> x_, y_;
  std::array<fftw_plan, 2> plan_{};
};

/// The kernel of our own, without FFTW: three dimensions there and back.
class Own {
 public:
  explicit Own(index_t n) : x_(filled<Complex>({n, n, n})), y_(x_.clone()) {}
  void operator()() const {
    along(LineTransformKind::forward, x_, y_, 2);
    along(LineTransformKind::forward, y_, y_, 1);
    along(LineTransformKind::forward, y_, y_, 0);
    along(LineTransformKind::inverse, y_, x_, 2);
    along(LineTransformKind::inverse, x_, x_, 1);
    along(LineTransformKind::inverse, x_, x_, 0);
  }

 private:
  using LineTransformKind = kernels::LineTransformKind;
  using Cube = Tensor<Complex, 3>;
  static void along(LineTransformKind kind, const Cube& x, const Cube& y, int d) {
    const Shape shape(x.shape()), strides = x.view().strides;
    kernels::detail::LinesBy<kernels::PlainLineTransform<double>, Complex, Complex>(
        kind, shape[d], 1, 1, kernels::Strided<const Complex>{x.data(), shape, strides},
        kernels::Strided<Complex>{y.data(), shape, strides}, d)();
  }

  Cube x_, y_;
};

void measure_alone(const World& world, index_t n) {
  const Tensor<Complex, 3> x = filled<Complex>({n, n, n});
  const Tensor<double, 3> numbers = filled<double>({n, n, n});
  const auto both = [&] { (void)ifft(fft(x, all), all); };
  const auto both_real = [&] { (void)irfft(rfft(numbers, all), all); };
  {
    const Fftw fftw(n, false);
    const Own own(n);
    const auto times = bench::times_in_turn(turns_of(n), fftw, both, own);
    print(world, "vs_fftw", n, "c2c", bench::ratio_of(times, 1));
    print(world, "own.vs_fftw", n, "c2c", bench::ratio_of(times, 2));
  }
  const Fftw fftw(n, true);
  print(world, "vs_fftw", n, "r2c",
        bench::ratio_of(bench::times_in_turn(turns_of(n), fftw, both_real), 1));
}
#endif

#if CLEAVE_BENCH_FFTW_MPI
/// Plans of FFTW-MPI there and back, out of place, and their arrays.
class FftwMpi {
 public:
  FftwMpi(index_t n, bool is_real) {
    const auto flags = FFTW_ESTIMATE;
    ptrdiff_t rows, first, columns, first_column;
    const ptrdiff_t last = is_real ? n / 2 + 1 : n;
    const auto count = std::size_t(fftw_mpi_local_size_3d_transposed(
        n, n, last, MPI_COMM_WORLD, &rows, &first, &columns, &first_column));
    x_.resize(count, 0.5), y_.resize(count, 0.5);
    fftw_complex *const x = pair(x_.data()), *const y = pair(y_.data());
    double* const r = reinterpret_cast<double*>(x_.data());
    const unsigned out = flags | FFTW_MPI_TRANSPOSED_OUT, in = flags | FFTW_MPI_TRANSPOSED_IN;
    if (is_real) {
      plan_[0] = fftw_mpi_plan_dft_r2c_3d(n, n, n, r, y, MPI_COMM_WORLD, out);
      plan_[1] = fftw_mpi_plan_dft_c2r_3d(n, n, n, y, r, MPI_COMM_WORLD, in);
    } else {
      plan_[0] = fftw_mpi_plan_dft_3d(n, n, n, x, y, MPI_COMM_WORLD, FFTW_FORWARD, out);
      plan_[1] = fftw_mpi_plan_dft_3d(n, n, n, y, x, MPI_COMM_WORLD, FFTW_BACKWARD, in);
    }
  }
  FftwMpi(const FftwMpi&) = delete;  // owns plans
  ~FftwMpi() { fftw_destroy_plan(plan_[0]), fftw_destroy_plan(plan_[1]); }
  void operator()() const { fftw_execute(plan_[0]), fftw_execute(plan_[1]); }

 private:
  std::vector<Complex> x_, y_;
  std::array<fftw_plan, 2> plan_{};
};
#endif

#if CLEAVE_BENCH_SPFFT
/// SpFFT of all modes: elements in slabs of layers, modes in sticks of whole columns of layers.
class Spfft {
 public:
  Spfft(const World& world, index_t n, bool is_real)
      : columns_(part(world, n) * (is_real ? n / 2 + 1 : n)),
        modes_(std::size_t(columns_ * n)),
        transform_(transform(world, n, is_real)) {
    double* const x = transform_.space_domain_data(SPFFT_PU_HOST);
    std::fill_n(x, part(world, n) * n * n * (is_real ? 1 : 2), 0.5);
  }
  void operator()() const {
    double* const modes = reinterpret_cast<double*>(modes_.data());
    transform_.forward(SPFFT_PU_HOST, modes, SPFFT_NO_SCALING);
    transform_.backward(modes, SPFFT_PU_HOST);
  }

 private:
  static index_t first(const World& world, index_t n) { return world.rank() * n / world.size(); }
  static index_t part(const World& world, index_t n) {
    return (world.rank() + 1) * n / world.size() - first(world, n);
  }
  spfft::Transform transform(const World& world, index_t n, bool is_real) const {
    const int m = int(n), width = is_real ? m / 2 + 1 : m, row = int(first(world, n));
    std::vector<int> indices;
    for (int column = 0; column < int(columns_); ++column)
      for (int z = 0; z < m; ++z)
        for (const int i : {column % width, row + column / width, z}) indices.push_back(i);
    return {1,
            MPI_COMM_WORLD,
            SPFFT_EXCH_DEFAULT,
            SPFFT_PU_HOST,
            is_real ? SPFFT_TRANS_R2C : SPFFT_TRANS_C2C,
            m,
            m,
            m,
            int(part(world, n)),
            int(columns_) * m,
            SPFFT_INDEX_TRIPLETS,
            indices.data()};
  }

  index_t columns_;
  mutable std::vector<Complex> modes_;
  mutable spfft::Transform transform_;
};
#endif

/// @param prints_seconds  whether to print those of our transforms only
void measure_together(World& world, index_t n, bool prints_seconds) {
  const auto mesh = init_device_mesh<dp>(world, {world.size()});
  const std::string ranks = std::to_string(world.size()) + "x1";
  const auto x = full<Complex>({n, n, n}, Complex(0.5), mesh, Shard<0>{});
  const auto numbers = full<double>({n, n, n}, 0.5, mesh, Shard<0>{});
  const auto both = [&] { (void)ifft(fft(x, all), all); };
  const auto both_real = [&] { (void)irfft(rfft(numbers, all), all); };
  if (prints_seconds) {
    both(), both_real();
    const auto times = bench::in_turn(turns_of(n), both, both_real);
    if (world.rank() == 0)
      std::printf("c2c_%d %.6f\nr2c_%d %.6f\n", int(n), times[0], int(n), times[1]);
    return;
  }
  {
    const index_t own = world.rank() == 0 ? n : 0;
    const Tensor<Complex, 3> whole = filled<Complex>({own, own, own});
    const auto times = bench::times_in_turn(
        turns_of(n),
        [&] {
          if (own > 0) (void)ifft(fft(whole, all), all);
        },
        both);
    print(world, ranks + ".speedup", n, "c2c", bench::ratio_of(times, 1));
  }
  [[maybe_unused]] const auto compare = [&](const char* name, const auto& make) {
    const auto ratio = [&](bool is_real, const auto& ours) {
      const auto other = make(is_real);
      print(world, ranks + "." + name, n, is_real ? "r2c" : "c2c",
            bench::ratio_of(bench::times_in_turn(turns_of(n), other, ours), 1));
    };
    ratio(false, both), ratio(true, both_real);
  };
#if CLEAVE_BENCH_FFTW_MPI
  compare("vs_fftw_mpi", [&](bool is_real) { return FftwMpi(n, is_real); });
#endif
#if CLEAVE_BENCH_SPFFT
  compare("vs_spfft", [&](bool is_real) { return Spfft(world, n, is_real); });
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
  const bool prints_seconds = argc > 1 && std::string(argv[1]) == "seconds";
  [[maybe_unused]] const auto omit = [&](const char* what, const char* package) {
    if (world.rank() == 0 && !prints_seconds)
      std::fprintf(stderr, "fft.*.%s omitted: %s is missing\n", what, package);
  };
#if CLEAVE_BENCH_FFTW_MPI
  fftw_mpi_init();
#else
  omit("vs_fftw_mpi", "libfftw3-mpi-dev");
#endif
#if !CLEAVE_BENCH_SPFFT
  omit("vs_spfft", "libspfft-dev");
#endif
  for (const index_t n : {128, 256}) {
    if (world.size() > 1) measure_together(world, n, prints_seconds);
#if CLEAVE_HAS_FFTW
    else measure_alone(world, n);
#endif
  }
}
