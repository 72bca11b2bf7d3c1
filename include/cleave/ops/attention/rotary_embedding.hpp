// Rotary position embedding: rotates the vectors of a sequence by angles proportional to their
// position, so that the product of two vectors depends on their distance. RoFormer, Su et al. 2021
// (arXiv:2104.09864), equation 34.
//
//     // y[S0,S1,R] = rotary_embedding(x[S0,S1,R])    positions are global: no communication
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/kernels/host/map_indexed.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0 {

namespace kernels {

/// base^(-i / pairs), for pair number i.
struct PairFrequency {
  double base;
  index_t pairs;

  CLEAVE_HOST_DEVICE double operator()(index_t i) const {
    return std::pow(base, -double(i) / double(pairs));
  }
};

/// The cosine or sine of position · frequency, for the row-major index of (position, pair).
template <class A>
struct PairTurn {
  index_t pairs;
  double sign;  ///< of sines; 0 selects cosines

  CLEAVE_HOST_DEVICE A operator()(index_t at, const double& frequency) const {
    const double angle = double(at / pairs) * frequency;
    return A(sign == 0 ? std::cos(angle) : sign * std::sin(angle));
  }
};

/// One of the two numbers of a rotated pair.
template <bool Second>
struct RotatedNumber {
  template <class T, class A>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b, const A& cosine, const A& sine) const {
    return T(Second ? A(a) * sine + A(b) * cosine : A(a) * cosine - A(b) * sine);
  }
};

/// Rotates numbers 2i and 2i + 1 of each row, as a vector in the plane, by the angle of (row, i).
///
/// @param x, y            [.., rows, 2 pairs]
/// @param cosines, sines  [.., rows, pairs], with stride 0 except in the last two dimensions
template <class Device, class T, class A>
void rotate_pairs(On<Device> on, const Strided<T>& y, const Strided<const T>& x,
                  const Strided<const A>& cosines, const Strided<const A>& sines) {
  const int last = x.extents.dims - 1;
  const auto numbers = [last](auto of, index_t which) {
    of.data += which * of.strides[last];
    of.extents[last] /= 2;
    of.strides[last] *= 2;
    return of;
  };
  const Strided<const T> first = numbers(x, 0), second = numbers(x, 1);
  map_elements(on, RotatedNumber<false>{}, numbers(y, 0), first, second, cosines, sines);
  map_elements(on, RotatedNumber<true>{}, numbers(y, 1), first, second, cosines, sines);
}

/// The same on the host, in one pass.
template <class T, class A>
void rotate_pairs(On<Host>, const Strided<T>& y, const Strided<const T>& x,
                  const Strided<const A>& cosines, const Strided<const A>& sines) {
  if (x.extents.product() == 0) return;
  const int last = x.extents.dims - 1;
  const index_t pairs = x.extents[last] / 2, step = x.strides[last], to_step = y.strides[last];
  Shape at = Shape::filled(last, 0);
  do {
    const auto row = [&](const auto& of) {
      auto* data = of.data;
      for (int d = 0; d < last; ++d) data += at[d] * of.strides[d];
      return data;
    };
    const T* const from = row(x);
    T* const to = row(y);
    const A *const cosine = row(cosines), *const sine = row(sines);
    for (index_t i = 0; i < pairs; ++i) {
      const T &a = from[2 * i * step], &b = from[(2 * i + 1) * step];
      to[2 * i * to_step] = RotatedNumber<false>{}(a, b, cosine[i], sine[i]);
      to[(2 * i + 1) * to_step] = RotatedNumber<true>{}(a, b, cosine[i], sine[i]);
    }
  } while (next_index(x.extents, at));
}

}  // namespace kernels

namespace ops {

/// Linear in x; the gradient is rotated in the opposite direction.
struct RotaryEmbedding {
  double base = 10000;
  double direction = 1;  ///< or -1

