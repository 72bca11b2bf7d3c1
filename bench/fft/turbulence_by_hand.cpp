// examples/turbulence in plain MPI with FFTW-MPI: the same vortices of Taylor and Green, options
// and output, by plans with transposed output and loops written by hand, in slabs only. Energies
// are sums of floating-point numbers, whose last digits depend on the number of processes.
// tests/examples/turbulence.py compares the two.
//
//     mpirun -n 4 turbulence-by-hand --layers 64 --size 64 --steps 10
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include <fftw3-mpi.h>
#include <mpi.h>

namespace {

using Complex = std::complex<double>;
using Index = std::ptrdiff_t;

/// Three components, each as modes or, padded to the same size, as elements.
class Vector {
 public:
  explicit Vector(Index count) : count_(count) {
    for (Complex*& data : data_) {
      data = reinterpret_cast<Complex*>(fftw_alloc_complex(std::size_t(count)));
      for (Index i = 0; i < count; ++i) data[i] = 0;
    }
  }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  ~Vector() {
    for (Complex* data : data_) fftw_free(data);
  }
  Index count() const { return count_; }
  Complex* modes(int c) { return data_[std::size_t(c)]; }
  double* elements(int c) { return reinterpret_cast<double*>(modes(c)); }

 private:
  Index count_;
  std::array<Complex*, 3> data_{};
};

struct Options {
  Index layers = 1, size = 128, steps = 1000, every = 50;
  double dt = 0.01, viscosity = 0.0005;
};

class Fluid {
 public:
  explicit Fluid(const Options& options)
      : options_(options),
        extents_{options.layers, options.size, options.size},
        half_(options.size / 2 + 1),
        count_(fftw_mpi_local_size_3d_transposed(extents_[0], extents_[1], half_, MPI_COMM_WORLD,
                                                 &layers_, &first_layer_, &rows_, &first_row_)),
        u_(count_),
        v_(count_),
        sum_(count_),
        slope_(count_),
        a_(count_),
        b_(count_) {
    const auto [l, m, n] = extents_;
    forward_ = fftw_mpi_plan_dft_r2c_3d(l, m, n, a_.elements(0), pair(b_.modes(0)), MPI_COMM_WORLD,
                                        FFTW_ESTIMATE | FFTW_MPI_TRANSPOSED_OUT);
    backward_ = fftw_mpi_plan_dft_c2r_3d(l, m, n, pair(a_.modes(0)), b_.elements(0), MPI_COMM_WORLD,
                                         FFTW_ESTIMATE | FFTW_MPI_TRANSPOSED_IN);
    each_element([&](Index at, Index i, Index j, Index k) {
      const double x = angle(i, 0), y = angle(j, 1), z = angle(k, 2);
      a_.elements(0)[at] = 0;
      a_.elements(1)[at] = std::cos(x) * std::sin(y) * std::cos(z);
      a_.elements(2)[at] = -std::cos(x) * std::cos(y) * std::sin(z);
    });
    to_modes(a_, u_);
    each_mode([&](Index at, const std::array<double, 3>& k) {
      for (int c = 0; c < 3; ++c)
        if (!is_kept(k)) u_.modes(c)[at] = 0;
    });
  }
  Fluid(const Fluid&) = delete;
  Fluid& operator=(const Fluid&) = delete;
  ~Fluid() { fftw_destroy_plan(forward_), fftw_destroy_plan(backward_); }

  /// One step of Runge and Kutta's method.
  void step() {
    const double dt = options_.dt;
    const double ahead[] = {0.5 * dt, 0.5 * dt, dt, 0}, weights[] = {1, 2, 2, 1};
    combine(v_, u_, 0, u_);
    combine(sum_, u_, 0, u_);
    for (int k = 0; k < 4; ++k) {
      set_slope(v_);
      combine(sum_, sum_, dt / 6 * weights[k], slope_);
      combine(v_, u_, ahead[k], slope_);
    }
    combine(u_, sum_, 0, sum_);
  }

  /// Half of the mean squares of the velocity and of the vorticity.
  std::array<double, 2> half_squares() {
    std::array<double, 2> sums{};
    to_elements(u_, b_);
    each_element([&](Index at, Index, Index, Index) {
      for (int c = 0; c < 3; ++c) sums[0] += b_.elements(c)[at] * b_.elements(c)[at];
    });
    set_curl(u_);
    to_elements(a_, b_);
    each_element([&](Index at, Index, Index, Index) {
      for (int c = 0; c < 3; ++c) sums[1] += b_.elements(c)[at] * b_.elements(c)[at];
    });
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (double& sum : sums) sum /= 2 * elements();
    return sums;
  }

 private:
  static fftw_complex* pair(Complex* x) { return reinterpret_cast<fftw_complex*>(x); }

  double elements() const { return double(extents_[0] * extents_[1] * extents_[2]); }
  double angle(Index i, int d) const {
    return 2 * 3.14159265358979323846 * double(i) / double(extents_[std::size_t(d)]);
  }
  double wave(Index i, int d) const {
    const Index n = extents_[std::size_t(d)];
    return double(2 * i < n ? i : i - n);
  }
  bool is_kept(const std::array<double, 3>& k) const {
    for (std::size_t d = 0; d < 3; ++d)
      if (3 * std::fabs(k[d]) >= double(extents_[d])) return false;
    return true;
  }

