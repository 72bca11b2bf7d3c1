// Ranks that communicate by NCCL: threads, each with its own GPU, on the stand-ins.
#pragma once

#include <initializer_list>
#include <string>

#include <cleave/cuda.hpp>

#include "cuda_stand_in/stand_in.hpp"
#include "nccl_stand_in/stand_in.hpp"
#include "ranks.hpp"
#include "setting.hpp"

namespace cleave::testing {

/// Runs `body(World&)` on worlds of the given sizes, with one GPU per rank.
inline void over_nccl(std::initializer_list<int> counts, const RankBody& body) {
  const Setting path("CLEAVE_CUDA_COMM", "nccl");
  for (const int ranks : counts) {
    nccl_stand_in::reset();
    cuda_stand_in::set_devices(ranks);
    on_ranks({ranks}, [&](World& world) {
      cuda::set_device(world.rank());
      body(world);
    });
  }
}

/// A matrix with the elements 0, 1, 2, ... in row-major order.
inline Tensor<float, 2> counting(index_t rows, index_t cols) {
  Tensor<float, 2> t({rows, cols});
  for (index_t i = 0; i < t.size(); ++i) t.data()[i] = float(i);
  return t;
}

}  // namespace cleave::testing
