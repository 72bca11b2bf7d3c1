// One pass of an optimizer over the elements of a parameter, its gradient and its optimizer state,
// without temporary arrays: only a non-contiguous gradient is copied, on the host a few rows at a
// time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
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

/// The same on a GPU, as one range: kernels run one after the other.
template <class Real, class Device, class F>
void over_dense_gradient(Device, const View& gradient, const F& f) {
  if (cleave::detail::is_dry()) return;
  const index_t reals = gradient.bytes() / index_t(sizeof(Real));
  if (gradient.contiguous()) return f(index_t(0), reals, static_cast<const Real*>(gradient.data));
  const std::shared_ptr<void> dense = allocate_bytes(Device{}, std::size_t(gradient.bytes()));
  strided_copy(Device{}, gradient, View::dense(dense.get(), gradient.dtype, gradient.extents));
  f(index_t(0), reals, static_cast<const Real*>(dense.get()));
}

/// Applies an optimizer's rule to all elements of this rank, and records the change of the
/// parameter.
///
/// @param rule   `rule.step<Real>()` returns a functor that takes references to an element of the
///               parameter, to that of its gradient (const), and to those of the states
/// @param state  of the extents of the parameter, contiguous
template <class Device, class Rule, class... State>
void update(const char* operation, const Trained<Device>& parameter, const Rule& rule,
            const State&... state) {
  if (!parameter.value.contiguous())
    throw Error(operation, "a parameter is strided; trained parameters must be contiguous",
                {.shapes = to_string(parameter.value.extents)});
  parameter.record_change();
  if (parameter.value.size() == 0) return;
  with_real_type(operation, parameter.value.dtype, [&]<class Real>(Real*) {
    const auto step = rule.template step<Real>();
    over_dense_gradient<Real>(
        Device{}, parameter.gradient, [&](index_t begin, index_t end, const Real* gradient) {
          update_elements(kernels::On<Device>{}, operation, step, end - begin,
                          static_cast<Real*>(parameter.value.data) + begin, gradient,
                          (static_cast<Real*>(state.data) + begin)...);
        });
  });
}

inline void require_equal_counts(const char* operation, std::size_t model, std::size_t state) {
  if (model != state)
    throw Error(operation, "the module has " + std::to_string(model) +
                               " trained parameters, the optimizer was made for " +
                               std::to_string(state));
}

}  // namespace cleave::inline v0::nn::detail
