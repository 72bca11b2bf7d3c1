// The launches of operations on whole rows: one each, forward and backward, in every element type.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/grad/backward.hpp>
#include <cleave/grad/local.hpp>
#include <cleave/kernels/cuda/class_losses_cuda.hpp>
#include <cleave/kernels/cuda/map_elements_cuda.hpp>
#include <cleave/kernels/cuda/one_hot_rows_cuda.hpp>
#include <cleave/kernels/cuda/reduce_dims_cuda.hpp>
#include <cleave/kernels/cuda/reduce_views_cuda.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/cuda/whole_rows_cuda.hpp>
#include <cleave/ops/losses/class_losses.hpp>
#include <cleave/ops/normalisation/layer_norm.hpp>
#include <cleave/tensor/cuda/transfer.hpp>

#include "cuda_calls.hpp"

using namespace cleave;
using cleave::testing::launches_of;

namespace row_launches_test {

template <class T, int Rank>
Tensor<T, Rank, Cuda> numbers_on_gpu(std::array<index_t, std::size_t(Rank)> extents, index_t seed) {
  const Tensor<T, Rank> x(extents);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = T(float((i * 7 + seed) % 19) / 4 - 2);
  return x.to(Cuda{});
}

/// The largest difference to `expected`, relative to 1 + |expected|.
template <class X>
double distance(const X& x, const std::vector<double>& expected) {
  const auto host = x.to(Host{});
  double most = host.size() == index_t(expected.size()) ? 0 : 1e9;
  for (index_t i = 0; i < host.size() && most < 1e9; ++i) {
    const double e = expected[std::size_t(i)];
    most = std::max(most, std::abs(double(host.data()[i]) - e) / (1 + std::abs(e)));
  }
  return most;
}

template <class T>
inline constexpr double tolerance = sizeof(T) == 8   ? 1e-13
                                    : sizeof(T) == 4 ? 1e-5
                                                     : 2e-2;

}  // namespace row_launches_test

using namespace row_launches_test;

TEST_CASE_TEMPLATE("operations on whole rows launch one kernel each", T, double, bfloat16) {
  constexpr index_t rows = 3, n = 40;
  const auto x = numbers_on_gpu<T, 2>({rows, n}, 1), g = numbers_on_gpu<T, 2>({rows, n}, 5);
  const auto w = numbers_on_gpu<T, 1>({n}, 2), b = numbers_on_gpu<T, 1>({n}, 3);
  const Tensor<int, 1> own({rows});
  for (index_t r = 0; r < rows; ++r) own(r) = int(7 * r);
  const auto classes = own.to(Cuda{});
  const auto losses = numbers_on_gpu<T, 1>({rows}, 4);

  CHECK(launches_of([&] { softmax(x, dim<1>{}); }) == 1);
  CHECK(launches_of([&] { softmax(x, dim<0>{}); }) == 1);
  CHECK(launches_of([&] { log_softmax(x.transpose(0, 1), dim<1>{}); }) == 1);
  CHECK(launches_of([&] { layer_norm(x, w, b); }) == 1);
  CHECK(launches_of([&] { layer_norm(x); }) == 1);
  CHECK(launches_of([&] { rms_norm(x, w); }) == 1);
  CHECK(launches_of([&] { cross_entropy<Reduction::none>(x, classes); }) == 1);
  CHECK(launches_of([&] { cross_entropy(x, classes); }) == 2);  // the second is the mean of rows

  CHECK(launches_of([&] { call_op(ops::SoftmaxSlope<1, false>{}, g, x); }) == 1);
  CHECK(launches_of([&] { call_op(ops::SoftmaxSlope<0, true>{}, g, x); }) == 1);
  CHECK(launches_of([&] { call_op(ops::RowNormSlope<true>{{}, 1e-5}, g, x, w); }) == 1);
  CHECK(launches_of([&] { call_op(ops::RowNormSlope<false>{{}, 1e-5}, g, x); }) == 1);
  CHECK(launches_of([&] { call_op(ops::ClassSlopes{}, losses, x, classes); }) == 1);
}

