// The code compiled per operation, element types, numbers of dimensions and device: the call of its
// kernel, and the OpInfo through which type-erased code uses the operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/random_state.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/placement/dim_map.hpp>
#include <cleave/placement/regrouping.hpp>
#include <cleave/rules/extents.hpp>

namespace cleave::inline v0::detail {

struct RawResult;

/// A stencil in a program. All operands have the placements of the first; the call exchanges what
/// it reads of other ranks, and makes its results.
struct StencilInfo {
  /// The number of operands of which elements of other ranks are read.
  /// @param shapes  of the operands
  int (*exchanges)(const void* op, const Shape* shapes, const Shape& result, const Layout& layout,
                   const Shape& mesh) = nullptr;
  /// @collective every rank of the mesh
  void (*run)(const void* op, const OperandRef* in, const Layout& layout,
              RawResult* results) = nullptr;
};

/// An operation for given element types, numbers of dimensions and a device, type-erased.
struct OpInfo {
  const char* name = "";
  const Rule* rule = nullptr;
  const ExtentsTable* table = nullptr;
  bool broadcasts = false;
  bool is_elementwise = false;
  bool is_view = false;
  bool needs_box = false;
  bool draws = false;  ///< whether the kernel draws random numbers. @see ops/engine/take_draw.hpp
  bool same_dims = false;  ///< whether all tensors have as many dimensions as the first result
  std::array<DType, max_results> dtype{};  ///< of the results
  void (*run)(const void* op, const cleave::Task& task) = nullptr;
  /// An elementwise operation on n contiguous elements of host memory; a number is one element. The
  /// result may be one of the operands.
  void (*row)(const void* op, void* out, index_t n, const void* const* in) = nullptr;
  bool calls_row_function = false;  ///< whether that calls a function of many elements at a time
  /// Which indices of an operand the results read; null: its own. @see operation.hpp
  DimMap (*read_map)(const void* op, int operand, int d, const OperandRef* in) = nullptr;
  /// Whether the operand is extended beyond its edges, and what fills the extended one; null: not.
  bool (*extends_operand)(const void* op) = nullptr;
  void (*fill_beyond)(const ArrayRef& x) = nullptr;
  int scans = -1;  ///< the dimension of the result whose indices depend on all before; -1: none
  bool (*scans_reversed)(const void* op) = nullptr;
  void (*add_totals)(const void* op, const ArrayRef& y, const ArrayRef& totals) = nullptr;
  /// Which dimensions become others with the same elements, if the operation does only this.
  Regrouping regrouping{};
  /// Of a reduction: the dimensions of the operand. A result does not depend on which others are
  /// computed with it.
  unsigned reduces = 0;
  /// The operand in whose memory a result may be computed; -1: none, unless it is elementwise.
  std::array<std::int8_t, std::size_t(max_results)> replaces = [] {
    std::array<std::int8_t, std::size_t(max_results)> none{};
    none.fill(-1);
    return none;
  }();
  const StencilInfo* stencil = nullptr;  ///< in place of `table` and `run`; null: not a stencil
};

template <class T, int Dims>
kernels::Strided<T> strided(const ArrayRef& array) {
  return [&]<std::size_t... D>(std::index_sequence<D...>) {
    using Extents = std::array<index_t, std::size_t(Dims)>;
    return kernels::Strided<T>{static_cast<T*>(array.data), Shape(Extents{array.extents[D]...}),
                               Shape(Extents{array.strides[D]...})};
  }(std::make_index_sequence<std::size_t(Dims)>{});
}

/// The argument of a kernel for an operand: a strided view, or a number by value.
template <class T, int Dims>
struct KernelOperand {
  static kernels::Strided<const T> of(const ArrayRef& array) {
    return strided<const T, Dims>(array);
  }
};
template <class T, int Dims>
struct KernelOperand<Number<T>, Dims> {
  static kernels::Scalar<T> of(const ArrayRef& array) {
    return {*static_cast<const T*>(array.data)};
  }
};

/// The same for contiguous rows.
template <class T>
struct RowOperand {
  static const T* of(const void* data) { return static_cast<const T*>(data); }
};
template <class T>
struct RowOperand<Number<T>> {
  static kernels::Scalar<T> of(const void* data) { return {*static_cast<const T*>(data)}; }
};

/// Calls the kernel: the only code that is compiled per operation, element types and device.
///
/// @tparam In,Out  numbers of dimensions of operands and results; elementwise operations have their
///                 operands aligned with the result
template <class Op, class Device, int... In, int... Out, class... T, class... R>
void run_kernel(const Op& op, const cleave::Task& task, std::integer_sequence<int, In...>,
                std::integer_sequence<int, Out...>, Types<T...>, Types<R...>) {
  if constexpr (is_view_op<Op>) {
    op.view(task);
  } else {
    constexpr int aligned = (0 + ... + Out);  // of an elementwise operation's only result
    [&]<std::size_t... I, std::size_t... K>(std::index_sequence<I...>, std::index_sequence<K...>) {
      constexpr kernels::On<Device> on;
      if constexpr (is_elementwise<Op>)
        map_elements(on, op, strided<R, Out>(task.out[K])...,
                     KernelOperand<T, aligned>::of(task.in[I])...);
      else
        op.kernel(on, task, strided<R, Out>(task.out[K])...,
                  KernelOperand<T, In>::of(task.in[I])...);
    }(std::index_sequence_for<T...>{}, std::index_sequence_for<R...>{});
  }
}

/// An operation that reads more of its operands than the rank's own parts.
template <class Op>
concept reads_more =
    requires(const Op& op, const OperandRef* in) { static_cast<DimMap>(op.read_map(0, 0, in)); };

/// An operation that draws random numbers from its member `state`. @see ops/engine/take_draw.hpp
template <class Op>
concept draws_numbers = requires(const Op& op) { static_cast<const RandomState&>(op.state); };

template <class Sig>
inline constexpr ExtentsTable extents_table{rule_of<Sig>};

/// The numbers of dimensions of the results of a rule.
template <class Sig, std::size_t... K>
std::integer_sequence<int, rule_of<Sig>.result[K].dims...> result_dims(std::index_sequence<K...>);

template <std::size_t K, class... T>
std::type_identity<std::tuple_element_t<K, std::tuple<T...>>> nth_type(Types<T...>);

/// The OpInfo of an operation, as a constant.
template <class Op, class Device, class TypeList, int... Dims>
struct InfoOf;
template <class Op, class Device, class... T, int... Dims>
struct InfoOf<Op, Device, Types<T...>, Dims...> {
  static_assert((!is_float8<element_in<T>> && ...) || is_view_op<Op> ||
                    requires { Op::takes_float8; },
                "cleave: floats of 8 bits are for storage: call dequantize(x, scale), or "
                "cast<float>(x), before the operation");
  using Results = results_of<Op, T...>;
  using Sig = signature_of<Op, Types<T...>, Dims...>;
  using ResultDims =
      decltype(result_dims<Sig>(std::make_index_sequence<std::size_t(Results::size)>{}));

