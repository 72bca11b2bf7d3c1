// The main header: the host side of cleave without gradients (grad.hpp), traced programs (spmd.hpp)
// and neural networks (nn.hpp).
//
// Requires C++20 and threads. Uses MPI, a BLAS and libmvec if the build has them (CLEAVE_HAS_MPI,
// CLEAVE_HAS_CBLAS, CLEAVE_HAS_LIBMVEC).
#pragma once

#include <cleave/version.hpp>

// Local arrays
#include <cleave/tensor/mdspan.hpp>
#include <cleave/tensor/npy.hpp>
#include <cleave/tensor/print.hpp>
#include <cleave/tensor/spans.hpp>
#include <cleave/tensor/tensor.hpp>

// Ranks
#include <cleave/comm/dry.hpp>
#include <cleave/comm/functional.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/mesh/functional_group.hpp>

// Distributed arrays
#include <cleave/dtensor/arange.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/needed_box.hpp>
#include <cleave/dtensor/permutation.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/dtensor/redistribute_all.hpp>
#include <cleave/dtensor/rng_tracker.hpp>
#include <cleave/dtensor/visualize.hpp>
#include <cleave/redistribute/explain.hpp>
#include <cleave/redistribute/explain_needs.hpp>

// What one rank computes
#include <cleave/kernels/host/gather_rows.hpp>

// Operations on them
#include <cleave/ops/apply_op.hpp>
#include <cleave/ops/arg_reduce.hpp>
#include <cleave/ops/cat.hpp>
#include <cleave/ops/cross_entropy.hpp>
#include <cleave/ops/cumsum.hpp>
#include <cleave/ops/diagonal.hpp>
#include <cleave/ops/dot.hpp>
#include <cleave/ops/dropout.hpp>
#include <cleave/ops/exact.hpp>
#include <cleave/ops/flatten.hpp>
#include <cleave/ops/gather.hpp>
#include <cleave/ops/in_place.hpp>
#include <cleave/ops/index_put.hpp>
#include <cleave/ops/like.hpp>
#include <cleave/ops/logsumexp.hpp>
#include <cleave/ops/map.hpp>
#include <cleave/ops/matmul.hpp>
#include <cleave/ops/multinomial.hpp>
#include <cleave/ops/norm.hpp>
#include <cleave/ops/one_hot.hpp>
#include <cleave/ops/pointwise.hpp>
#include <cleave/ops/redistribute.hpp>
#include <cleave/ops/reduce.hpp>
#include <cleave/ops/reduce_partials.hpp>
#include <cleave/ops/slice.hpp>
#include <cleave/ops/softmax.hpp>
#include <cleave/ops/squeeze.hpp>
#include <cleave/ops/topk.hpp>
#include <cleave/ops/transpose.hpp>
#include <cleave/ops/triangle.hpp>
#include <cleave/ops/truth.hpp>
#include <cleave/ops/usage.hpp>
#include <cleave/ops/variance.hpp>
