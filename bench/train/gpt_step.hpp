// A complete training step of the GPT of examples/train_gpt: forward, backward, the norm of all
// gradients, and the optimizer.
#pragma once

#include <cleave/nn.hpp>
#include <cleave/parallel/replicate.hpp>

#include "../../examples/train_gpt/model.hpp"

namespace cleave::bench {

/// The default sizes of examples/train_gpt.
struct GptSizes {
  index_t characters = 80, batch = 16, context = 64, width = 64, heads = 4, layers = 2;
};

/// Calls use(step) with a function that makes a training step of a small GPT and returns the loss.
///
/// @param wrap  wrap(model, mesh) is the model over the ranks of dp
template <class Wrap, class Use>
void with_gpt(World& world, const GptSizes& sizes, const Wrap& wrap, const Use& use) {
  using axes::dp;
  using axes::tp;
  const auto mesh = init_device_mesh<dp, tp>(world, {world.size(), 1});
  manual_seed(world, 1);
  const auto placed = gpt::placed_model(sizes.characters, sizes.context, sizes.width, sizes.heads,
                                        sizes.layers, mesh);
  const auto model = requires_grad(wrap(placed, mesh));
  auto optimizer = nn::adamw(model, {.weight_decay = 0.01});
  const auto ids = [&](index_t shift) {
    const auto x = empty<index_t>({sizes.batch, sizes.context}, mesh, Shard<0>{}, Replicate{});
    const index_t first = x.local_box().begin[0] * sizes.context;
    for (index_t i = 0; i < x.to_local().size(); ++i)
      x.to_local().data()[i] = (first + i + shift) * 7919 % sizes.characters;
    return x;
  };
  const auto x = ids(0), next = ids(1);
  const auto where = empty<index_t>({sizes.context}, mesh, Replicate{}, Replicate{});
  for (index_t i = 0; i < sizes.context; ++i) where.to_local()(i) = i;
  use([&] {
    const auto y = model(x, where);
    const auto loss = cross_entropy(flatten(y, dim<0, 1>{}), flatten(next, dim<0, 1>{}));
    zero_grad(model);
    backward(loss);
    nn::clip_grad_norm_(model, 1.0);
    optimizer.step(model);
    return double(loss.value().item());
  });
}

}  // namespace cleave::bench
