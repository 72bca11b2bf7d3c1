// The norm of all gradients and clipping by it, whatever the placements and meshes of the
// parameters, and loss scaling for 16-bit types.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/functional/reduce_gather.hpp>
#include <cleave/kernels/host/update_elements.hpp>
#include <cleave/nn/update.hpp>

namespace cleave::inline v0::nn {

namespace detail {

/// A sum over the ranks of a group. @collective every rank of the group
inline double sum_over(double value, Communicator& group) {
  const Tensor<double, 0> local(std::array<index_t, 0>{}, {value});
  return functional::all_reduce(local, Sum{}, functional::Group(group)).wait().item();
}

/// For each parameter the sum of f(element) over this rank's gradient; 0 if there is none, or if
/// another rank counts the same elements. On a GPU the host waits once for all of them.
/// @param counts  whether this rank counts a parameter
template <class F, class Device, class Counts>
std::vector<double> sums_of_gradients(const char* operation,
                                      const std::vector<Trained<Device>>& list, const F& f,
                                      const Counts& counts) {
  std::vector<double> values(list.size(), 0.0);
  if (list.empty() || cleave::detail::is_dry()) return values;
  const Tensor<double, 1, Device> sums({index_t(list.size())});
  sums.fill_(0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Trained<Device>& p = list[i];
    if (!p.has_gradient || !counts(p) || p.gradient.size() == 0) continue;
    with_real_type(operation, p.gradient.dtype, [&]<class Real>(Real*) {
      over_dense_gradient<Real>(
          Device{}, p.gradient, [&](index_t begin, index_t end, const Real* g) {
            add_elements(kernels::On<Device>{}, operation, f, end - begin, g, sums.data() + i);
          });
    });
  }
  const Tensor<double, 1> all = sums.to(Host{});
  std::copy_n(all.data(), list.size(), values.data());
  return values;
}

/// The sum of f(element) over the gradients of all parameters and ranks; replicas count once, on
/// the first one. One small all-reduce per distinct mesh.
template <class F, class Device>
double sum_over_gradients(const char* operation, const std::vector<Trained<Device>>& list,
                          const F& f) {
  const auto counts = [](const Trained<Device>& p) { return p.is_first_replica(); };
  std::vector<std::pair<const MeshState*, double>> sums;
  for (const Trained<Device>& p : list) {
    if (p.mesh != nullptr && !p.mesh->is_member())
      throw Error(operation,
                  "a parameter is on a mesh that does not contain this rank; pass the World "
                  "whose ranks hold the parameters");
  }
  const std::vector<double> values = sums_of_gradients(operation, list, f, counts);
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::size_t k = 0;
    while (k < sums.size() && sums[k].first != list[i].mesh) ++k;
    if (k == sums.size()) sums.emplace_back(list[i].mesh, 0.0);
    sums[k].second += values[i];
  }
  double total = 0;
  for (const auto& [mesh, sum] : sums)
    total += mesh == nullptr ? sum : sum_over(sum, mesh->group().host());
  return total;
}
/// The same for parameters on any ranks of a world: one all-reduce over the world. A Tensor counts
/// on the world's first rank.
template <class F, class Device>
double sum_over_gradients(const char* operation, const std::vector<Trained<Device>>& list,
                          const F& f, const World& world) {
  const auto counts = [&](const Trained<Device>& p) {
    return p.mesh == nullptr ? world.rank() == 0 : p.is_first_replica();
  };
  double sum = 0;
  for (const double value : sums_of_gradients(operation, list, f, counts)) sum += value;
  return sum_over(sum, world.communicator());
}

template <class T>
struct ScaleStep {
  using A = accumulator_t<T>;
  A by;

  CLEAVE_HOST_DEVICE void operator()(T& g) const { g = T(A(g) * by); }
};

/// Multiplies the elements of all gradients in place. A launch on a GPU scales many gradients.
template <class Device>
void scale_gradients(const char* operation, std::vector<Trained<Device>>& list, double by) {
  std::tuple<std::vector<std::tuple<index_t, double*>>, std::vector<std::tuple<index_t, float*>>,
             std::vector<std::tuple<index_t, half*>>, std::vector<std::tuple<index_t, bfloat16*>>>
      groups;
  for (Trained<Device>& p : list) {
    if (!p.has_gradient) continue;
    p.own_gradient();
    if (cleave::detail::is_dry()) continue;
    with_real_type(operation, p.gradient.dtype, [&]<class Real>(Real*) {
      std::get<std::vector<std::tuple<index_t, Real*>>>(groups).emplace_back(
          p.gradient.bytes() / index_t(sizeof(Real)), static_cast<Real*>(p.gradient.data));
    });
  }
  const auto scale = [&]<class Real>(const std::vector<std::tuple<index_t, Real*>>& of_type) {
    update_groups(kernels::On<Device>{}, operation, ScaleStep<Real>{accumulator_t<Real>(by)},
                  of_type);
  };
  std::apply([&](const auto&... of_type) { (scale(of_type), ...); }, groups);
}

struct Square {
  template <class T>
  CLEAVE_HOST_DEVICE double operator()(const T& g) const {
    const double x = double(accumulator_t<T>(g));
    return x * x;
  }
};

struct NotFinite {
  template <class T>
  CLEAVE_HOST_DEVICE double operator()(const T& g) const {
    return std::isfinite(double(accumulator_t<T>(g))) ? 0 : 1;
  }
};

/// Multiplies all gradients by max_norm / norm if this is less than 1. @return the norm
template <class M>
double clip_to(const M& m, double max_norm, double norm) {
  const double by = max_norm / (norm + 1e-6);
  if (by >= 1) return norm;
  auto list = trained_parameters(m);
  scale_gradients("clip_grad_norm_", list, by);
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
  return std::sqrt(
      detail::sum_over_gradients("grad_norm", trained_parameters(m), detail::Square{}, world...));
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
    auto list = trained_parameters(m);
    detail::scale_gradients("unscale_", list, 1 / factor());
    is_finite = detail::sum_over_gradients("unscale_", list, detail::NotFinite{}, world...) == 0;
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

}  // namespace cleave::inline v0::nn
