// The forward of a transformer block over processes as written by hand, for float: BLAS matrix
// products, the library's row functions, loops, two MPI_Allreduce, and memory allocated once. Each
// process has columns of the first layer of each part, and rows of the last.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <cblas.h>

#include <cleave/comm/mpi/header.hpp>
#include <cleave/kernels/host/vector_math.hpp>

namespace cleave::bench {

/// Parameters of a linear layer, y = x W^T + b, or of a norm, with `outputs` elements each.
struct HandwrittenLayer {
  const float *weight, *bias;
  int inputs, outputs;  ///< on this process
};

struct HandwrittenBlock {
  int batch, sequence, width, heads, hidden;  ///< heads, hidden: the part of this process
  int head_width;
  bool is_first;  ///< the first process adds the biases of summed results
  HandwrittenLayer attention_norm, query, key, value, out, mlp_norm, up, down;

  int rows = batch * sequence, attended_width = heads * head_width;
  std::vector<float> norm = floats(width), part = norm, middle = norm, result = norm;
  std::vector<float> q = floats(attended_width), k = q, v = q, attended = q;
  std::vector<float> between = floats(hidden);
  std::vector<float> scores = std::vector<float>(std::size_t(sequence) * std::size_t(sequence));

  /// @return [batch * sequence, width]
  const float* forward(const float* x) {
    normalize(x, attention_norm);
    product(norm.data(), query, q.data(), true);
    product(norm.data(), key, k.data(), true);
    product(norm.data(), value, v.data(), true);
    for (int b = 0; b < batch; ++b)
      for (int h = 0; h < heads; ++h) attend(b, h);
    product(attended.data(), out, part.data(), is_first);
    add_sum(x, middle);
    normalize(middle.data(), mlp_norm);
    product(norm.data(), up, between.data(), true);
    apply<kernels::RowFunctionId::gelu>(between.data(), between.size());
    product(between.data(), down, part.data(), is_first);
    add_sum(middle.data(), result);
    return result.data();
  }

 private:
  std::vector<float> floats(int columns) const {
    return std::vector<float>(std::size_t(batch * sequence) * std::size_t(columns));
  }

  /// y = x W^T + b
  void product(const float* x, const HandwrittenLayer& layer, float* y, bool adds_bias) const {
    const int n = layer.outputs;
    for (int i = 0; adds_bias && i < rows; ++i) std::copy_n(layer.bias, n, y + i * n);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, n, layer.inputs, 1.0f, x,
                layer.inputs, layer.weight, layer.inputs, adds_bias ? 1.0f : 0.0f, y, n);
  }

  /// to = x + the sum of the parts of all processes
  void add_sum(const float* x, std::vector<float>& to) {
    MPI_Allreduce(MPI_IN_PLACE, part.data(), int(part.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = x[i] + part[i];
  }

  void normalize(const float* x, const HandwrittenLayer& with) {
    for (int i = 0; i < rows; ++i) {
      const float* const row = x + i * width;
      float* const y = norm.data() + i * width;
      float mean = 0, variance = 0;
      for (int j = 0; j < width; ++j) mean += row[j];
      mean /= float(width);
      for (int j = 0; j < width; ++j) variance += (row[j] - mean) * (row[j] - mean);
      const float scale = 1 / std::sqrt(variance / float(width) + 1e-5f);
      for (int j = 0; j < width; ++j)
        y[j] = (row[j] - mean) * scale * with.weight[j] + with.bias[j];
    }
  }

  /// One head of one sequence with a causal mask.
  void attend(int b, int h) {
    const std::size_t at = std::size_t(b * sequence * attended_width + h * head_width);
    const int s = sequence, d = head_width, row = attended_width;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, s, s, d, 1 / std::sqrt(float(d)), &q[at],
                row, &k[at], row, 0.0f, scores.data(), s);
    for (int i = 0; i < s; ++i) {
      float* const p = &scores[std::size_t(i * s)];
      const float largest = *std::max_element(p, p + i + 1);
      for (int j = 0; j <= i; ++j) p[j] -= largest;
      apply<kernels::RowFunctionId::exp>(p, std::size_t(i) + 1);
      float total = 0;
      for (int j = 0; j <= i; ++j) total += p[j];
      for (int j = 0; j <= i; ++j) p[j] /= total;
      std::fill(p + i + 1, p + s, 0.0f);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, s, d, s, 1.0f, scores.data(), s, &v[at],
                row, 0.0f, &attended[at], row);
  }

  template <kernels::RowFunctionId F, class T>
  static void apply(T* x, std::size_t n) {
    if constexpr (kernels::has_row_functions<T>) {
      apply_to_row(F, x, x, index_t(n));
    } else {
      for (std::size_t i = 0; i < n; ++i)
        x[i] = F == kernels::RowFunctionId::exp ? std::exp(x[i])
                                                : x[i] * (1 + std::erf(x[i] * T(M_SQRT1_2))) / 2;
    }
  }
};

}  // namespace cleave::bench
