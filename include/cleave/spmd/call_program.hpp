// Calls programs that are compile-time constants like functions: their output types are known.
//
//     constexpr auto program = frozen([] { return expand(graph, schemas); });
//     const auto [loss, accuracy] = run<program>(mesh, x, w);
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/core/half.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/spmd/fused_kernel.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/remake.hpp>
#include <cleave/spmd/run_program.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

template <const auto& Program, int V>
struct LayoutOfValue {
  static constexpr Layout layout = Program.values[std::size_t(V)].layout;
};

/// The DTensor type of a value of a constant program on a mesh.
template <const auto& Program, class Mesh, int V>
using ValueOf = DTensor<element_t<Program.values[std::size_t(V)].dtype>,
                        Program.values[std::size_t(V)].shape.dims, Mesh,
                        placements_t<LayoutOfValue<Program, V>>>;

/// Shows, in a compile error, which input of a program (counted from 0) has the wrong type.
template <int Input, class Taken, class Given>
struct input_has_another_type {
  static_assert(std::is_same_v<Taken, Given>,
                "cleave: this input of the program has another element type, number of dimensions "
                "or placements than the program takes");
};

template <class Mesh, const auto& Program>
struct ConstantProgram {
  static_assert(!Program.fault,
                "cleave: the program cannot be expanded; see the error at check_expands");
  static_assert(Program.axes == Mesh::axis_count,
                "cleave: the program is for another number of mesh axes");

  template <class... X>
  static constexpr bool check() {
    static_assert(int(sizeof...(X)) == Program.inputs,
                  "cleave: the program takes another number of inputs");
    return []<int... I>(std::integer_sequence<int, I...>) {
      return (sizeof(input_has_another_type<I, ValueOf<Program, Mesh, I>, X>) && ...);
    }(std::make_integer_sequence<int, int(sizeof...(X))>{});
  }

  using Device = typename Mesh::device_type;

  static std::unique_ptr<Runner<Device>> make_runner(const MeshState& mesh) {
    // kernels hold what operations are made of, which may depend on the extents of a run
    constexpr bool is_fixed = !may_be_symbolic<std::remove_cvref_t<decltype(Program)>>;
    if constexpr (std::is_same_v<Device, Host> && is_fixed)
      return std::make_unique<Runner<Device>>(Program, mesh, kernels_of<Program>);
    else return std::make_unique<Runner<Device>>(Program, mesh);
  }

  /// One per mesh.
  std::unique_ptr<Runner<typename Mesh::device_type>> runner{};
};

}  // namespace detail

/// Runs a program that is a constant.
///
/// The first call on a mesh prepares a Runner, which the mesh keeps for later calls.
///
/// @tparam Program  a constant at namespace scope. @see frozen
/// @param x         DTensors with the types that the program takes, which the compiler checks
/// @return          the outputs as a std::tuple of DTensors
/// @collective      every rank of the mesh
/// @throws Error    if an input has other extents or is on another mesh; also any error of
///                  operations and collectives
template <const auto& Program, class Mesh, class... X>
  requires(is_device_mesh<Mesh> && (is_dtensor<X> && ...))
auto run(const Mesh& mesh, const X&... x) {
  using Constant = detail::ConstantProgram<Mesh, Program>;
  static_assert(Constant::template check<X...>());
  auto& runner = mesh.state().template cache<Constant>().runner;
  if (runner == nullptr) runner = Constant::make_runner(mesh.state());
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return runner->template run<detail::ValueOf<Program, Mesh, Program.outputs[K].value>...>(x...);
  }(std::make_index_sequence<Program.outputs.size()>{});
}

/// Runs a program once, with explicit output types. To run a program repeatedly, keep a Runner.
///
///     auto [y, count] = run<Y, Count>(program, mesh, x, w);
///
/// @param x      DTensors; tuples, arrays and vectors of them; modules
/// @collective   every rank of the mesh
/// @throws Error if the program has other inputs or outputs
template <class... Y, AnyProgram P, class Mesh, class... X>
  requires(is_device_mesh<Mesh> && (is_dtensor<Y> && ...))
std::tuple<Y...> run(const P& program, const Mesh& mesh, const X&... x) {
  Runner<typename Mesh::device_type> runner(program, mesh.state());
  return runner.template run<Y...>(x...);
}

}  // namespace cleave::inline v0::spmd
