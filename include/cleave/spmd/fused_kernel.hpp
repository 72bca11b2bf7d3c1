// Kernels that the compiler generates for the runs of a program that is a constant: the functors of
// all operations of a run, inlined into one loop. @see passes/fuse_elementwise.hpp
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/spmd/fused_loop.hpp>
#include <cleave/spmd/passes/fuse_elementwise.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd::detail {

/// The operations of a run, and its arrays.
template <std::size_t Steps>
struct RunShape {
  std::array<FusedStep, Steps> step{};
  std::array<int, Steps*(std::size_t(max_operands) + 1)> value{};  ///< of each array
  int arrays = 0;
  bool calls_functions = false;  ///< of many elements at a time
};

/// Run R of a constant program, its arrays numbered as by FusedLoops.
template <const auto& Program, int R>
struct ConstantRun {
  static constexpr FusedRun run = fuse_elementwise(Program)[std::size_t(R)];
  static constexpr std::size_t steps = count_of(run);
  static constexpr const Instruction& instruction(std::size_t s) {
    return Program.code[std::size_t(run.begin) + s];
  }

  using Shape = RunShape<steps>;
  static constexpr Shape shape = [] {
    Shape made;
    const auto array_of = [&](int value) {
      for (int k = 0; k < made.arrays; ++k)
        if (made.value[std::size_t(k)] == value) return k;
      made.value[std::size_t(made.arrays)] = value;
      return made.arrays++;
    };
    for (std::size_t s = 0; s < steps; ++s) {
      const Instruction& i = instruction(s);
      FusedStep& step = made.step[s];
      step = {i.op->row, i.attributes.bytes.data(), i.operands, array_of(i.first)};
      for (std::size_t k = 0; k < std::size_t(i.operands); ++k) step.in[k] = array_of(i.operand[k]);
      made.calls_functions = made.calls_functions || i.op->calls_row_function;
    }
    return made;
  }();

  /// Elements that are computed at a time: in registers, or in a first-level cache. The former are
  /// the blocks of map_row.
  static constexpr index_t at_once = shape.calls_functions ? 256 : 32;

  static constexpr bool keeps_one_block(int array) {
    const int value = shape.value[std::size_t(array)];
    return value >= instruction(0).first &&
           Program.values[std::size_t(value)].last_use < run.reductions;
  }
  static constexpr auto is_internal_array = [] {
    std::array<char, std::size_t(shape.arrays)> internal{};
    for (int k = 0; k < shape.arrays; ++k) internal[std::size_t(k)] = char(keeps_one_block(k));
    return internal;
  }();
};

template <class Run>
struct RunKernel {
  /// The memory of one internal array.
  struct alignas(64) Row {
    std::byte bytes[std::size_t(Run::at_once) * 16];
  };

  /// @param n  a multiple of `at_once`
  static void call(const FusedArray* arrays, index_t n) {
    each(arrays, n, std::make_index_sequence<Run::steps>{},
         std::make_integer_sequence<int, Run::shape.arrays>{});
  }

 private:
  template <std::size_t... S, int... K>
  static void each(const FusedArray* arrays, index_t n, std::index_sequence<S...>,
                   std::integer_sequence<int, K...>) {
    std::byte* at[] = {arrays[K].at...};
    const index_t size[] = {arrays[K].size...};
    Row rows[Run::shape.arrays];
    for (index_t i = 0; i < n; i += Run::at_once) {
      (compute<S>(at, rows), ...);
      ((at[K] += size[K] * Run::at_once), ...);
    }
  }

  template <int K>
  static std::byte* address(std::byte* const* at, Row* rows) {
    if constexpr (Run::is_internal_array[std::size_t(K)]) return rows[K].bytes;
    else return at[K];
  }

  template <std::size_t S>
  static void compute(std::byte* const* at, Row* rows) {
    constexpr FusedStep step = Run::shape.step[S];
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const void* const in[] = {address<step.in[I]>(at, rows)...};
      constexpr auto row = step.row;  // a direct call, which is inlined
      row(step.op, address<step.out>(at, rows), Run::at_once, in);
    }(std::make_index_sequence<std::size_t(step.operands)>{});
  }
};

/// The kernels of all runs of a constant program.
template <const auto& Program>
inline constexpr auto kernels_of = [] {
  constexpr std::size_t runs = fuse_elementwise(Program).size();
  return []<int... R>(std::integer_sequence<int, R...>) {
    return std::array<FusedKernel, sizeof...(R)>{FusedKernel{
        ConstantRun<Program, R>::shape.step, ConstantRun<Program, R>::is_internal_array,
        ConstantRun<Program, R>::at_once, &RunKernel<ConstantRun<Program, R>>::call}...};
  }(std::make_integer_sequence<int, int(runs)>{});
}();

}  // namespace cleave::inline v0::spmd::detail