  template <std::size_t K>
  using Result =
      Tensor<typename decltype(nth_type<K>(Results{}))::type, rule_of<Sig>.result[K].dims, Device>;

  static void run(const void* op, const cleave::Task& task) {
    run_kernel<Op, Device>(*static_cast<const Op*>(op), task, std::integer_sequence<int, Dims...>{},
                           ResultDims{}, Types<T...>{}, Results{});
  }

  // kernels of several operations inline it
  [[gnu::always_inline]] static void row(const void* op, void* out, index_t n,
                                         const void* const* in) {
    [&]<std::size_t... I, class R>(std::index_sequence<I...>, Types<R>) {
      kernels::detail::map_row(*static_cast<const Op*>(op), static_cast<R*>(out), n,
                               RowOperand<T>::of(in[I])...);
    }(std::index_sequence_for<T...>{}, Results{});
  }

  static DimMap read_map(const void* op, int operand, int d, const OperandRef* in) {
    if constexpr (reads_more<Op>) return static_cast<const Op*>(op)->read_map(operand, d, in);
    else return {};
  }

  static bool extends_operand(const void* op) {
    return static_cast<const Op*>(op)->extends_operand();
  }
  static void fill_beyond(const ArrayRef& x) {
    using X = element_in<typename decltype(nth_type<0>(Types<T...>{}))::type>;
    constexpr int dims = rule_of<Sig>.operand[0].dims;
    fill_elements(kernels::On<Device>{}, strided<X, dims>(x), Op::template beyond<X>());
  }
  static bool scans_reversed(const void* op) { return static_cast<const Op*>(op)->reversed; }
  static void add_totals(const void* op, const ArrayRef& y, const ArrayRef& totals) {
    using R = typename decltype(nth_type<0>(Results{}))::type;
    constexpr int dims = rule_of<Sig>.result[0].dims;
    static_cast<const Op*>(op)->add_totals(kernels::On<Device>{}, strided<R, dims>(y),
                                           strided<const R, dims>(totals));
  }

