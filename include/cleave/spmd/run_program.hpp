// Runs programs on DTensors.
//
//     Runner runner(expand(graph, schemas), mesh);
//     const auto [y, count] = runner.run<Y, Count>(x, w);
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/spmd/erased_tensor.hpp>
#include <cleave/spmd/extents_cache.hpp>
#include <cleave/spmd/interpreter.hpp>
#include <cleave/spmd/leaves.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/value_slot.hpp>

namespace cleave::inline v0::spmd {

/// A program prepared to run repeatedly on a mesh: plans are chosen and slots for values allocated
/// once, and so is a block of memory for the values that are not outputs. A run allocates the
/// elements of outputs, of factories, and what redistributions receive.
///
/// If extents of the program contain symbols, all of this is done for each set of extents when they
/// are first run, after tracing and expanding for them.
///
/// Not thread-safe. Uses the communicators of the mesh.
template <class Device>
class Runner {
 public:
  /// @param of     the program, which is copied
  /// @param on     the mesh to run on; a MeshState must outlive the Runner
  /// @param kernels  of a constant program. @see detail::kernels_of
  /// @throws Error if the program has a fault, or was expanded for another number of axes or device
  /// @collective   none
  template <AnyProgram P>
  Runner(const P& of, const MeshState& on, std::span<const detail::FusedKernel> kernels = {})
      : programs_(of, on, kernels) {}
  template <AnyProgram P, class... Axes>
  Runner(const P& of, const DeviceMesh<Device, Axes...>& on) : Runner(of, on.state()) {
    owner_ = std::make_shared<const DeviceMesh<Device, Axes...>>(on);
  }
  Runner(const Runner&) = delete;  // operands point into the slots

  const MeshState& mesh() const noexcept { return programs_.mesh(); }
  /// The most bytes at a time of this rank's values other than inputs, the block that the Runner
  /// keeps included; kernels and redistributions may use more meanwhile. With symbols: in the
  /// latest run.
  index_t peak_bytes() const noexcept { return programs_.peak_bytes(); }
  /// The number of runs of elementwise operations that kernels of a constant program compute.
  int compiled_runs() const { return programs_.compiled_runs(); }
  int inputs() const noexcept { return int(programs_.inputs()); }
  int outputs() const noexcept { return int(programs_.outputs()); }

  /// Runs the program.
  ///
  /// @collective   every rank of the mesh
  /// @throws Error if an input's type, shape, placements or mesh is not that of the program; also
  ///               any error of operations and collectives
  std::vector<ErasedTensor> operator()(std::span<const ErasedTensor> inputs) {
    std::vector<OperandRef> operands;
    for (const ErasedTensor& x : inputs) operands.push_back(detail::operand_of(x, mesh()));
    detail::Interpreter<Device>& program = programs_.select(operands);
    return program.run_then(operands, [&] {
      std::vector<ErasedTensor> results;
      for (std::size_t k = 0; k < program.outputs(); ++k)
        results.push_back(erased_output(program, k));
      return results;
    });
  }

  /// The same with DTensors of given types.
  ///
  ///     auto [y, count] = runner.run<Y, Count>(x, w);
  ///
  /// @tparam Y     the types of the outputs: DTensors
  /// @param x      DTensors; tuples, arrays and vectors of them; modules
  /// @return       a tuple of the outputs, in order
  /// @throws Error also if the program has other outputs
  template <class... Y, class... X>
    requires(is_dtensor<Y> && ...)
  std::tuple<Y...> run(const X&... x) {
    if constexpr ((is_dtensor<X> && ...)) {
      const std::array<OperandRef, sizeof...(X)> operands{cleave::detail::operand_of(x)...};
      return run_on_mesh_of<Y...>(operands, x...);
    } else {
      std::vector<OperandRef> operands;
      operands.reserve(std::size_t(inputs()));
      const auto append = [&](const auto& leaf) {
        using V = cleave::detail::innermost_t<std::remove_cvref_t<decltype(leaf)>>;
        if constexpr (is_on_all_ranks<V>) {
          operands.push_back(detail::operand_of(leaf));
        } else {
          static_assert(is_dtensor<V>,
                        "cleave: programs take DTensors, vectors, arrays and tuples of them, and "
                        "modules of them; place tensors first");
          operands.push_back(cleave::detail::operand_of(cleave::detail::innermost(leaf)));
        }
      };
      (each_leaf(x, append), ...);
      return run_on_mesh_of<Y...>(operands, x...);
    }
  }

