// The norm of all gradients and clipping by it, whatever the placements and meshes of the
// parameters, and loss scaling for 16-bit types.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <cleave/comm/functional.hpp>
#include <cleave/nn/update.hpp>

namespace cleave::nn {

namespace detail {

/// A sum over the ranks of a group. @collective every rank of the group
inline double sum_over(double value, Communicator& group) {
  const Tensor<double, 0> local(std::array<index_t, 0>{}, {value});
  return functional::all_reduce(local, Sum{}, functional::Group(group)).wait().item();
}

/// The sum of f(gradient) over all parameters and ranks; replicas count once, on the first one. One
/// small all-reduce per distinct mesh.
///
/// @param f  takes a Trained, returns the value for this rank's elements
template <class F>
double sum_over_gradients(const char* operation, const std::vector<Trained>& list, const F& f) {
  std::vector<std::pair<const MeshState*, double>> sums;
  for (const Trained& p : list) {
    if (p.mesh != nullptr && !p.mesh->is_member())
      throw Error(operation,
                  "a parameter is on a mesh that does not contain this rank; pass the World "
                  "whose ranks hold the parameters");
    std::size_t k = 0;
    while (k < sums.size() && sums[k].first != p.mesh) ++k;
    if (k == sums.size()) sums.emplace_back(p.mesh, 0.0);
    if (p.has_gradient && p.is_first_replica()) sums[k].second += f(p);
  }
  double total = 0;
  for (const auto& [mesh, sum] : sums)
    total += mesh == nullptr ? sum : sum_over(sum, mesh->group().host());
  return total;
}
/// The same for parameters on any ranks of a world: one all-reduce over the world. A Tensor counts
/// on the world's first rank.
template <class F>
double sum_over_gradients(const char*, const std::vector<Trained>& list, const F& f,
                          const World& world) {
  double sum = 0;
  for (const Trained& p : list)
    if (p.has_gradient && (p.mesh == nullptr ? world.rank() == 0 : p.is_first_replica()))
      sum += f(p);
  return sum_over(sum, world.communicator());
}

template <class F>
double over_elements(const char* operation, const Trained& p, const F& f) {
  double sum = 0;
  if (p.gradient.size() == 0) return sum;
  with_real_type(operation, p.gradient.dtype, [&]<class Real>(Real*) {
    over_dense_gradient<Real>(
        p.gradient, [&](index_t begin, index_t end, const Real* g) { sum += f(end - begin, g); });
  });
  return sum;
}

/// Multiplies the elements of a gradient in place.
inline void scale_gradient(const char* operation, Trained& p, double by) {
  p.own_gradient();
  if (cleave::detail::is_dry()) return;
  with_real_type(operation, p.gradient.dtype, [&]<class Real>(Real*) {
    using A = accumulator_t<Real>;
    Real* const g = static_cast<Real*>(p.gradient.data);
    const index_t n = p.gradient.size() * index_t(size_of(p.gradient.dtype) / sizeof(Real));
    for (index_t i = 0; i < n; ++i) g[i] = Real(A(g[i]) * A(by));
  });
}

struct SumOfSquares {
  template <class T>
  double operator()(index_t n, const T* g) const {
    double sum = 0;
    for (index_t i = 0; i < n; ++i) {
      const double x = double(accumulator_t<T>(g[i]));
      sum += x * x;
    }
    return sum;
  }
};

struct NotFinite {
  template <class T>
  double operator()(index_t n, const T* g) const {
    double count = 0;
    for (index_t i = 0; i < n; ++i) count += std::isfinite(double(accumulator_t<T>(g[i]))) ? 0 : 1;
    return count;
  }
};

/// Multiplies all gradients by max_norm / norm if this is less than 1. @return the norm
template <class M>
double clip_to(const M& m, double max_norm, double norm) {
  const double by = max_norm / (norm + 1e-6);
  if (by >= 1) return norm;
  for (Trained& p : trained_parameters(m))
    if (p.has_gradient) scale_gradient("clip_grad_norm_", p, by);
  return norm;
}

}  // namespace detail

/// The 2-norm of all gradients together; replicas count once.
///
/// @param world   if omitted, every parameter must be on a mesh that contains this rank; with a
///                World, parameters may be on any of its ranks, each on one mesh only
/// @collective    the ranks of every mesh; the whole world if one is given
template <class M, class... W>
double grad_norm(const M& m, const W&... world) {
  const auto squares = [](const Trained& p) {
    return detail::over_elements("grad_norm", p, detail::SumOfSquares{});
  };
  const std::vector<Trained> list = trained_parameters(m);
  return std::sqrt(detail::sum_over_gradients("grad_norm", list, squares, world...));
}

/// Multiplies all gradients by max_norm / norm if their norm is larger than max_norm.
///
/// @return     the norm before clipping
/// @collective as `grad_norm`
template <class M, class... W>
double clip_grad_norm_(const M& m, double max_norm, const W&... world) {
  return detail::clip_to(m, max_norm, grad_norm(m, world...));
}

/// Scales losses so that 16-bit gradients do not underflow, and skips steps with non-finite
/// gradients. A module, so that its state is saved: scale, and finite steps since its last change.
///
///     backward(scaler.scale(loss));
///     scaler.unscale_(model);               // once per step; clipping may follow
///     scaler.step(optimizer, model);
struct GradScaler {
  Buffer<Tensor<double, 1>> state{Tensor<double, 1>({2}, {65536, 0})};
  double growth = 2, backoff = 0.5;
  index_t growth_interval = 2000;
  bool is_finite = true;  ///< whether the last `unscale_` found only finite gradients, on all ranks
  static constexpr names members{"state", "growth", "backoff", "growth_interval", "is_finite"};

  double factor() const { return state.value(0); }
  template <class X>
  auto scale(const X& loss) const {
    return loss * factor();
  }

  /// Divides all gradients by the scale, and sets `is_finite`.
  /// @collective as `grad_norm`
  template <class M, class... W>
  void unscale_(const M& m, const W&... world) {
    std::vector<Trained> list = trained_parameters(m);
    for (Trained& p : list)
      if (p.has_gradient) detail::scale_gradient("unscale_", p, 1 / factor());
    const auto count = [](const Trained& p) {
      return detail::over_elements("unscale_", p, detail::NotFinite{});
    };
    is_finite = detail::sum_over_gradients("unscale_", list, count, world...) == 0;
  }

  /// Runs the optimizer's step if all gradients are finite, then updates the scale.
  template <class Optimizer, class M>
  void step(Optimizer& optimizer, const M& m) {
    if (is_finite) optimizer.step(m);
    double& steps = state.value(1);
    steps = is_finite ? steps + 1 : 0;
    if (!is_finite) state.value(0) *= backoff;
    else if (index_t(steps) == growth_interval) {
      state.value(0) *= growth;
      steps = 0;
    }
  }
};

}  // namespace cleave::nn
