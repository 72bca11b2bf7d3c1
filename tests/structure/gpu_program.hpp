// Calls of a program for GPUs, header-only: nvcc warns about templates only where they are used.
#pragma once

#include <type_traits>

#include <cleave/cuda.hpp>
#include <cleave/parallel.hpp>

/// Gradients of a network, calls of a network with a plan, and a redistribution, on host and GPUs.
inline int gpu_program(int argc, char** argv) {
  using namespace cleave;
  using axes::dp;
  using axes::tp;
  static_assert(std::is_same_v<half, cleave::half>);  // not ambiguous: CUDA's is hidden
  return run<Host, Cuda>(argc, argv, [](World& world, auto device) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size(), 1}, device);
    const auto x = distribute_tensor(Tensor<float, 2>({4, 6}), mesh, Shard<0>{}, Replicate{});
    const auto model = requires_grad(nn::place(nn::mlp(6, 6, 2, nn::Tanh{}), mesh));
    const auto plan = on("up"_path, ColwiseParallel{}.input_layouts(Shard<0>{}));
    const auto parallel = parallelize_module(nn::mlp(6, 6, 2, nn::Tanh{}), mesh, tp{}, plan);
    backward(mean(square(model(x))));
    parallel(x);
    return int(x.redistribute(Replicate{}, Shard<1>{}).full_tensor().size());
  });
}