  static constexpr const char* name = "rotary_embedding";
  static constexpr const char* partials = "sum->sum; avg->avg";
  static constexpr bool needs_box = true;
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return cleave::detail::dim_letters(dims[0] - 1, dims[0]);
  }

  template <class Device, class T>
  void kernel(const kernels::On<Device>& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    using A = accumulator_t<T>;
    const int last = x.extents.dims - 1;
    const index_t rows = x.extents[last - 1], pairs = x.extents[last] / 2;
    if (x.extents.product() == 0) return;
    const std::size_t bytes =
        std::size_t(pairs) * (sizeof(double) + 2 * std::size_t(rows) * sizeof(A));
    const auto storage = allocate_bytes(Device{}, bytes);
    double* const frequencies = static_cast<double*>(storage.get());
    A* const cosines = reinterpret_cast<A*>(frequencies + pairs);
    fill_frequencies(on, frequencies, pairs);
    const index_t first = task.box->begin[last - 1];
    fill_turns(on, cosines, frequencies, first, rows, pairs, 0);
    fill_turns(on, cosines + rows * pairs, frequencies, first, rows, pairs, direction);
    kernels::Strided<const A> of_cosines{cosines, x.extents, Shape::filled(x.extents.dims, 0)};
    of_cosines.extents[last] = pairs;
    of_cosines.strides[last - 1] = pairs;
    of_cosines.strides[last] = 1;
    kernels::Strided<const A> of_sines = of_cosines;
    of_sines.data += rows * pairs;
    rotate_pairs(on, y, x, of_cosines, of_sines);
  }

  constexpr auto gradient(wrt<0>, const auto& g, const auto&...) const {
    return call_op(RotaryEmbedding{base, -direction}, g);
  }

 private:
  void fill_frequencies(const auto& on, double* frequencies, index_t pairs) const {
    const Shape shape = Shape::filled(1, pairs);
    map_indexed(on, kernels::PairFrequency{base, pairs}, Box::of(shape), shape,
                kernels::Strided<double>{frequencies, shape, Shape::filled(1, 1)});
  }
  template <class A>
  static void fill_turns(const auto& on, A* turns, const double* frequencies, index_t first,
                         index_t rows, index_t pairs, double sign) {
    const Shape part(std::array<index_t, 2>{rows, pairs});
    const Shape shape(std::array<index_t, 2>{first + rows, pairs});
    Box box = Box::of(shape);
    box.begin[0] = first;
    map_indexed(
        on, kernels::PairTurn<A>{pairs, sign}, box, shape,
        kernels::Strided<A>{turns, part, row_major_strides(part)},
        kernels::Strided<const double>{frequencies, part, Shape(std::array<index_t, 2>{0, 1})});
  }
};

}  // namespace ops

/// Rotary position embedding: rotates numbers 2i and 2i + 1 of the vector at position p, as a
/// vector in the plane, by the angle p / base^(2i / d).
///
/// Positions are the global indices of the second to last dimension, which may be sharded. The
/// product of two rotated vectors depends on their positions only through the difference.
///
/// @param x  [.., n, d], d even
/// @return   [.., n, d]
/// @collective every rank of the mesh, if the last dimension is sharded
/// @throws Error if d is odd
template <class... R, AnyTensor X>
constexpr auto rotary_embedding(const X& x, double base = 10000) {
  static_assert(X::dims >= 2, "cleave: rotary_embedding takes x [.., n, d]");
  static_assert(std::is_floating_point_v<accumulator_t<typename X::value_type>>,
                "cleave: rotary_embedding requires real elements; cast integers first");
  if (const index_t last = shape_of(x)[X::dims - 1]; detail::knows_extents(x) && last % 2 != 0)
    throw Error("rotary_embedding",
                "the extent of the last dimension must be even, not " + std::to_string(last),
                detail::context_of(x));
  return call_op<R...>(ops::RotaryEmbedding{base}, x);
}
CLEAVE_USAGE(rotary_embedding, "rotary_embedding(x), rotary_embedding(x, base)")

}  // namespace cleave::inline v0
