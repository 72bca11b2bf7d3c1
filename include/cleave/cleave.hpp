// The main header: the host side of cleave without gradients (grad.hpp), traced programs (spmd.hpp)
// and neural networks (nn.hpp).
//
// Requires C++20 and threads. Uses MPI, a BLAS and libmvec if the build has them (CLEAVE_HAS_MPI,
// CLEAVE_HAS_CBLAS, CLEAVE_HAS_LIBMVEC).
#pragma once

#include <cleave/core/build_info.hpp>
#include <cleave/version.hpp>

// Local arrays
#include <cleave/tensor/mdspan.hpp>
#include <cleave/tensor/npy.hpp>
#include <cleave/tensor/print.hpp>
#include <cleave/tensor/spans.hpp>
#include <cleave/tensor/tensor.hpp>

// Ranks
#include <cleave/comm/dry.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/functional.hpp>
#include <cleave/functional/mesh_group.hpp>
#include <cleave/mesh/device_mesh.hpp>

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
#include <cleave/placement/with_placement.hpp>
#include <cleave/redistribute/explain.hpp>
#include <cleave/redistribute/explain_needs.hpp>

// What one rank computes
#include <cleave/kernels/host/gather_rows.hpp>

// Operations on them
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/elementwise/quantize.hpp>
#include <cleave/ops/engine/apply_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/indices/gather_scatter.hpp>
#include <cleave/ops/indices/index_put.hpp>
#include <cleave/ops/indices/one_hot.hpp>
#include <cleave/ops/indices/topk.hpp>
#include <cleave/ops/linear_algebra/cholesky.hpp>
#include <cleave/ops/linear_algebra/determinants.hpp>
#include <cleave/ops/linear_algebra/eigenvalues.hpp>
#include <cleave/ops/linear_algebra/least_squares.hpp>
#include <cleave/ops/linear_algebra/lu.hpp>
#include <cleave/ops/linear_algebra/newton_schulz.hpp>
#include <cleave/ops/linear_algebra/qr.hpp>
#include <cleave/ops/linear_algebra/singular_values.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>
#include <cleave/ops/losses/cross_entropy.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/random/dropout.hpp>
#include <cleave/ops/random/multinomial.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/redistribution/reduce_partials.hpp>
#include <cleave/ops/reductions/any_all.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/cumsum.hpp>
#include <cleave/ops/reductions/diff.hpp>
#include <cleave/ops/reductions/dot.hpp>
#include <cleave/ops/reductions/exact_reductions.hpp>
#include <cleave/ops/reductions/logsumexp.hpp>
#include <cleave/ops/reductions/norm.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/reductions/variance.hpp>
#include <cleave/ops/shapes/cat.hpp>
#include <cleave/ops/shapes/diagonal.hpp>
#include <cleave/ops/shapes/pad.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/roll.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/shapes/triangle.hpp>
#include <cleave/ops/shapes/zeros_like.hpp>
#include <cleave/ops/stencil/apply.hpp>
#include <cleave/ops/stencil/exchange_halo_async.hpp>
#include <cleave/ops/stencil/explain_stencil.hpp>
#include <cleave/ops/transforms/cosine_sine.hpp>
#include <cleave/ops/transforms/fft_wisdom.hpp>
#include <cleave/ops/transforms/fourier.hpp>
#include <cleave/ops/transforms/spectral.hpp>
