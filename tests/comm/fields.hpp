// Tensors for tests of collectives, on the test's device: strided in every way, with a margin that
// must not be written, and values that identify their origin.
#pragma once

#include <string>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/tensor/tensor.hpp>

#include "device.hpp"
#include "function_ref.hpp"

namespace cleave::testing {

/// A small integer as a T, exact in every type, even when summed over some ranks.
template <class T>
T number(index_t i) {
  if constexpr (is_complex<T>) {
    using Part = typename T::value_type;
    return T(static_cast<Part>(i), static_cast<Part>(i % 3 - 1));
  } else if constexpr (std::is_same_v<T, bool>) {
    return i % 2 != 0;
  } else {
    return static_cast<T>(static_cast<accumulator_t<T>>(i));
  }
}

/// The element (i, j) of rank `rank`. Values differ enough to reveal a wrong place or a wrong rank.
template <class T>
T sample(int rank, index_t i, index_t j) {
  return number<T>((rank * 31 + i * 7 + j * 3 + i * j) % 11);
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (is_complex<T>)
    return std::to_string(value.real()) + "+" + std::to_string(value.imag()) + "i";
  else return std::to_string(static_cast<double>(static_cast<accumulator_t<T>>(value)));
}

enum class Style { dense, transposed, margin, every_second };
inline constexpr Style all_styles[] = {Style::dense, Style::transposed, Style::margin,
                                       Style::every_second};

/// A matrix within a larger block of memory.
template <class T>
struct Field {
  Tensor<T, 1, TestDevice> memory;
  Tensor<T, 2, TestDevice> matrix;

  /// All elements and the memory around them are filled with a mark.
  Field(index_t rows, index_t columns, Style style)
      : Field(rows, columns, style, [](index_t, index_t) { return mark(); }) {}

  /// The value of element (i, j).
  using Values = FunctionRef<T(index_t, index_t)>;

  /// The memory around the elements is filled with a mark.
  Field(index_t rows, index_t columns, Style style, Values value) {
    std::array<index_t, 2> strides{columns, 1};
    index_t offset = 0;
    if (style == Style::transposed) strides = {1, rows};
    if (style == Style::margin) strides = {columns + 5, 1}, offset = 2;
    if (style == Style::every_second) strides = {2 * columns + 1, 2}, offset = 1;
    const Tensor<T, 1> all({offset + (rows + 1) * strides[0] + (columns + 1) * strides[1]});
    all.fill_(mark());
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        all(offset + i * strides[0] + j * strides[1]) = value(i, j);
    memory = all.to(TestDevice{});
    matrix = Tensor<T, 2, TestDevice>::adopt(memory.data() + offset, {rows, columns}, strides,
                                             memory.storage());
  }

  static T mark() { return number<T>(77); }

  View view() const { return matrix.view(); }

  /// "" if all elements equal `value` and the memory around them is untouched; otherwise the first
  /// difference.
  std::string difference(Values value) const {
    const Tensor<T, 1> found = memory.to(Host{});
    const index_t first = matrix.data() - memory.data();
    std::vector<bool> inside(std::size_t(found.size()), false);
    for (index_t i = 0; i < matrix.extent(0); ++i)
      for (index_t j = 0; j < matrix.extent(1); ++j) {
        const index_t at = first + i * matrix.strides()[0] + j * matrix.strides()[1];
        inside[std::size_t(at)] = true;
        const T expected = value(i, j);
        if (!(found(at) == expected))
          return "(" + std::to_string(i) + ", " + std::to_string(j) + ") is " + text_of(found(at)) +
                 ", not " + text_of(expected);
      }
    for (index_t k = 0; k < found.size(); ++k)
      if (!inside[std::size_t(k)] && !(found(k) == mark()))
        return "memory outside of the view was written";
    return "";
  }
};

/// The number of rows (or columns) of rank r: uneven, and zero for some.
inline index_t uneven(int r) { return (r * 5 + 2) % 4; }

/// The first row of rank r if the ranks' rows follow each other.
inline index_t uneven_begin(int r) {
  index_t begin = 0;
  for (int s = 0; s < r; ++s) begin += uneven(s);
  return begin;
}

/// A box of rows [begin, end) and columns [left, right).
inline Box box(index_t begin, index_t end, index_t left, index_t right) {
  return {Shape(std::array<index_t, 2>{begin, left}), Shape(std::array<index_t, 2>{end, right})};
}

/// The uneven pieces of all ranks along dimension `dim` of a matrix that is `across` wide.
inline std::vector<Box> uneven_pieces(int ranks, int dim, index_t across) {
  std::vector<Box> pieces;
  for (int r = 0; r < ranks; ++r) {
    const index_t begin = uneven_begin(r), end = begin + uneven(r);
    pieces.push_back(dim == 0 ? box(begin, end, 0, across) : box(0, across, begin, end));
  }
  return pieces;
}

/// The reduction of value(0), value(1), .. value(ranks - 1), by a loop.
template <class T, class Value>
T reduced(ReduceOp op, int ranks, Value value) {
  using A = accumulator_t<T>;
  A result = static_cast<A>(value(0));
  for (int r = 1; r < ranks; ++r) {
    const A next = static_cast<A>(value(r));
    if constexpr (std::is_same_v<T, bool>) {
      const bool either = op == ReduceOp::sum || op == ReduceOp::max;
      result = either ? (result || next) : (result && next);
    } else if constexpr (is_complex<T>) {
      result = op == ReduceOp::product ? result * next : result + next;
    } else {
      switch (op) {
        case ReduceOp::sum:
        case ReduceOp::avg: result = static_cast<A>(result + next); break;
        case ReduceOp::product: result = static_cast<A>(result * next); break;
        case ReduceOp::max: result = result > next ? result : next; break;
        case ReduceOp::min: result = result < next ? result : next; break;
        default: break;  // reductions of bits have tests of their own
      }
    }
  }
  if constexpr (std::is_floating_point_v<A>) {
    if (op == ReduceOp::avg) result /= static_cast<A>(ranks);
  } else if constexpr (is_complex<T>) {
    if (op == ReduceOp::avg) result /= static_cast<typename T::value_type>(ranks);
  }
  return static_cast<T>(result);
}

/// Whether elements of type T have that reduction.
template <class T>
constexpr bool has_reduction(ReduceOp op) {
  if (op == ReduceOp::avg) return !std::is_integral_v<T>;
  if (op == ReduceOp::max || op == ReduceOp::min) return !is_complex<T>;
  return true;
}

inline constexpr ReduceOp all_reductions[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::max,
                                              ReduceOp::min, ReduceOp::product};

/// Calls f(T{}) for every element type.
template <class F>
void for_element_types(F f) {
  f(bool{});
  f(std::int8_t{});
  f(std::uint8_t{});
  f(std::int16_t{});
  f(std::uint16_t{});
  f(std::int32_t{});
  f(std::uint32_t{});
  f(std::int64_t{});
  f(std::uint64_t{});
  f(half{});
  f(bfloat16{});
  f(float{});
  f(double{});
  f(std::complex<float>{});
  f(std::complex<double>{});
}

}  // namespace cleave::testing
