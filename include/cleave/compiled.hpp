// The definitions that CLEAVE_COMPILED=1 omits from the other headers. A program that does not link
// the library cleave-compiled includes this header in exactly one file.
//
//     // cleave.cpp, compiled with -DCLEAVE_COMPILED=1 like all files
//     #include <cleave/compiled.hpp>
#pragma once

#include <cleave/core/config.hpp>

#if !CLEAVE_COMPILED
#error "compile all files of the program with CLEAVE_COMPILED=1"
#endif

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cleave/async/async_body.hpp>
#include <cleave/cleave.hpp>
#include <cleave/comm/communicator_body.hpp>
#include <cleave/comm/dry_body.hpp>
#include <cleave/comm/machine_body.hpp>
#include <cleave/comm/run_body.hpp>
#include <cleave/comm/thread/thread_communicator.hpp>
#include <cleave/comm/trace_body.hpp>
#include <cleave/core/error_body.hpp>
#include <cleave/core/shape_body.hpp>
#include <cleave/functional/operands_body.hpp>
#include <cleave/kernels/host/exact_row_body.hpp>
#include <cleave/kernels/host/vector_math_body.hpp>
#include <cleave/mesh/device_mesh_body.hpp>
#include <cleave/mesh/mesh_state_body.hpp>
#include <cleave/nn/checkpoint_body.hpp>
#include <cleave/nn/safetensors_body.hpp>
#include <cleave/ops/engine/call_context_body.hpp>
#include <cleave/ops/products/contraction_plan_body.hpp>
#include <cleave/ops/stencil/explain_stencil_body.hpp>
#include <cleave/ops/stencil/field_window_body.hpp>
#include <cleave/ops/stencil/filled_margin_body.hpp>
#include <cleave/ops/stencil/repeat_plan_body.hpp>
#include <cleave/ops/stencil/stencil_plan_body.hpp>
#include <cleave/ops/transforms/fft_wisdom_body.hpp>
#include <cleave/placement/placement_body.hpp>
#include <cleave/redistribute/explain_body.hpp>
#include <cleave/redistribute/explain_needs_body.hpp>
#include <cleave/redistribute/read_boxes_body.hpp>
#include <cleave/redistribute/redistribute_local_body.hpp>
#include <cleave/redistribute/regroup_body.hpp>
#include <cleave/rules/explain_solution_body.hpp>
#include <cleave/tensor/host_cache_body.hpp>
#include <cleave/tensor/npy_body.hpp>
#include <cleave/tensor/print_body.hpp>
#include <cleave/tensor/storage_body.hpp>
#include <cleave/tensor/strided_copy_body.hpp>

#if defined(CLEAVE_HAS_MPI) && !defined(__CUDACC__)
#include <cleave/comm/mpi_body.hpp>
#endif

extern "C" const char cleave_error_link_cleave_compiled_or_include_cleave_compiled_hpp_in_one_file =
    0;

namespace cleave::inline v0 {

template std::string CommEvents::to_string<CommEvent>() const;
template std::string CommEvents::by_module<CommEvent>() const;
template std::string CommEvents::to_json<CommEvent>() const;
template std::shared_ptr<Communicator> dry_communicator<Communicator>(int, int);
template std::vector<std::shared_ptr<Communicator>> thread_communicators<Host>(int);

namespace detail {

template int run_ranks(int, char**, RankFunction);
template Budget dry_budget<Communicator>(int, int, RankFunction);
template void run_on_threads_alone(int, RankFunction);
template void compute<Host>(const CallContext&, const void*, const Shape&, const OperandRef*,
                            const Layout*, RawResult*);
template void run_placed<Host>(const PlacedCall&, const void*, const Shape&, const OperandRef*,
                               RawResult*);
template void run_local_into<Host>(const OpInfo&, const void*, const Shape&, const OperandRef*,
                                   const OperandRef&);
template void run_placed_into<Host>(const PlacedCall&, const void*, const Shape&, const OperandRef*,
                                    const OperandRef&);
template void fill<Host>(const View&, const void*);
template std::vector<std::string> decimal_texts(const std::vector<double>&, int);
template std::vector<index_t> shown_offsets(const Shape&, const Shape&, const PrintOptions&);
template std::string nested_text(const Shape&, const Shape&, const PrintOptions&,
                                 const std::vector<std::string>&);

}  // namespace detail

#define CLEAVE_KERNELS_OF(T)                                                                       \
  template void gemm(On<Host>, const Matrix<const T>&, const Matrix<const T>&, const Matrix<T>&,   \
                     bool);                                                                        \
  template void detail::map_loops(const detail::RowFunction<T, T>&, const detail::MapLoops<2>&,    \
                                  T*, detail::TileLoader<T>&&);                                    \
  template void detail::map_loops(const detail::RowFunction<T, T, T>&, const detail::MapLoops<3>&, \
                                  T*, detail::TileLoader<T>&&, detail::TileLoader<T>&&);           \
  template void reduce_dims<Sum>(On<Host>, const Strided<const T>&, unsigned, const Strided<T>&,   \
                                 const Same&);                                                     \
  template void reduce_dims<Max>(On<Host>, const Strided<const T>&, unsigned, const Strided<T>&,   \
                                 const Same&);                                                     \
  template void reduce_dims<Min>(On<Host>, const Strided<const T>&, unsigned, const Strided<T>&,   \
                                 const Same&);                                                     \
  template void reduce_dims<Sum>(On<Host>, const Strided<const T>&, unsigned, const Strided<T>&,   \
                                 const DividedBy<T>&)

namespace kernels {

CLEAVE_KERNELS_OF(float);
CLEAVE_KERNELS_OF(double);

}  // namespace kernels

#undef CLEAVE_KERNELS_OF

namespace functional::detail {

template void run_operands<Host>(const Channel&, CollectiveKind, ReduceOp,
                                 std::span<const Operand>);

}  // namespace functional::detail

namespace redistribution {

template Block run<Host>(const Plan*, const Layout&, const Layout&, Block, const Context&);
template Plan choose_for<Host>(const Plan*, const Layout&, const Layout&, DType, const Context&);
template Block run_plan<Host>(const Plan&, Block, const Context&);
template void run_all<Host>(std::span<ListEntry>);
template void read_boxes<Host>(const char*, std::span<const BoxRead>, const MeshState&);
template Block cross_redistribute<Host>(const Layout&, const Layout&, Block, const MeshState&,
                                        const MeshState&, Shape&);

}  // namespace redistribution

}  // namespace cleave::inline v0
