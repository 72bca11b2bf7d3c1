// One pass of an optimizer over the elements of a parameter, its gradient and its optimizer state,
// without temporary arrays: only a non-contiguous gradient is copied, on the host a few rows at a
// time. On GPUs a launch updates many parameters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/kernels/host/update_elements.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/nn/trained.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::nn::detail {

/// Calls f with a null pointer to the real type of the elements: a complex number is two reals.
template <class F>
void with_real_type(const char* operation, DType type, const F& f) {
  switch (type) {
    case DType::float64:
    case DType::complex128: return f(static_cast<double*>(nullptr));
    case DType::float32:
    case DType::complex64: return f(static_cast<float*>(nullptr));
    case DType::float16: return f(static_cast<half*>(nullptr));
    case DType::bfloat16: return f(static_cast<bfloat16*>(nullptr));
    default:
      throw Error(operation,
                  std::string("parameters of type ") + name_of(type) + " cannot be trained");
  }
}

/// Calls f(begin, end, elements) for consecutive ranges of the gradient, counted in reals.
template <class Real, class F>
void over_dense_gradient(Host, const View& gradient, const F& f) {
  if (cleave::detail::is_dry()) return;
  const index_t size = gradient.size();
  const index_t reals = index_t(size_of(gradient.dtype) / sizeof(Real));
  if (gradient.contiguous())
    return f(index_t(0), size * reals, static_cast<const Real*>(gradient.data));
  constexpr index_t most = 8192;  // fits in a cache with the rows of parameter and state
  const index_t rows = gradient.extents[0], row = size / rows;
  const index_t at_once = std::max<index_t>(1, most / row);
  std::vector<Real> dense(std::size_t(std::min(at_once, rows) * row * reals));
  for (index_t begin = 0; begin < rows; begin += at_once) {
    const index_t end = std::min(rows, begin + at_once);
    Box box = Box::of(gradient.extents);
    box.begin[0] = begin;
    box.end[0] = end;
    const View part = gradient[box];
    pack_view(part, dense.data());
    f(begin * row * reals, end * row * reals, dense.data());
  }
}

/// A row-major copy, in the order of the current stream.
template <class Device>
std::shared_ptr<void> dense_copy(Device, const View& x) {
  std::shared_ptr<void> dense = allocate_bytes(Device{}, std::size_t(x.bytes()));
  strided_copy(Device{}, x, View::dense(dense.get(), x.dtype, x.extents));
  return dense;
}

/// The same on a GPU, as one range: kernels run one after the other.
template <class Real, class Device, class F>
void over_dense_gradient(Device, const View& gradient, const F& f) {
  if (cleave::detail::is_dry()) return;
  const index_t reals = gradient.bytes() / index_t(sizeof(Real));
  if (gradient.contiguous()) return f(index_t(0), reals, static_cast<const Real*>(gradient.data));
  const std::shared_ptr<void> dense = dense_copy(Device{}, gradient);
  f(index_t(0), reals, static_cast<const Real*>(dense.get()));
}

/// Updates of parameters: made at once on the host; those of equal steps share launches on GPUs.
/// @tparam Step   takes references to an element of a parameter, to that of its gradient (const),
///                and to those of the states
/// @tparam State  Real, for each state
template <class Device, class Step, class Real, class... State>
class Updates {
 public:
  explicit Updates(const char* operation) : operation_(operation) {}

  /// @param parameter,state  contiguous, of equal extents
  template <class... Views>
  void add(const Step& step, const View& parameter, const View& gradient, const Views&... state) {
    if (cleave::detail::is_dry() || parameter.size() == 0) return;
    auto* const elements = static_cast<Real*>(parameter.data);
    if constexpr (std::is_same_v<Device, Host>) {
      over_dense_gradient<Real>(
          Host{}, gradient, [&](index_t begin, index_t end, const Real* slopes) {
            update_elements(kernels::On<Host>{}, operation_, step, end - begin, elements + begin,
                            slopes, (static_cast<State*>(state.data) + begin)...);
          });
    } else {
      if (step_ != step) finish();
      step_ = step;
      const void* slopes = gradient.data;
      if (!gradient.contiguous()) {
        slopes = copies_.emplace_back(dense_copy(Device{}, gradient)).get();
        copied_ += gradient.bytes();
      }
      groups_.emplace_back(parameter.bytes() / index_t(sizeof(Real)), elements,
                           static_cast<const Real*>(slopes), static_cast<State*>(state.data)...);
      if (copied_ >= most_copied) finish();
    }
  }

  /// Enqueues the updates that have been added.
  void finish() {
    if constexpr (!std::is_same_v<Device, Host>)
      if (!groups_.empty()) update_groups(kernels::On<Device>{}, operation_, *step_, groups_);
    groups_.clear();
    copies_.clear();
    copied_ = 0;
  }

 private:
  /// Bytes of copies that wait for a launch; to copy more takes longer than a launch.
  static constexpr index_t most_copied = index_t{1} << 22;

  const char* operation_;
  std::optional<Step> step_;
  std::vector<std::tuple<index_t, Real*, const Real*, State*...>> groups_;
  std::vector<std::shared_ptr<void>> copies_;  ///< of gradients
  index_t copied_ = 0;
};

inline void require_equal_counts(const char* operation, std::size_t model, std::size_t state) {
  if (model != state)
    throw Error(operation, "the module has " + std::to_string(model) +
                               " trained parameters, the optimizer was made for " +
                               std::to_string(state));
}

/// T, for each type of a pack.
template <class T, class>
using ForEach = T;

/// Applies an optimizer's rules to this rank's elements of the parameters that have a gradient, and
/// records the changes.
///
/// @param rule_of  i -> the rule for parameter i; `rule.step<Real>()` is a step of `Updates`
/// @param states   of the extents of the parameters, contiguous
/// @throws Error, before a parameter changes, if the numbers of parameters and states differ, or a
///         parameter is strided or cannot be trained
template <class Device, class RuleOf, class... States>
void update_all(const char* operation, const std::vector<Trained<Device>>& list,
                const RuleOf& rule_of, const States&... states) {
  (require_equal_counts(operation, list.size(), states.size()), ...);
  const auto visit = [&](const auto& f) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].has_gradient)
        with_real_type(operation, list[i].value.dtype, [&](auto* real) { f(i, real); });
  };
  visit([&](std::size_t i, auto*) {
    if (!list[i].value.contiguous())
      throw Error(operation, "a parameter is strided; trained parameters must be contiguous",
                  {.shapes = to_string(list[i].value.extents)});
  });
  const auto update = [&]<class Real>(Real*) {
    using Step = decltype(rule_of(0).template step<Real>());
    Updates<Device, Step, Real, ForEach<Real, States>...> updates(operation);
    visit([&]<class Found>(std::size_t i, Found*) {
      if constexpr (std::is_same_v<Found, Real>) {
        list[i].record_change();
        updates.add(rule_of(i).template step<Real>(), list[i].value, list[i].gradient,
                    states[i]...);
      }
    });
    updates.finish();
  };
  update(static_cast<double*>(nullptr));
  update(static_cast<float*>(nullptr));
  update(static_cast<half*>(nullptr));
  update(static_cast<bfloat16*>(nullptr));
}

}  // namespace cleave::inline v0::nn::detail
