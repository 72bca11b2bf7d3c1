// A small transformer, the placements of its layers, and its training.
#pragma once

#include <vector>

#include <doctest/doctest.h>

#include <cleave/parallel.hpp>

namespace cleave::testing {

/// The elements of a whole tensor, on every rank.
template <class X>
std::vector<double> whole_elements(const X& x) {
  if constexpr (is_dtensor<X>) {
    return whole_elements(x.full_tensor());
  } else {
    const auto dense = x.clone();
    return {dense.data(), dense.data() + dense.size()};
  }
}

/// The largest difference between numbers of two runs.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= worst)) worst = std::abs(a[i] - b[i]);  // NaN is not close
  return worst;
}

}  // namespace cleave::testing

namespace cleave::testing::gpt {

template <class Tokens = nn::Embedding<>, class Blocks = std::vector<nn::TransformerBlock<>>,
          class Norm = nn::LayerNorm<>, class Head = nn::Linear<>>
struct SmallGpt {
  Tokens tokens;
  Blocks blocks;
  Norm norm;
  Head head;
  static constexpr nn::names members{"tokens", "blocks", "norm", "head"};

  auto operator()(const auto& ids) const {
    auto y = tokens(ids);
    for (const auto& block : blocks) y = block(y);
    return head(norm(y));
  }
};

inline constexpr index_t vocabulary = 11, width = 8, context = 6, batch = 4;
inline constexpr int steps = 20;

inline auto small_gpt(int layers) {
  using Block = decltype(nn::transformer_block<double>(width, 4));
  using Head = decltype(nn::linear<double>(width, vocabulary));
  return SmallGpt<nn::Embedding<nn::Lazy<double, 2>>, std::vector<Block>,
                  decltype(nn::layer_norm<double>(width)), Head>{
      nn::embedding<double>(vocabulary, width),
      std::vector<Block>(std::size_t(layers), nn::transformer_block<double>(width, 4)),
      nn::layer_norm<double>(width), nn::linear<double>(width, vocabulary)};
}

/// Shards heads, hidden layers and vocabulary over an axis.
inline auto tensor_parallel(const auto& m, const auto& mesh, auto axis) {
  return parallelize_module(m, mesh, axis,                                           //
                            on("tokens"_path, RowwiseParallel{}),                    //
                            on("blocks.*.attention.query"_path, ColwiseParallel{}),  //
                            on("blocks.*.attention.key"_path, ColwiseParallel{}),    //
                            on("blocks.*.attention.value"_path, ColwiseParallel{}),  //
                            on("blocks.*.attention.out"_path, RowwiseParallel{}),    //
                            on("blocks.*.mlp.up"_path, ColwiseParallel{}),           //
                            on("blocks.*.mlp.down"_path, RowwiseParallel{}),         //
                            on("head"_path, ColwiseParallel{}));
}

/// Like tensor_parallel, with the sequence sharded in between.
inline auto sequence_parallel(const auto& m, const auto& mesh, auto axis) {
  const auto to_sequence = RowwiseParallel{}.output_layouts(Shard<1>{});
  return parallelize_module(m, mesh, axis,                                                   //
                            on("tokens"_path, to_sequence),                                  //
                            on("blocks.*.*_norm"_path, SequenceParallel{}),                  //
                            on("blocks.*.attention"_path, PrepareModuleInput(Replicate{})),  //
                            on("blocks.*.attention.query"_path, ColwiseParallel{}),          //
                            on("blocks.*.attention.key"_path, ColwiseParallel{}),            //
                            on("blocks.*.attention.value"_path, ColwiseParallel{}),          //
                            on("blocks.*.attention.out"_path, to_sequence),                  //
                            on("blocks.*.mlp.up"_path, ColwiseParallel{}),                   //
                            on("blocks.*.mlp.down"_path, to_sequence),                       //
                            on("norm"_path, SequenceParallel{}),                             //
                            on("head"_path, ColwiseParallel{}));
}

/// The mean loss of predicting the next token; classes stay sharded.
inline auto loss_of(const auto& m, const auto& ids, const auto& next) {
  return cross_entropy(flatten(m(ids), dim<0, 1>{}), flatten(next, dim<0, 1>{}));
}

/// The tokens of a batch; with `ahead` = 1, the tokens that follow them.
inline Tensor<index_t, 2> some_tokens(int ahead) {
  Tensor<index_t, 2> ids({batch, context});
  for (index_t i = 0; i < ids.size(); ++i)
    ids.data()[i] = ((i + ahead) * (i + ahead) + i / 5) % vocabulary;
  return ids;
}

/// The results of a training run.
struct Run {
  std::vector<double> losses;
  std::vector<double> gradients;   ///< of all parameters, in order, in the last step
  std::vector<double> parameters;  ///< at the end
};

inline Run train(const auto& placed, const auto& ids, const auto& next) {
  const auto m = requires_grad(placed);
  auto optimizer = nn::adamw(m, {.learning_rate = 0.01, .weight_decay = 0.01});
  Run run;
  const auto append = [](std::vector<double>& to, const auto& x) {
    const auto values = whole_elements(x);
    to.insert(to.end(), values.begin(), values.end());
  };
  for (int step = 0; step < steps; ++step) {
    zero_grad(m);
    const auto loss = loss_of(m, ids, next);
    backward(loss);
    append(run.losses, loss.value());
    optimizer.step(m);
  }
  nn::parameters(m, [&](const auto& p) {
    append(run.gradients, grad(p));
    append(run.parameters, p.value());
  });
  return run;
}

inline void check_close(const Run& found, const Run& expected) {
  CHECK(largest_difference(found.losses, expected.losses) < 1e-10);
  CHECK(largest_difference(found.gradients, expected.gradients) < 1e-8);
  CHECK(largest_difference(found.parameters, expected.parameters) < 1e-8);
}

}  // namespace cleave::testing::gpt