  template <class F>
  void each_element(const F& f) const {
    for (Index i = 0; i < layers_; ++i)
      for (Index j = 0; j < extents_[1]; ++j)
        for (Index k = 0; k < extents_[2]; ++k)
          f((i * extents_[1] + j) * 2 * half_ + k, first_layer_ + i, j, k);
  }
  /// Modes are transposed: rows, layers, columns.
  template <class F>
  void each_mode(const F& f) const {
    for (Index j = 0; j < rows_; ++j)
      for (Index i = 0; i < extents_[0]; ++i)
        for (Index k = 0; k < half_; ++k)
          f((j * extents_[0] + i) * half_ + k,
            std::array<double, 3>{wave(i, 0), wave(first_row_ + j, 1), wave(k, 2)});
  }

  void to_modes(Vector& from, Vector& to) const {
    for (int c = 0; c < 3; ++c)
      fftw_mpi_execute_dft_r2c(forward_, from.elements(c), pair(to.modes(c)));
  }
  /// Overwrites `scratch_`'s elements, as FFTW overwrites what it transforms back.
  void to_elements(Vector& from, Vector& to) {
    const double scale = 1 / elements();
    for (int c = 0; c < 3; ++c) {
      for (Index i = 0; i < count_; ++i) scratch_.modes(0)[i] = scale * from.modes(c)[i];
      fftw_mpi_execute_dft_c2r(backward_, pair(scratch_.modes(0)), to.elements(c));
    }
  }
  static void combine(Vector& to, Vector& x, double factor, Vector& y) {
    for (int c = 0; c < 3; ++c)
      for (Index i = 0; i < to.count(); ++i)
        to.modes(c)[i] = x.modes(c)[i] + factor * y.modes(c)[i];
  }

  /// a = i k x v
  void set_curl(Vector& v) {
    each_mode([&](Index at, const std::array<double, 3>& k) {
      for (int c = 0; c < 3; ++c) {
        const int d = (c + 1) % 3, e = (c + 2) % 3;
        const Complex w = k[std::size_t(d)] * v.modes(e)[at] - k[std::size_t(e)] * v.modes(d)[at];
        a_.modes(c)[at] = {-w.imag(), w.real()};
      }
    });
  }

  /// slope = P (v x w) - viscosity k² v
  void set_slope(Vector& v) {
    set_curl(v);
    to_elements(a_, b_);
    to_elements(v, a_);
    each_element([&](Index at, Index, Index, Index) {
      std::array<double, 3> product{};
      for (int c = 0; c < 3; ++c) {
        const int d = (c + 1) % 3, e = (c + 2) % 3;
        product[std::size_t(c)] =
            a_.elements(d)[at] * b_.elements(e)[at] - a_.elements(e)[at] * b_.elements(d)[at];
      }
      for (int c = 0; c < 3; ++c) a_.elements(c)[at] = product[std::size_t(c)];
    });
    to_modes(a_, slope_);
    each_mode([&](Index at, const std::array<double, 3>& k) {
      const double k2 = k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
      const bool is_zero = !is_kept(k) || k2 == 0;
      Complex along = 0;
      for (int c = 0; c < 3; ++c) along += k[std::size_t(c)] * slope_.modes(c)[at];
      for (int c = 0; c < 3; ++c) {
        Complex& f = slope_.modes(c)[at];
        f = is_zero ? Complex(0)
                    : f - k[std::size_t(c)] / k2 * along - options_.viscosity * k2 * v.modes(c)[at];
      }
    });
  }

  Options options_;
  std::array<Index, 3> extents_;
  Index half_, layers_ = 0, first_layer_ = 0, rows_ = 0, first_row_ = 0, count_;
  Vector u_, v_, sum_, slope_, a_, b_, scratch_{count_};
  fftw_plan forward_{}, backward_{};
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  fftw_mpi_init();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--layers") options.layers = std::stoi(value);
    if (option == "--size") options.size = std::stoi(value);
    if (option == "--steps") options.steps = std::stoi(value);
    if (option == "--every") options.every = std::stoi(value);
    if (option == "--dt") options.dt = std::stod(value);
    if (option == "--viscosity") options.viscosity = std::stod(value);
  }
  {
    Fluid fluid(options);
    Index step = 0;
    while (step < options.steps) {
      const double start = MPI_Wtime();
      const Index first = step;
      do fluid.step();
      while (++step < options.steps && step % options.every != 0);
      const double seconds = MPI_Wtime() - start;
      const auto [energy, enstrophy] = fluid.half_squares();
      const double count = double((step - first) * options.layers * options.size * options.size);
      if (rank == 0)
        std::printf("step %5d  energy %.17g  enstrophy %.17g  %7.0f elements/s\n", int(step),
                    energy, enstrophy, count / seconds);
    }
  }
  fftw_mpi_cleanup();
  MPI_Finalize();
}
