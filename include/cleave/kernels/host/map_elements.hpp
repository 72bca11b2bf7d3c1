// One pass over any number of arrays: out[i] = f(a[i], b[i], ..).
//
// Dimensions that are contiguous with each other in all arrays are merged. The innermost loop reads
// contiguous rows only, so that one loop body handles all strides and vectorises: rows that repeat
// or skip elements are first copied to a small buffer, transposed arrays tile by tile. Functors
// that name a function of vector_math.hpp are computed by that function.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/kernels/host/vector_math.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/merged_loops.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// The loops of N arrays after merging: at least rows and columns, possibly of extent 1.
template <int N>
struct MapLoops : cleave::detail::MergedLoops<N> {
  MapLoops(const Shape& shape, const Shape* const (&of)[N]) {
    std::array<index_t, std::size_t(N)> steps{};
    this->append(1, steps);
    for (int d = 0; d < shape.dims; ++d) {
      for (int k = 0; k < N; ++k) steps[std::size_t(k)] = (*of[k])[d];
      this->push(shape[d], steps);
    }
    if (this->dims > 1 && this->strides[0][this->dims - 1] == 1) return;
    steps.fill(1);
    this->append(1, steps);  // columns of extent 1, for a single element or rows with a stride
  }
};

/// The elements processed together: part of a row, or parts of several rows if an input is
/// transposed. Small enough for the L1 cache, or the L2 cache.
struct Tile {
  static constexpr index_t elements = 8192;  ///< the most
  index_t rows = 1;
  index_t cols = elements / 2;

  /// Parts of rows that are long enough to be worth a row's overhead, and of columns that are
  /// several cache lines, which memory delivers faster than single ones.
  static constexpr Tile square() { return {64, elements / 64}; }

  /// Rows shorter than this are processed as one run of several, if the result has no gaps.
  static constexpr index_t short_row = 64;
  static constexpr Tile of_short_rows(index_t cols) { return {elements / 2 / cols, cols}; }
};

/// Prefetches into the second-level cache: rows of one tile are often in one set of the first.
template <class T>
void prefetch_row(const T* row, index_t n) {
  constexpr index_t line = 64 / index_t(sizeof(T)) > 0 ? 64 / index_t(sizeof(T)) : 1;
  for (index_t i = 0; i < n; i += line) __builtin_prefetch(row + i, 0, 2);
}

/// One input, read as contiguous parts of rows.
template <class T>
class TileLoader {
 public:
  /// @param strides  of all loops; the last two are those of rows and columns
  TileLoader(const T* data, const index_t* strides, int loops)
      : data_(data), strides_(strides), row_step_(strides[loops - 2]), step_(strides[loops - 1]) {}

  /// Whether columns are contiguous and rows are not.
  bool transposed() const { return row_step_ == 1 && step_ > 1; }

  /// Advances by `count` steps along loop d.
  void advance(int d, index_t count) {
    data_ += count * strides_[d];
    filled_ = 0;
  }

  /// Prepares the tile at (row, col).
  void start(const Tile& tile, index_t row, index_t col) {
    if (!transposed()) return;
    const Shape extents(std::array<index_t, 2>{tile.rows, tile.cols});
    const Shape strides(std::array<index_t, 2>{1, step_});
    pack_view({data_ + row + col * step_, dtype_of<T>(), extents, strides}, packed());
  }

  /// Prefetches what row `i` of a tile reads, or, if transposed, the columns that a row of the tile
  /// has a share of.
  void prefetch(const Tile& tile, index_t row, index_t col, index_t i) const {
    if (step_ == 1) prefetch_row(data_ + (row + i) * row_step_ + col, tile.cols);
    if (!transposed()) return;
    const index_t share = (tile.cols + tile.rows - 1) / tile.rows;
    for (index_t j = i * share; j < std::min(tile.cols, (i + 1) * share); ++j)
      prefetch_row(data_ + row + (col + j) * step_, tile.rows);
  }

