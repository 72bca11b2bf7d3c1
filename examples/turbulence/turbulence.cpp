// Turbulence: the Navier-Stokes equations of an incompressible fluid, periodic with side 2π.
//
//     turbulence --size 256 --steps 2000 --picture frames          a plane, decaying vortices
//     turbulence --layers 64 --size 64 --mesh 2x2 --ranks 4        a box
//
//     du/dt = P (u x w) - ν k² u     w = i k x u, P u = u - k (k·u) / k²
//
// Derivatives are products with wave numbers k; u x w is computed between elements, without modes
// that products would alias (the 2/3 rule). A field has its three components along dimension 0, so
// that all are exchanged at once. Its bits and its norms, which are exact, are the same on any
// mesh.
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include <cleave/cleave.hpp>
#include <cleave/nn.hpp>

#include "../curve.hpp"
#include "../grid.hpp"
#include "../png.hpp"
#include "../progress.hpp"
#include "options.hpp"

using namespace cleave;

namespace {

using grid::Mesh;
constexpr dim<1, 2, 3> space{};
using Field = DTensor<double, 4, Mesh, Placements<Shard<1>, Shard<2>>>;
using Modes = decltype(rfft(std::declval<Field>(), space));

constexpr Reach own = star(0, 0, 0, 0);
/// The components (0), (1) and (2) further, around.
constexpr Reach all_components = star(Sides{0, 2}, 0, 0, 0);

/// A function of wave numbers and modes.
struct OfWaves : Stencil {
  std::array<index_t, 3> extents{};
  static constexpr auto reach = own;

  /// The dimension of the component that is `ahead` of that of the result.
  static constexpr int along(const auto& u, int ahead) {
    const int d = int(u.index(0)) + ahead;
    return d < 3 ? d : d - 3;
  }
  constexpr double k(const auto& u, int ahead) const {
    const int d = along(u, ahead);
    const index_t i = u.index(d + 1), n = extents[std::size_t(d)];
    return double(2 * i < n ? i : i - n);
  }
  constexpr double norm2(const auto& u) const {
    return k(u, 0) * k(u, 0) + k(u, 1) * k(u, 1) + k(u, 2) * k(u, 2);
  }
  /// Whether products of two such modes are not aliases of one.
  constexpr bool is_kept(const auto& u) const {
    bool kept = true;
    for (int c = 0; c < 3; ++c)
      kept = kept && 3 * std::abs(k(u, c)) < double(extents[std::size_t(along(u, c))]);
    return kept;
  }
};

/// w = i k x u
struct Curl : OfWaves {
  static constexpr auto reach = all_components;
  constexpr auto operator()(const auto& u) const {
    const auto w = k(u, 1) * u(2, 0, 0, 0) - k(u, 2) * u(1, 0, 0, 0);
    return std::complex(-w.imag(), w.real());
  }
};

struct Cross : Stencil {
  constexpr auto operator()(const auto& u, const auto& w) const {
    return u(1, 0, 0, 0) * w(2, 0, 0, 0) - u(2, 0, 0, 0) * w(1, 0, 0, 0);
  }
};

/// P f - ν k² u
struct Slope : OfWaves {
  double viscosity = 0;
  static constexpr std::array reach{all_components, own};
  constexpr auto operator()(const auto& f, const auto& u) const {
    const double k2 = norm2(u);
    if (!is_kept(u) || k2 == 0) return std::complex(0.0);
    const auto along = k(u, 0) * f(0, 0, 0, 0) + k(u, 1) * f(1, 0, 0, 0) + k(u, 2) * f(2, 0, 0, 0);
    return f(0, 0, 0, 0) - k(u, 0) / k2 * along - viscosity * k2 * u(0, 0, 0, 0);
  }
};

/// Random modes, most of them with |k| around 6; a plane has no velocity across.
struct Vortices : OfWaves {
  auto operator()(const auto& noise) const {
    const double k2 = norm2(noise);
    const bool is_across = extents[0] == 1 && noise.index(0) == 0;
    return (is_across ? 0 : k2 * std::exp(-k2 / 18)) * noise(0, 0, 0, 0);
  }
};

/// Vortices of Taylor and Green. In a plane, they decay as exp(-2 ν t).
struct TaylorGreen : OfWaves {
  auto operator()(const auto& u) const {
    const auto x = [&](int c) {
      return 2 * 3.14159265358979323846 * double(u.index(c + 1)) / double(extents[std::size_t(c)]);
    };
    if (u.index(0) == 0) return 0.0;
    return u.index(0) == 1 ? std::cos(x(0)) * std::sin(x(1)) * std::cos(x(2))
                           : -std::cos(x(0)) * std::cos(x(1)) * std::sin(x(2));
  }
};

/// The modes on one shell of wave numbers, weighed so that their squares add up to its energy.
struct Shell : OfWaves {
  double radius = 0;
  auto operator()(const auto& u) const {
    const bool is_there = std::lround(std::sqrt(norm2(u))) == std::lround(radius);
    const bool has_conjugate = u.index(3) > 0 && 2 * u.index(3) != extents[2];
    return (is_there ? has_conjugate ? 1.0 : std::sqrt(0.5) : 0.0) * u(0, 0, 0, 0);
  }
};

class Fluid {
 public:
  Fluid(const Mesh& mesh, const turbulence::Options& options)
      : waves_{{}, {options.layers, options.size, options.size}},
        slope_{waves_, options.viscosity},
        dt_(options.dt),
        u(make(mesh, options)) {}