 private:
  static ErasedTensor erased_output(const detail::Interpreter<Device>& program, std::size_t k) {
    const redistribution::Block block = detail::output_of<Device>(program.output_slot(k).operand);
    const PlacedValue& value = program.output(k);
    return {block.storage, block.view, value.shape, value.layout};
  }

  template <class Mesh, class... Y>
  static constexpr bool are_on_one_mesh() {
    static_assert((std::is_same_v<typename Y::mesh_type, Mesh> && ...),
                  "cleave: the inputs and outputs of a program must be on one mesh");
    static_assert(std::is_same_v<typename Mesh::device_type, Device>,
                  "cleave: the inputs of a program must be on the device of its runner");
    return true;
  }

  template <class... Y, class... X>
  std::tuple<Y...> run_on_mesh_of(std::span<const OperandRef> operands, const X&... x) {
    if constexpr (sizeof...(Y) == 0) {
      return run_typed<>(static_cast<const MeshState*>(nullptr), operands, std::index_sequence<>{});
    } else {
      using Mesh = typename std::tuple_element_t<0, std::tuple<Y...>>::mesh_type;
      static_assert(are_on_one_mesh<Mesh, Y...>());
      const Mesh* const mesh = detail::mesh_in<Mesh>(x...);
      if (mesh == nullptr) throw_no_inputs();
      return run_typed<Y...>(mesh, operands, std::index_sequence_for<Y...>{});
    }
  }

  [[noreturn]] void throw_no_inputs() const {
    throw Error("spmd::run", "the program takes " + std::to_string(inputs()) + " inputs, not 0",
                {.mesh = mesh().describe(), .rank = mesh().world_rank()});
  }

  template <class... Y, class Mesh, std::size_t... K>
  std::tuple<Y...> run_typed(const Mesh* mesh, std::span<const OperandRef> inputs,
                             std::index_sequence<K...>) {
    if (programs_.outputs() != sizeof...(Y))
      throw Error("spmd::run", "the program has " + std::to_string(outputs()) + " outputs, not " +
                                   std::to_string(sizeof...(Y)));
    detail::Interpreter<Device>& program = programs_.select(inputs);
    (require_output<Y>(program, K), ...);
    return program.run_then(
        inputs, [&] { return std::tuple<Y...>{dtensor<Y>(program.output_slot(K), *mesh)...}; });
  }

  template <class Y>
  static void require_output(const detail::Interpreter<Device>& program, std::size_t k) {
    const PlacedValue& value = program.output(k);
    detail::require_type<Y>("output " + std::to_string(k), value.dtype, value.shape, value.layout,
                            program.mesh());
  }

  template <class Y, class Mesh>
  static Y dtensor(const detail::ValueSlot& slot, const Mesh& mesh) {
    redistribution::Block block = detail::output_of<Device>(slot.operand);
    return detail::dtensor_of<Y>(std::move(block.storage), block.view, mesh, slot.shape);
  }

  detail::ExtentsCache<Device> programs_;  ///< one, or one per set of extents
  std::shared_ptr<const void> owner_{};    ///< keeps a DeviceMesh alive; null for a MeshState
};

template <AnyProgram P, class Device, class... Axes>
Runner(const P&, const DeviceMesh<Device, Axes...>&) -> Runner<Device>;

}  // namespace cleave::inline v0::spmd
