// The linear layer: rows times a matrix, plus a bias.
#pragma once

#include <array>
#include <cstddef>

#include <cleave/kernels/contract.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/products/matmul.hpp>

namespace cleave::inline v0 {

namespace detail {

/// "abk,nk->abn" for x of three dimensions, and the products of its gradients.
template <int Dims>
struct LinearText {
  static constexpr RuleText letters(char last) { return joined(dim_letters(0, Dims - 1), last); }
  struct Forward {
    static constexpr RuleText text = factors_text(letters('k'), "nk", letters('n'));
  };
  struct OfX {
    static constexpr RuleText text = factors_text(letters('n'), "nk", letters('k'));
  };
  struct OfWeight {
    static constexpr RuleText text = factors_text(letters('n'), letters('k'), "nk");
  };
  template <class Which>
  using Product = ops::Contract<decltype(einsum_of<Which>())>;
};

/// Whether this rank adds the bias: of the ranks that shard a summed dimension of the first
/// operand, only the one with its first index does, and the first one if it has none.
inline bool adds_bias(const cleave::Task& task, int dim) {
  const OperandRef& x = task.in[0];
  if (x.layout == nullptr) return task.in_box->begin[dim] == 0;
  if (x.shape[dim] > 0)  // an empty part before the owner's begins at 0, too
    return task.in_box->begin[dim] == 0 && task.in_box->extent(dim) > 0;
  for (int a = 0; a < x.layout->axes; ++a)
    if ((*x.layout)[a].shards(dim) && x.mesh->coordinate()[a] != 0) return false;
  return true;
}

/// Adds elements that broadcast along the dimensions whose stride is 0.
template <class Device, class T>
void add_repeated(kernels::On<Device> on, const kernels::Strided<T>& y, const T* data,
                  const Shape& strides) {
  map_elements(on, ops::Add{}, y, kernels::Strided<const T>{y.data, y.extents, y.strides},
               kernels::Strided<const T>{data, y.extents, strides});
}

}  // namespace detail

namespace ops {

/// y = x · weight^T + bias. The bias is added once: if features are sharded, by the first rank.
///
///     // y[S0,R]  = linear(x[S0,R],  weight[R,R],  bias[R,R])
///     // y[R,S1]  = linear(x[R,R],   weight[R,S0], bias[R,S0])     sharded outputs
///     // y[R,P]   = linear(x[R,S1],  weight[R,S1], bias[R,R])      sharded features
struct Linear {
  static constexpr const char* name = "linear";
  static constexpr const char* partials =
      "sum,R,sum->sum; R,sum,sum->sum; avg,R,avg->avg; avg,R,R->avg; R,avg,avg->avg; R,avg,R->avg";
  static constexpr bool needs_box = true;

  static constexpr RuleText factors(const std::array<int, 3>& dims) {
    RuleText x = cleave::detail::dim_letters(0, dims[0] - 1), y = x;
    x += 'k', y += 'n';
    return cleave::detail::factors_text(x, "nk,n", y);
  }

  template <class T>
  static void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& x, const kernels::Strided<const T>& weight,
                     const kernels::Strided<const T>& bias) {
    const bool adds = cleave::detail::adds_bias(task, x.extents.dims - 1);
    kernels::Matrix<const T> rows;
    kernels::Matrix<T> results;
    if (adds && bias.strides[0] == 1 && as_rows(x, rows) && as_rows(y, results) &&
        gemm_with_bias(on, rows, transposed(as_matrix(weight)), results, bias.data))
      return;
    contract(on, letters_of(x.extents.dims), y, x, weight);
    if (!adds) return;
    Shape along_rows = Shape::filled(y.extents.dims, 0);
    along_rows[y.extents.dims - 1] = bias.strides[0];
    cleave::detail::add_repeated(on, y, bias.data, along_rows);
  }

  template <class X>
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const X&, const auto& weight,
                                 const auto&) {
    using Text = cleave::detail::LinearText<X::dims>;
    return call_op(typename Text::template Product<typename Text::OfX>{}, g, conj(weight));
  }
  template <class X>
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const X& x, const auto&,
                                 const auto&) {
    using Text = cleave::detail::LinearText<X::dims>;
    return call_op(typename Text::template Product<typename Text::OfWeight>{}, g, conj(x));
  }
  template <class X>
  static constexpr auto gradient(wrt<2>, const auto& g, const auto&, const X&, const auto&,
                                 const auto&) {
    return cleave::detail::summed_over<(1u << (X::dims - 1)) - 1u>(g);
  }

 private:
  static kernels::Contraction letters_of(int dims) {
    kernels::Contraction letters;
    for (int d = 0; d < dims - 1; ++d)
      letters.index[std::size_t(letters.count++)] = {std::int8_t(d), -1, std::int8_t(d)};
    letters.index[std::size_t(letters.count++)] = {-1, 0, std::int8_t(dims - 1)};
    letters.index[std::size_t(letters.count++)] = {std::int8_t(dims - 1), 1, -1};
    return letters;
  }
};

}  // namespace ops

/// A linear layer without bias, from k features to n: y = x · weight^T.
///
/// @param x       [.., k]
/// @param weight  [n, k]
/// @return        [.., n]; Partial<Sum> on the axes that shard k
/// @collective    every rank of the mesh, if an operand has to be redistributed
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto linear(const X& x, const W& weight) {
  static_assert(X::dims > 0 && W::dims == 2, "cleave: linear takes x [.., k] and weight [n, k]");
  using Text = detail::LinearText<X::dims>;
  return call_op<R...>(typename Text::template Product<typename Text::Forward>{}, x, weight);
}

/// A linear layer: y = x · weight^T + bias. The bias is added once, whatever the placements.
///
/// @param bias  [n]
/// @throws Error if there are no features (k = 0) and they are sharded
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
  requires(!detail::asks_exact<R...>)
constexpr auto linear(const X& x, const W& weight, const B& bias) {
  static_assert(X::dims > 0 && W::dims == 2 && B::dims == 1,
                "cleave: linear takes x [.., k], weight [n, k] and bias [n]");
  return call_op<R...>(ops::Linear{}, x, weight, bias);
}
CLEAVE_USAGE(linear, "linear(x, weight), linear(x, weight, bias)")

}  // namespace cleave::inline v0