  /// Row `i` of that tile.
  const T* part(const Tile& tile, index_t row, index_t col, index_t i) {
    const T* from = data_ + (row + i) * row_step_ + col * step_;
    if (step_ == 1) return from;
    if (transposed()) return packed() + i * tile.cols;
    if (step_ != 0) {
      for (index_t j = 0; j < tile.cols; ++j) packed()[j] = from[j * step_];
    } else if (filled_ < tile.cols || (row_step_ != 0 && (col == 0 || tile.rows > 1))) {
      const T value = *from;
      for (index_t j = 0; j < tile.cols; ++j) packed()[j] = value;
      filled_ = tile.cols;
    }
    return packed();
  }

  /// The rows of a tile from `row` on, one after the other.
  const T* run(const Tile& tile, index_t row) {
    const T* from = data_ + row * row_step_;
    if (step_ == 1 && row_step_ == tile.cols) return from;
    if (row_step_ == 0 && filled_ >= tile.rows * tile.cols) return packed();
    T* to = packed();
    for (index_t i = 0; i < tile.rows; ++i, from += row_step_)
      for (index_t j = 0; j < tile.cols; ++j) *to++ = from[j * step_];
    if (row_step_ == 0) filled_ = tile.rows * tile.cols;
    return packed();
  }

 private:
  T* packed() { return reinterpret_cast<T*>(buffer_); }

  const T* data_;
  const index_t* strides_;
  index_t row_step_;
  index_t step_;
  index_t filled_ = 0;  ///< how much of the buffer repeats an element or a row
  alignas(64) std::byte buffer_[std::size_t(Tile::elements) * sizeof(T)];
};

template <class T>
T element_of(const T*);
template <class T>
T element_of(const Scalar<T>&);
template <class In>
using element_of_row = decltype(element_of(std::declval<const In&>()));

/// Whether an elementwise functor names a row function, which computes several elements at once.
template <class F, class R, class... T>
inline constexpr bool computes_rows = [] {
  if constexpr (requires { F::row_function; })
    return std::is_same_v<decltype(F::row_function), const RowFunctionId> && has_row_functions<R> &&
           sizeof...(T) == 1 && (std::is_same_v<T, R> && ...);
  else return false;
}();

/// Element i of an operand of a row: of an array, or a number.
template <class T>
const T& element_at(const T* row, index_t i) {
  return row[i];
}
template <class T>
const T& element_at(const Scalar<T>& number, index_t) {
  return number.value;
}

/// out[i] = f(in[i]..) for n contiguous elements; `out` may be one of the inputs.
/// @param in  pointers to rows, or a `Scalar`
template <class F, class R, class... In>
[[gnu::always_inline]] inline void map_row(const F& functor, R* out, index_t n, const In&... in) {
  if constexpr (computes_rows<F, R, element_of_row<In>...>) {
    apply_to_row(F::row_function, in..., out, n);
  } else {
    // a copy: stores to `out` cannot change it, so that it stays in registers
    using Functor = std::conditional_t<std::is_trivially_copyable_v<F>, const F, const F&>;
    Functor f = functor;
    // elements by value: they are always loaded, without a branch, even if f may not read them
    const auto of = [&](const element_of_row<In>... elements) -> R { return f(elements...); };
    // g++ -O3 unrolls 16 turns of a loop before it looks for vectors
    constexpr index_t block = 32;
    const index_t whole = n - n % block;
    for (index_t i = 0; i < whole; i += block) {  // g++ -O2 uses vectors if it knows the turns
      CLEAVE_INDEPENDENT_ITERATIONS
      for (index_t j = 0; j < block; ++j) out[i + j] = of(element_at(in, i + j)...);
    }
    for (index_t i = whole; i < n; ++i) out[i] = of(element_at(in, i)...);
  }
}

/// A type-erased functor, applied to a row: other code is compiled once per set of element types.
template <class R, class... T>
struct RowFunction {
  const void* functor;
  void (*call)(const void* functor, R* out, index_t n, const T*... in);

  template <class F>
  static void map(const void* functor, R* out, index_t n, const T*... in) {
    map_row(*static_cast<const F*>(functor), out, n, in...);
  }
  template <class F>
  static RowFunction of(const F& f) {
    return {&f, &map<F>};
  }
};

