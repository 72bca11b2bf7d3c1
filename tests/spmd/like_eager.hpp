// Compares programs with eager calls: a function is traced, expanded for the placements of DTensors
// and run, and also called on these DTensors. The outputs must agree in type, extents and every
// bit.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/run_program.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "device.hpp"
#include "ranks.hpp"

namespace cleave::testing {

using namespace cleave::axes;

/// A number without a short binary representation, so that the order of sums affects its bits.
template <class T>
T irregular(std::uint64_t seed) {
  seed = (seed + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  seed = (seed ^ (seed >> 29)) * 0x94d049bb133111ebull;
  const double value = double(seed >> 12) / double(1ull << 52) - 0.4;
  if constexpr (is_complex<T>) return T(typename T::value_type(value), typename T::value_type(0.1));
  else if constexpr (std::is_integral_v<T>) return T(seed % 5);
  else return T(value);
}

/// A DTensor of irregular numbers; where it is Partial, ranks have different addends.
///
/// @param which  distinguishes the operands
template <class T, class P, class Mesh, std::size_t Rank>
auto irregular(const Mesh& mesh, const std::array<index_t, Rank>& shape, std::uint64_t which) {
  using X = DTensor<T, int(Rank), Mesh, normalized_t<P, int(Rank)>>;
  const Shape extents = local_shape(X::layout, Shape(shape), mesh.extents(), mesh.coordinate());
  const Tensor<T, int(Rank)> local(to_array<int(Rank)>(extents));
  const Box box = owned_box(X::layout, Shape(shape), mesh.extents(), mesh.coordinate());
  const Shape strides = row_major_strides(Shape(shape));
  std::uint64_t addend = which;
  for (int a = 0; a < X::layout.axes; ++a)
    addend =
        addend * 31 + (X::layout[a].is_partial() ? std::uint64_t(mesh.coordinate()[a]) + 1 : 0);
  for (index_t i = 0; i < local.size(); ++i) {
    index_t rest = i, global = 0;
    for (int d = int(Rank) - 1; d >= 0; --d) {
      global += (box.begin[d] + rest % extents[d]) * strides[d];
      rest /= extents[d];
    }
    local.data()[i] = irregular<T>(addend * 1000003 + std::uint64_t(global));
  }
  return X::unchecked(local.to(TestDevice{}), mesh, shape);
}

template <class X>
std::tuple<X> as_tuple(const X& x) {
  return {x};
}
template <class... X>
std::tuple<X...> as_tuple(const std::tuple<X...>& x) {
  return x;
}

/// The argument of a trace that stands for a DTensor.
template <class T, int Rank, class Mesh, class P>
auto arg_for(const DTensor<T, Rank, Mesh, P>& x) {
  return spmd::Arg<T, Rank, typename Mesh::device_type>{"x", x.shape()};
}

/// Whether this rank's elements are the same, bit by bit.
template <class T, int Rank>
bool same_bits(const Tensor<T, Rank, TestDevice>& a, const Tensor<T, Rank, TestDevice>& b) {
  if (a.shape() != b.shape()) return false;
  const auto left = a.clone().to(Host{}), right = b.clone().to(Host{});
  return a.empty() ||
         std::memcmp(left.data(), right.data(), std::size_t(a.size()) * sizeof(T)) == 0;
}

/// Calls f with a mesh of one axis.
template <class F>
void on_line(World& world, const F& f) {
  f(init_device_mesh<dp>(world, {world.size()}, TestDevice{}));
}

/// Calls f on x, and runs the program of f on x twice.
template <class F, class First, class... X>
void check_like_eager(const F& f, const First& first, const X&... x) {
  const spmd::Graph graph = spmd::trace(f, arg_for(first), arg_for(x)...);
  const spmd::Program program =
      spmd::expand(graph, spmd::schemas_of(first, x...), {.mesh = first.mesh().extents()});
  INFO(to_string(program, first.mesh()));
  REQUIRE(!program.fault);
  std::apply(
      [&]<class... Y>(const Y&... eager) {
        spmd::Runner runner(program, first.mesh());
        const int expected = communications(program, first.mesh().extents(),
                                            cost_model(*first.mesh().state().world()));
        for (int repeat = 0; repeat < 2; ++repeat) {
          const CommTrace trace(first.mesh().communicator());
          const auto outputs = runner.template run<Y...>(first, x...);
          CHECK(trace.count() == expected);
          const auto check = [](const auto& output, const auto& expected_output) {
            CHECK(same_bits(output.to_local(), expected_output.to_local()));
            CHECK(output.shape() == expected_output.shape());
          };
          std::apply([&](const Y&... output) { (check(output, eager), ...); }, outputs);
        }
      },
      std::apply([](const auto&... y) { return std::tuple{resolve(y)...}; },
                 as_tuple(f(first, x...))));
}

/// The layers that tests trace. The code does not mention placements.
struct TwoLayers {
  constexpr auto operator()(const auto& x, const auto& w1, const auto& b1, const auto& w2) const {
    const auto hidden = relu(add(matmul(x, w1), b1));
    return resolve(matmul(hidden, w2));
  }
};

}  // namespace cleave::testing
