// Runs of elementwise operations of constant programs, which the compiler fuses into kernels.
#include <array>
#include <complex>
#include <tuple>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/elementwise/where.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/spmd/call_program.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// Arithmetic, a row that repeats, casts, a view, and a value that is needed outside of the run.
struct KernelArithmetic {
  constexpr auto operator()(const auto& x, const auto& y, const auto& row) const {
    const auto a = add(mul(x, 2.0f), row);
    const auto d = cast<float>(mul(cast<double>(a), cast<double>(sub(y, a))));
    return std::tuple(a, add(where(less(d, y), d, a), mul(x, 0.25f)), mul(transpose(a), 3.0f));
  }
};
/// Functions that are computed for many elements at a time, and a reduction.
struct KernelFunctions {
  constexpr auto operator()(const auto& x, const auto& y, const auto& row) const {
    const auto a = exp(mul(sub(x, row), 0.5f));
    const auto b = mul(tanh(add(a, y)), sub(1.0f, a));
    return std::tuple(a, sum(b, dim<1>{}));
  }
};

template <class F, int Rows, int Cols>
constexpr auto kernel_graph = spmd::frozen([] {
  return spmd::trace(F{}, spmd::arg<float>("x", {Rows, Cols}), spmd::arg<float>("y", {Rows, Cols}),
                     spmd::arg<float>("row", {Cols}));
});
template <class P, class Row>
constexpr std::array kernel_schemas{spmd::schema(P{}), spmd::schema(P{}), spmd::schema(Row{})};
template <class F, int Rows, int Cols, class P, class Row>
constexpr auto kernel_program =
    spmd::frozen([] { return spmd::expand(kernel_graph<F, Rows, Cols>, kernel_schemas<P, Row>); });

template <class F, int Rows, int Cols, class P, class Row, class Mesh>
void check_kernel(const Mesh& mesh, int compiled) {
  const std::array<index_t, 2> shape{Rows, Cols};
  const auto x = irregular<float, Placements<P>>(mesh, shape, 1);
  const auto y = irregular<float, Placements<P>>(mesh, shape, 2);
  const auto row = irregular<float, Placements<Row>>(mesh, std::array<index_t, 1>{Cols}, 3);
  static constexpr const auto& program = kernel_program<F, Rows, Cols, P, Row>;
  const auto outputs = spmd::run<program>(mesh, x, y, row);
  const auto expected = F{}(x, y, row);
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    CHECK((same_bits(std::get<K>(outputs).to_local(), resolve(std::get<K>(expected)).to_local()) &&
           ...));
  }(std::make_index_sequence<std::tuple_size_v<decltype(outputs)>>{});
  const spmd::Runner<Host> runner(program, mesh.state(), spmd::detail::kernels_of<program>);
  CHECK(runner.compiled_runs() == compiled);
}

}  // namespace

TEST_CASE("kernels of constant programs have the bits of calls: arithmetic") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    check_kernel<KernelArithmetic, 33, 21, Shard<0>, Replicate>(mesh, 1);
    check_kernel<KernelArithmetic, 3, 1500, Shard<1>, Shard<0>>(mesh, 1);
    check_kernel<KernelArithmetic, 2, 3, Shard<0>, Replicate>(mesh, 1);
  });
}

TEST_CASE("kernels of constant programs have the bits of calls: exp and tanh") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    check_kernel<KernelFunctions, 30, 71, Shard<0>, Replicate>(mesh, 1);
    check_kernel<KernelFunctions, 1, 5, Shard<0>, Replicate>(mesh, 1);
  });
}

TEST_CASE("a kernel does not compute the run of another program") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {1});
    static constexpr const auto& program =
        kernel_program<KernelArithmetic, 33, 21, Shard<0>, Replicate>;
    static constexpr const auto& other =
        kernel_program<KernelFunctions, 30, 71, Shard<0>, Replicate>;
    const spmd::Runner<Host> runner(program, mesh.state(), spmd::detail::kernels_of<other>);
    CHECK(runner.compiled_runs() == 0);
  });
}