  /// One step of Runge and Kutta's method.
  void step() {
    const auto ahead = [&](double h, const Modes& by) {
      return map([h](auto x, auto k) { return x + h * k; }, u, by);
    };
    const Modes a = slope(u), b = slope(ahead(dt_ / 2, a)), c = slope(ahead(dt_ / 2, b));
    map_([h = dt_ / 6](auto x, auto k1, auto k2, auto k3,
                       auto k4) { return x + h * (k1 + 2.0 * (k2 + k3) + k4); },
         u, a, b, c, slope(ahead(dt_, c)));
  }

  Field elements(const Modes& modes) const { return irfft(modes, space, waves_.extents[2]); }
  Modes vorticity() const { return apply(Curl{waves_}, u, around); }
  /// Half of the mean square of a field.
  static double half_square(const Field& x) {
    const double root = norm<exact>(x).item();
    return 1.5 * root * root / double(x.size());
  }
  double energy(index_t k) const {
    const auto shell = abs(apply(Shell{waves_, double(k)}, u, around));
    const double root = norm<exact>(shell).item() / double(count());
    return root * root;
  }

 private:
  static constexpr auto around = edges(periodic);

  Modes slope(const Modes& v) const {
    const Field w = elements(apply(Curl{waves_}, v, around));
    return apply(slope_, rfft(apply(Cross{}, elements(v), w, around), space), v, around);
  }
  Modes make(const Mesh& mesh, const turbulence::Options& options) const {
    const auto [l, m, n] = waves_.extents;
    const Field x = randn<double>({3, l, m, n}, mesh, Shard<1>{}, Shard<2>{});
    const Modes start = options.start == "vortices"
                            ? apply(Vortices{waves_}, rfft(x, space), around)
                            : rfft(apply(TaylorGreen{waves_}, x, around), space);
    const Modes free = apply(Slope{waves_}, start, start, around);
    return options.start == "vortices" ? 1 / std::sqrt(2 * half_square(elements(free))) * free
                                       : free;
  }
  index_t count() const { return waves_.extents[0] * waves_.extents[1] * waves_.extents[2]; }

  OfWaves waves_;
  Slope slope_;
  double dt_;

 public:
  Modes u;
};

/// What a checkpoint has.
struct State {
  Modes u;
  static constexpr nn::names members{"u"};
};

void simulate(World& world, const turbulence::Options& options) {
  const bool is_first = world.rank() == 0;
  // layers are cut along the rows of the mesh, each layer along its columns
  index_t rows = options.rows, columns = options.columns;
  if (rows == 0) rows = options.layers == 1 ? 1 : world.size(), columns = world.size() / rows;
  const Mesh mesh = grid::mesh_of(world, rows, columns);
  for (const std::string& folder : {options.picture, options.resume})
    if (!folder.empty()) std::filesystem::create_directories(folder);
  manual_seed(world, 1);
  Fluid fluid(mesh, options);
  nn::StateDict state = nn::state_dict(State{fluid.u});
  index_t step = 0;
  const std::string latest = options.resume.empty() ? "" : nn::latest_checkpoint(options.resume);
  if (!latest.empty()) step = std::stol(nn::note_of(nn::load_checkpoint(latest, state), "step"));
  while (step < options.steps) {
    training::Progress progress(world);
    do {
      fluid.step();
      progress.add(0);
    } while (++step < options.steps && step % options.every != 0);
    const std::string speed =
        progress.speed(options.layers * options.size * options.size, "elements");
    const Field u = fluid.elements(fluid.u), w = fluid.elements(fluid.vorticity());
    const double energy = Fluid::half_square(u), enstrophy = Fluid::half_square(w);
    if (is_first)
      std::printf("step %5d  energy %.17g  enstrophy %.17g  %s\n", int(step), energy, enstrophy,
                  speed.c_str());
    std::fflush(stdout);
    const std::string name = "/step-" + std::to_string(step);
    if (!options.resume.empty()) {
      state.notes = {{"step", std::to_string(step)}};
      nn::save_checkpoint(world, options.resume + name, state);
    }
    if (options.picture.empty()) continue;
    const Tensor<double, 4> layer = slice(slice(w, dim<0>{}, 0, 1), dim<1>{}, 0, 1).full_tensor();
    if (is_first)
      png::write(options.picture + name + ".png", reshape(layer, {options.size, options.size}),
                 3 * std::sqrt(2 * enstrophy));
  }
  training::Curve spectrum("log10 of the energy", "--spectrum");
  for (index_t k = 1; 3 * k < options.size; ++k) {
    const double energy = fluid.energy(k);
    if (is_first) std::printf("energy(%d) = %.17g\n", int(k), energy);
    spectrum.add(std::log10(double(k)), std::log10(energy));
  }
  if (is_first && !options.spectrum.empty())
    spectrum.write(options.spectrum, "log10 of the wave number");
}

}  // namespace

int main(int argc, char** argv) {
  return grid::main_by("turbulence", argc, argv, &turbulence::parse, &simulate);
}
