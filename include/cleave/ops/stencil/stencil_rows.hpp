// The loops of a stencil over rows of contiguous elements: no test for edges, no call.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/ops/stencil/field_window.hpp>
#include <cleave/ops/stencil/reach.hpp>
#include <cleave/ops/stencil/stride.hpp>

namespace cleave::inline v0::detail {

/// A field around the element that is being computed.
template <class T, int Dims>
class FieldAt {
 public:
  CLEAVE_HOST_DEVICE constexpr FieldAt(const T* at, const index_t* strides, const index_t* index,
                                       index_t column)
      : at_(at), strides_(strides), index_(index), column_(column) {}

  template <class... I>
  CLEAVE_HOST_DEVICE constexpr stencil_value_t<T> operator()(I... offset) const {
    static_assert(sizeof...(I) == std::size_t(Dims),
                  "cleave: a stencil reads a field at one offset per dimension: u(-1, 0) in two");
    index_t place = 0;
    int d = 0;
    ((place += d == Dims - 1 ? index_t(offset) : index_t(offset) * strides_[d], ++d), ...);
    return at_[place];
  }

  CLEAVE_HOST_DEVICE constexpr index_t index(int d) const {
    return index_[d] + (d == Dims - 1 ? column_ : 0);
  }

 private:
  const T* at_;
  const index_t* strides_;
  const index_t* index_;
  index_t column_;
};

/// The rows of a field, one after the other. @tparam T  its elements, or a Number of T
template <class T, int Dims>
class OperandRow {
 public:
  OperandRow(const FieldBlock*& next, const Number<T>*, const Box&) : OperandRow(*next++) {}

  /// The row whose indices in the outer dimensions are `at`, counted from the block's.
  void start(const Shape& at) {
    row_ = first_;
    for (int d = 0; d < Dims - 1; ++d) row_ += at[d] * strides_[d];
  }
  void advance() {
    if constexpr (Dims > 1) row_ += strides_[Dims - 2];
  }
  FieldAt<T, Dims> at(const index_t* index, index_t column) const {
    return {row_ + column, strides_, index, column};
  }

 private:
  explicit OperandRow(const FieldBlock& block) : first_(static_cast<const T*>(block.first)) {
    for (int d = 0; d < Dims; ++d) strides_[d] = block.strides[d];
  }

  const T* first_;
  const T* row_ = nullptr;
  index_t strides_[Dims];
};
template <class T, int Dims>
class OperandRow<Number<T>, Dims> {
 public:
  OperandRow(const FieldBlock*&, const Number<T>* number, const Box&) : value_(number->value) {}

  void start(const Shape&) {}
  void advance() {}
  T at(const index_t*, index_t) const { return value_; }

 private:
  T value_;
};

/// The rows of operand I of a stencil S with strides. @see OperandRow
template <class S, std::size_t I, class T, int Dims>
class StridedRow {
 public:
  StridedRow(const FieldBlock*& next, const Number<T>*, const Box& block)
      : first_(static_cast<const T*>(next->first)), begin_(block.begin), index_(begin_) {
    for (int d = 0; d < Dims; ++d) strides_[d] = next->strides[d];
    ++next;
  }

  void start(const Shape& at) {
    row_ = first_;
    for (int d = 0; d < Dims - 1; ++d) {
      index_[d] = begin_[d] + at[d];
      row_ += (place(d, index_[d]) - place(d, begin_[d])) * strides_[d];
    }
  }
  void advance() {
    if constexpr (Dims > 1) {
      constexpr int d = Dims - 2;
      row_ += (place(d, index_[d] + 1) - place(d, index_[d])) * strides_[d];
      ++index_[d];
    }
  }
  FieldAt<T, Dims> at(const index_t* index, index_t column) const {
    constexpr int d = Dims - 1;
    constexpr DimMap map = declared_stride<S, I>().map(d);
    index_t to_right = column * map.num;
    if constexpr (map.den > 1)  // unsigned: a shift for powers of two
      to_right =
          index_t(std::size_t(map.num * begin_[d] % map.den + to_right) / std::size_t(map.den));
    return {row_ + to_right, strides_, index, column};
  }

 private:
  static constexpr index_t place(int d, index_t result) {
    constexpr Stride stride = declared_stride<S, I>();
    const DimMap map = stride.map(d);
    return floor_divide(map.num * result, map.den);
  }

  const T* first_;
  const T* row_ = nullptr;
  index_t strides_[Dims];
  Shape begin_, index_;  ///< in the result
};

template <class S, std::size_t I, class T, int Dims>
using operand_row_t = std::conditional_t<declares_stride<S> && !is_number<T>,
                                         StridedRow<S, I, T, Dims>, OperandRow<T, Dims>>;

/// Where a result is written; the innermost dimension has stride 1.
template <class T>
struct ResultRow {
  T* first;
  Shape strides;
  T* row = nullptr;