template <int N, class R, class... T>
void map_loops(const RowFunction<R, T...>& f, const MapLoops<N>& loops, R* plane,
               TileLoader<T>&&... in) {
  const int planes = loops.dims - 2;  // loops around rows and columns
  const index_t rows = loops.extents[planes], cols = loops.extents[planes + 1];
  const index_t row_step = loops.strides[0][planes];
  const bool joins_rows = rows > 1 && cols < Tile::short_row && row_step == cols;
  const Tile most = joins_rows                 ? Tile::of_short_rows(cols)
                    : (in.transposed() || ...) ? Tile::square()
                                               : Tile{};
  index_t index[max_dims + 2] = {};
  for (;;) {
    for (index_t row = 0; row < rows; row += most.rows) {
      for (index_t col = 0; col < cols; col += most.cols) {
        const Tile tile{std::min(rows - row, most.rows), std::min(cols - col, most.cols)};
        if (joins_rows) {
          f.call(f.functor, plane + row * row_step, tile.rows * cols, in.run(tile, row)...);
          continue;
        }
        (in.start(tile, row, col), ...);
        const index_t next = col + tile.cols;
        const Tile following{tile.rows, std::min(cols - next, most.cols)};
        for (index_t i = 0; i < tile.rows; ++i) {
          R* const out = plane + (row + i) * row_step;
          if (most.rows > 1) {  // hardware does not detect the order in which tiles are visited
            prefetch_row(out + next, following.cols);
            (in.prefetch(following, row, next, i), ...);
          }
          f.call(f.functor, out + col, tile.cols, in.part(tile, row, col, i)...);
        }
      }
    }
    int d = planes - 1;
    for (; d >= 0; --d) {
      const index_t step = ++index[d] < loops.extents[d] ? 1 : 1 - loops.extents[d];
      plane += step * loops.strides[0][d];
      (in.advance(d, step), ...);
      if (step == 1) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

template <class T>
const T* data_of(const Strided<const T>& in) {
  return in.data;
}
template <class T>
const T* data_of(const Scalar<T>& in) {
  return &in.value;
}

/// @param strides  of the result and of the inputs
template <int... K, class R, class... T>
void map_arrays(std::integer_sequence<int, K...>, const RowFunction<R, T...>& f,
                const Strided<R>& out, const Shape* const (&strides)[sizeof...(T) + 1],
                const T*... in) {
  const MapLoops<int(sizeof...(T)) + 1> loops(out.extents, strides);
  map_loops(f, loops, out.data, TileLoader<T>(in, loops.strides[K + 1], loops.dims)...);
}

}  // namespace detail

/// Writes f of the inputs' elements to every element of `out`.
///
/// @param out  fastest if its innermost dimension has stride 1; may be one of the inputs, must not
///             overlap others
/// @param in   arrays with strides for the extents of `out`, 0 along dimensions that repeat; or a
///             `Scalar`
template <class F, class R, class... In>
void map_elements(On<Host>, const F& f, const Strided<R>& out, const In&... in) {
  if (out.extents.product() == 0) return;
  using Row = detail::RowFunction<R, typename In::Element...>;
  detail::map_arrays(std::make_integer_sequence<int, int(sizeof...(In))>{}, Row::of(f), out,
                     {&out.strides, &strides_of(in)...}, detail::data_of(in)...);
}

#if CLEAVE_COMPILED
namespace detail {

extern template void map_loops(const RowFunction<float, float>&, const MapLoops<2>&, float*,
                               TileLoader<float>&&);
extern template void map_loops(const RowFunction<float, float, float>&, const MapLoops<3>&, float*,
                               TileLoader<float>&&, TileLoader<float>&&);
extern template void map_loops(const RowFunction<double, double>&, const MapLoops<2>&, double*,
                               TileLoader<double>&&);
extern template void map_loops(const RowFunction<double, double, double>&, const MapLoops<3>&,
                               double*, TileLoader<double>&&, TileLoader<double>&&);

}  // namespace detail
#endif

}  // namespace cleave::inline v0::kernels
