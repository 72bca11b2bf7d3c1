// A training step of a two-layer network as written by hand for one rank: the library's matrix
// products, loops for everything between them, memory allocated once.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <cleave/kernels/host/gemm.hpp>

namespace cleave::bench {

/// Linear from `inputs` to `hidden`, ReLU, linear to `outputs` classes; mean cross entropy over
/// `rows` rows; Adam.
struct HandwrittenMlp {
  index_t rows, inputs, hidden, outputs;
  float rate = 1e-3f;

  std::vector<float> parameters = zeros(hidden * inputs + hidden + outputs * hidden + outputs);
  std::vector<float> gradients = parameters, mean = parameters, square = parameters;
  std::vector<float> between = zeros(rows * hidden), of_between = between;
  std::vector<float> result = zeros(rows * outputs), of_result = result;
  int steps = 0;

  static std::vector<float> zeros(index_t n) { return std::vector<float>(std::size_t(n)); }

  float* up() { return parameters.data(); }
  float* up_bias() { return up() + hidden * inputs; }
  float* down() { return up_bias() + hidden; }
  float* down_bias() { return down() + outputs * hidden; }
  float* gradient(const float* parameter) { return gradients.data() + (parameter - up()); }

  /// @return the loss before the step
  float step(const float* x, const index_t* classes) {
    product(x, inputs, 1, up(), 1, inputs, between.data(), rows, inputs, hidden);
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < hidden; ++j) {
        float& h = between[std::size_t(i * hidden + j)];
        h = h + up_bias()[j] > 0 ? h + up_bias()[j] : 0;
      }
    product(between.data(), hidden, 1, down(), 1, hidden, result.data(), rows, hidden, outputs);
    const float loss = loss_and_gradient(classes);
    product(of_result.data(), 1, outputs, between.data(), hidden, 1, gradient(down()), outputs,
            rows, hidden);
    sum_rows(of_result.data(), outputs, gradient(down_bias()));
    product(of_result.data(), outputs, 1, down(), hidden, 1, of_between.data(), rows, outputs,
            hidden);
    for (std::size_t i = 0; i < between.size(); ++i)
      of_between[i] = between[i] > 0 ? of_between[i] : 0;
    product(of_between.data(), 1, hidden, x, inputs, 1, gradient(up()), hidden, rows, inputs);
    sum_rows(of_between.data(), hidden, gradient(up_bias()));
    adam();
    return loss;
  }

 private:
  /// c[m, n] = a[m, k] b[k, n]; a and b have the given row and column strides.
  static void product(const float* a, index_t a_row, index_t a_column, const float* b,
                      index_t b_row, index_t b_column, float* c, index_t m, index_t k, index_t n) {
    kernels::gemm(kernels::On<Host>{}, kernels::Matrix<const float>{a, m, k, a_row, a_column},
                  kernels::Matrix<const float>{b, k, n, b_row, b_column},
                  kernels::Matrix<float>{c, m, n, n, 1});
  }

  float loss_and_gradient(const index_t* classes) {
    float loss = 0;
    for (index_t i = 0; i < rows; ++i) {
      float* const y = result.data() + i * outputs;
      float* const g = of_result.data() + i * outputs;
      float largest = y[0] + down_bias()[0], total = 0;
      for (index_t j = 0; j < outputs; ++j) {
        y[j] += down_bias()[j];
        largest = y[j] > largest ? y[j] : largest;
      }
      for (index_t j = 0; j < outputs; ++j) total += g[j] = std::exp(y[j] - largest);
      for (index_t j = 0; j < outputs; ++j) g[j] /= total * float(rows);
      loss += std::log(total) - (y[classes[i]] - largest);
      g[classes[i]] -= 1 / float(rows);
    }
    return loss / float(rows);
  }

  void sum_rows(const float* x, index_t columns, float* sum) const {
    for (index_t j = 0; j < columns; ++j) sum[j] = 0;
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) sum[j] += x[i * columns + j];
  }

  void adam() {
    ++steps;
    const float first = 1 - std::pow(0.9f, float(steps));
    const float second = std::sqrt(1 - std::pow(0.999f, float(steps)));
    float* __restrict p = parameters.data(), * __restrict m = mean.data(), * __restrict v = square.data();
    const float* __restrict g = gradients.data();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      m[i] = 0.9f * m[i] + 0.1f * g[i];
      v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
      p[i] -= rate / first * m[i] / (std::sqrt(v[i]) / second + 1e-8f);
    }
  }
};

}  // namespace cleave::bench