  void start(const Shape& at) {
    row = first;
    for (int d = 0; d < at.dims - 1; ++d) row += at[d] * strides[d];
  }
  void advance() {
    if (strides.dims > 1) row += strides[strides.dims - 2];
  }
};

template <class X>
inline constexpr bool is_tuple_of_results = false;
template <class... X>
inline constexpr bool is_tuple_of_results<std::tuple<X...>> = true;

/// The loops of a stencil with operands T, element types of fields or Numbers, and results R.
template <class S, int Dims, class Results, class... T>
struct StencilLoops;
template <class S, int Dims, class... R, class... T>
struct StencilLoops<S, Dims, Types<R...>, T...> {
  const S& stencil;
  std::array<const void*, sizeof...(T)> numbers;  ///< Number<T>, null for fields
  std::tuple<ResultRow<R>...> results;            ///< at the indices `origin`
  Shape origin;

  StencilKernel kernel() const { return {this, &run}; }

 private:
  static void run(const void* object, const Box& block, const FieldBlock* fields) {
    static_cast<const StencilLoops*>(object)->compute(
        block, fields, std::index_sequence_for<T...>{}, std::index_sequence_for<R...>{});
  }

  template <std::size_t... I, std::size_t... K>
  void compute(const Box& block, const FieldBlock* fields, std::index_sequence<I...>,
               std::index_sequence<K...>) const {
    // in the order of the fields: braces evaluate from left to right
    std::tuple<operand_row_t<S, I, T, Dims>...> in{operand_row_t<S, I, T, Dims>(
        fields, static_cast<const typename NumberOf<T>::type*>(numbers[I]), block)...};
    auto out = results;
    const Shape place = block.relative_to(origin).begin;
    index_t index[Dims];
    const index_t columns = block.extent(Dims - 1);
    const int plane_dim = Dims > 1 ? Dims - 2 : 0;
    const index_t rows = Dims > 1 ? block.extent(plane_dim) : 1;
    unsigned outer = 0;
    for (int d = 0; d < Dims - 2; ++d) outer |= 1u << d;
    Shape at = Shape::filled(Dims, 0);
    do {
      Shape target = at;
      for (int d = 0; d < Dims; ++d) {
        target[d] += place[d];
        index[d] = block.begin[d] + at[d];
      }
      (std::get<I>(in).start(at), ...);
      (std::get<K>(out).start(target), ...);
      const index_t skip = place[Dims - 1];
      for (index_t i = 0; i < rows; ++i) {
        compute_row(index, columns, std::tuple<R*...>(std::get<K>(out).row + skip...),
                    std::get<I>(in)...);
        (std::get<I>(in).advance(), ...);
        (std::get<K>(out).advance(), ...);
        if constexpr (Dims > 1) ++index[plane_dim];
      }
    } while (outer != 0 && next_index(block.extents(), at, outer));
  }

  template <class... Operand>
  void compute_row(const index_t* index, index_t columns, const std::tuple<R*...>& to,
                   const Operand... operand) const {
    // a copy: stores to results cannot change it, so that it stays in registers
    using Functor = std::conditional_t<std::is_trivially_copyable_v<S>, const S, const S&>;
    Functor f = stencil;
    const std::tuple<R*...> out = to;
    const auto element = [&](index_t j) {
      if constexpr (is_tuple_of_results<decltype(f(operand.at(index, j)...))>) {
        const auto values = f(operand.at(index, j)...);
        [&]<std::size_t... K>(std::index_sequence<K...>) {
          ((std::get<K>(out)[j] = static_cast<R>(std::get<K>(values))), ...);
        }(std::index_sequence_for<R...>{});
      } else {
        using Result = std::tuple_element_t<0, std::tuple<R...>>;
        std::get<0>(out)[j] = static_cast<Result>(f(operand.at(index, j)...));
      }
    };
    index_t j = 0;
    const auto run = [&]<index_t Block>(std::integral_constant<index_t, Block>) {
      for (; j + Block <= columns; j += Block) {  // g++ -O2 uses vectors for known numbers of turns
        CLEAVE_INDEPENDENT_ITERATIONS
        for (index_t k = 0; k < Block; ++k) element(j + k);
      }
    };
    run(std::integral_constant<index_t, 64>{});
    run(std::integral_constant<index_t, 8>{});
    for (; j < columns; ++j) element(j);
  }

  template <class X>
  struct NumberOf {
    using type = Number<X>;
  };
  template <class X>
  struct NumberOf<Number<X>> {
    using type = Number<X>;
  };
};

}  // namespace cleave::inline v0::detail