TEST_CASE_TEMPLATE("gradients of operations on whole rows reach their operands", T, double,
                   bfloat16) {
  constexpr index_t rows = 3, n = 11;
  const auto x = numbers_on_gpu<T, 2>({rows, n}, 1);
  const auto w = numbers_on_gpu<T, 1>({n}, 2);
  const Tensor<T, 2> values = x.to(Host{});
  const Tensor<int, 1> own({rows});
  for (index_t r = 0; r < rows; ++r) own(r) = int(3 * r);

  // of the mean of -log(softmax(x)[class])
  const auto leaf = requires_grad(x);
  backward(cross_entropy(leaf, own.to(Cuda{})));
  std::vector<double> expected;
  for (index_t r = 0; r < rows; ++r) {
    double total = 0;
    for (index_t i = 0; i < n; ++i) total += std::exp(double(values(r, i)));
    for (index_t i = 0; i < n; ++i)
      expected.push_back((std::exp(double(values(r, i))) / total - (i == own(r))) / double(rows));
  }
  CHECK(distance(grad(leaf), expected) < tolerance<T>);

  // of sum(x · rms_norm(x, w)) in w: the sum over rows of x² / rms
  const auto factors = requires_grad(w);
  backward(sum(mul(rms_norm(x, factors, {.epsilon = 0.5}), x)));
  std::vector<double> sums(std::size_t{n}, 0.0);
  for (index_t r = 0; r < rows; ++r) {
    double square = 0;
    for (index_t i = 0; i < n; ++i) square += double(values(r, i)) * double(values(r, i)) / n;
    for (index_t i = 0; i < n; ++i)
      sums[std::size_t(i)] += double(values(r, i)) * double(values(r, i)) / std::sqrt(square + 0.5);
  }
  CHECK(distance(grad(factors), sums) < tolerance<T>);
}

TEST_CASE("second derivatives of operations on whole rows are those of their formulas") {
  // u = sum(v · d/dx sum(g · softmax(x))); du/dx by central differences of the first gradient.
  constexpr index_t n = 5;
  const Tensor<double, 2> x({1, n}), g({1, n}), v({1, n});
  for (index_t i = 0; i < n; ++i)
    x(0, i) = 0.3 * double(i * i % 4), g(0, i) = double(i) - 1.5, v(0, i) = 1 + 0.5 * double(i % 3);
  const auto check = [&](const auto& f, const auto& weight) {
    const auto outer = requires_grad(x.to(Cuda{}));
    const auto inner = requires_grad(outer);
    backward(sum(mul(f(inner), weight)));
    backward(sum(mul(grad(inner), v.to(Cuda{}))));
    std::vector<double> expected;
    for (index_t k = 0; k < n; ++k) {
      double slope = 0;
      for (const double h : {-1e-5, 1e-5}) {
        const Tensor<double, 2> moved = x.clone();
        moved(0, k) += h;
        const auto leaf = requires_grad(moved.to(Cuda{}));
        backward(sum(mul(f(leaf), weight)));
        const auto first = grad(leaf).to(Host{});
        for (index_t i = 0; i < n; ++i) slope += v(0, i) * first(0, i) / (2 * h);
      }
      expected.push_back(slope);
    }
    CHECK(distance(grad(outer), expected) < 1e-8);
  };
  check([](const auto& a) { return softmax(a, dim<1>{}); }, g.to(Cuda{}));
  check([](const auto& a) { return log_softmax(a, dim<1>{}); }, g.to(Cuda{}));
  check([](const auto& a) { return layer_norm(a); }, g.to(Cuda{}));
  const Tensor<int, 1> own({1});
  own(0) = 2;
  const Tensor<double, 1> one({1});
  one(0) = 1.5;
  check([&](const auto& a) { return cross_entropy<Reduction::none>(a, own.to(Cuda{})); },
        one.to(Cuda{}));
}