  static constexpr OpInfo value = [] {
    OpInfo info{Op::name,
                &rule_of<Sig>,
                &extents_table<Sig>,
                rule_broadcasts<Sig>(),
                cleave::is_elementwise<Op>,
                is_view_op<Op>,
                detail::needs_box<Op>() || reads_more<Op>,
                draws_numbers<Op>,
                ((is_number<T> || Dims == rule_of<Sig>.result[0].dims) && ...),
                {},
                &run};
    if constexpr (std::is_same_v<Device, Host> && cleave::is_elementwise<Op>) {
      info.row = &row;
      info.calls_row_function = requires { Op::row_function; };
    }
    if constexpr (reads_more<Op>) info.read_map = &read_map;
    if constexpr (requires { &Op::extends_operand; }) {
      info.extends_operand = &extends_operand;
      info.fill_beyond = &fill_beyond;
    }
    if constexpr (requires { Op::scans; }) {
      info.scans = Op::scans;
      info.scans_reversed = &scans_reversed;
      info.add_totals = &add_totals;
    }
    if constexpr (requires { Op::regrouping(1); }) info.regrouping = Op::regrouping(Dims...);
    if constexpr (requires { Op::reduces; }) info.reduces = Op::reduces;
    if constexpr (requires { Op::replaces(0); })
      for (int k = 0; k < Results::size; ++k)
        info.replaces[std::size_t(k)] = std::int8_t(Op::replaces(k));
    static_assert(
        rule_of<Sig>.kept == 0 || requires { Op::regrouping(1); },
        "cleave: an operation whose factors have parentheses states its regrouping: "
        "shards may end inside a dimension that it merges or splits");
    static_assert(rule_of<Sig>.results == Results::size,
                  "cleave: an operation names one element type per result of its factors");
    [&]<class... R>(Types<R...>) {
      std::size_t k = 0;
      ((info.dtype[k++] = dtype_of<R>()), ...);
    }(Results{});
    return info;
  }();

  /// Whether a call whose operands agree only has to allocate results and run the kernel.
  static constexpr bool is_plain = [] {
    bool plain = !value.is_view && !value.needs_box && value.read_map == nullptr &&
                 value.scans < 0 && value.rule->kept == 0 && value.table->pairs >= 0 &&
                 (!value.is_elementwise || value.same_dims);
    for (std::size_t k = 0; k < std::size_t(Results::size); ++k)
      for (std::size_t d = 0; d < std::size_t(value.rule->result[k].dims); ++d)
        plain = plain && value.table->source[k][d].operand >= 0;
    return plain;
  }();
};

}  // namespace cleave::inline v0::detail
