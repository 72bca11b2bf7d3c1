// Functions of whole rows on a GPU, each in one launch: threads share a row and hold it in
// registers, so that it is read once and its result written once.
//
// Of a row that does not fit, the threads hold the beginning and read the rest again in each pass.
// Results depend on extents, strides and element types alone: the same bits in every run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0::cuda::detail {

/// How threads share rows.
struct RowTeams {
  std::uint32_t rows = 0;
  std::uint32_t lanes = 1;     ///< threads per row, a power of two
  std::uint32_t distance = 1;  ///< between the threads of a row in their block
  index_t n = 0;               ///< elements of a row
};

/// The rows of an array, or one of them.
template <class T>
struct RowArray {
  T* data;
  index_t step;  ///< stride between elements of a row
  bool packed;   ///< whether full runs are packs

  template <int V>
  __device__ auto load(index_t i, index_t n) const {
    return Run<V>{packed, step, n - i}.load(data + i * step);
  }
  template <int V, class U>
  __device__ void store(index_t i, index_t n, const Pack<U, V>& pack) const {
    Run<V>{packed, step, n - i}.store(data + i * step, pack);
  }
};

/// The sum of the values of the threads before one, and of all.
template <class A>
struct Scanned {
  A before, total;
};

/// The threads that share a row.
class RowTeam {
 public:
  __device__ explicit RowTeam(const RowTeams& teams) : teams_(teams) {
    const std::uint32_t per_block = block_threads / teams.lanes;
    const bool adjacent = teams.distance == 1;
    lane_ = adjacent ? threadIdx.x & (teams.lanes - 1) : threadIdx.x / teams.distance;
    row_ = blockIdx.x * per_block +
           (adjacent ? threadIdx.x / teams.lanes : threadIdx.x & (teams.distance - 1));
  }

  __device__ std::uint32_t lane() const { return lane_; }
  __device__ std::uint32_t row() const { return row_; }
  __device__ bool exists() const { return row_ < teams_.rows; }
  __device__ index_t lanes() const { return teams_.lanes; }

  /// Combines a value of each thread in a fixed order; every thread of the team gets the result.
  /// Called by all threads of the block.
  template <class A, class F>
  __device__ A fold(const A& value, const F& combine) const {
    constexpr std::uint32_t group = 16;  // two steps of 16 values combine those of 256 threads
    alignas(access_bytes) __shared__ unsigned char memory[2][block_threads * sizeof(A)];
    A* const values = reinterpret_cast<A*>(memory[0]);
    A* const parts = reinterpret_cast<A*>(memory[1]);
    const std::uint32_t first = threadIdx.x - lane_ * teams_.distance;
    const auto place = [&](std::uint32_t lane) { return first + lane * teams_.distance; };
    values[threadIdx.x] = value;
    __syncthreads();
    if (teams_.lanes <= group) {
      A total = values[first];
      for (std::uint32_t i = 1; i < teams_.lanes; ++i) total = combine(total, values[place(i)]);
      __syncthreads();  // before the next value
      return total;
    }
    if (lane_ < group) {
      A part = values[threadIdx.x];
      for (std::uint32_t i = lane_ + group; i < teams_.lanes; i += group)
        part = combine(part, values[place(i)]);
      parts[threadIdx.x] = part;
    }
    __syncthreads();
    A total = parts[first];
    for (std::uint32_t i = 1; i < group; ++i) total = combine(total, parts[place(i)]);
    return total;
  }

  /// The sums by `combine`, in the order of the lanes, of the values of the threads before this
  /// one, and of all. Called by all threads of the block.
  /// @param zero  the identity of `combine`
  template <class A, class F>
  __device__ Scanned<A> scan(const A& value, const A& zero, const F& combine) const {
    constexpr std::uint32_t most = 16;  // parts; one place behind each keeps them in separate banks
    constexpr std::size_t places = block_threads + block_threads / most;
    alignas(access_bytes) __shared__ unsigned char memory[2][places * sizeof(A)];
    A* const values = reinterpret_cast<A*>(memory[0]);
    A* const parts = reinterpret_cast<A*>(memory[1]);
    const std::uint32_t first = threadIdx.x - lane_ * teams_.distance;
    const auto place = [&](std::uint32_t lane) {
      const std::uint32_t thread = first + lane * teams_.distance;
      return thread + thread / most;
    };
    const std::uint32_t size = teams_.lanes <= most ? 1 : teams_.lanes / most;  // lanes per part
    const std::uint32_t groups = teams_.lanes / size, group = lane_ / size;
    values[place(lane_)] = value;
    __syncthreads();
    if (lane_ < groups) {
      A part = zero;
      for (std::uint32_t i = 0; i < size; ++i)
        part = combine(part, values[place(lane_ * size + i)]);
      parts[place(lane_)] = part;
    }
    __syncthreads();
    Scanned<A> sums{zero, zero};
    for (std::uint32_t i = 0; i < groups; ++i) {
      if (i == group) sums.before = sums.total;
      sums.total = combine(sums.total, parts[place(i)]);
    }
    for (std::uint32_t i = group * size; i < lane_; ++i)
      sums.before = combine(sums.before, values[place(i)]);
    __syncthreads();  // before the next values
    return sums;
  }

 private:
  RowTeams teams_;
  std::uint32_t lane_, row_;
};

/// Part of a row in the registers of a team.
template <class Item, int V>
struct RowChunk {
  static constexpr int registers = 128;  ///< bytes per thread
  static constexpr int packs = registers / (V * int(sizeof(Item))) > 0
                                   ? registers / (V * int(sizeof(Item)))
                                   : 1;

  Pack<Item, V> held[packs];
  index_t first;  ///< of this thread's first pack
  index_t step;   ///< between its packs
  index_t n;      ///< end of the row

  /// Calls f(pack, index of its first element) for the thread's packs. The loop is over constants:
  /// indexed by a variable, the packs would go to local memory.
  template <class F>
  __device__ void each_pack(const F& f) {
    each_pack(f, std::make_integer_sequence<int, packs>{});
  }
  /// Calls f(item) for the thread's items.
  template <class F>
  __device__ void each(const F& f) {
    each_pack([&](Pack<Item, V>& pack, index_t i) {
      for (int k = 0; k < V; ++k)
        if (i + k < n) f(pack.values[k]);
    });
  }

 private:
  template <class F, int... P>
  __device__ void each_pack(const F& f, std::integer_sequence<int, P...>) {
    static_cast<void>(((first + P * step < n && (f(held[P], first + P * step), true)) && ...));
  }
};

/// A row and the team that computes with it.
///
/// @tparam Row  `Item`, what a thread holds of an element; `load<V>(i, n)`, a pack of them
template <int V, class Row>
class TeamRow {
 public:
  using Item = typename Row::Item;
  using Chunk = RowChunk<Item, V>;
  static constexpr int width = V;

  __device__ TeamRow(const Row& row, const RowTeam& team, index_t n)
      : row_(row), team_(team), n_(team.exists() ? n : 0) {
    read(head_, 0);
  }

  __device__ index_t size() const { return n_; }
  /// Whether this thread stores a result of the row.
  __device__ bool leads() const { return team_.exists() && team_.lane() == 0; }

  /// Calls f(chunk) for all parts of the row.
  template <class F>
  __device__ void each_chunk(const F& f) {
    f(head_);
    for (index_t first = chunk_size(); first < n_; first += chunk_size()) {
      Chunk next;
      read(next, first);
      f(next);
    }
  }

  template <class A, class F>
  __device__ A fold(const A& value, const F& combine) const {
    return team_.fold(value, combine);
  }

  /// The sum of f(item), of a type with + and zero Sum{}: that of a chunk is added as a whole.
  template <class Sum, class F>
  __device__ Sum sum(const F& f) {
    Sum total{};
    each_chunk([&](Chunk& chunk) {
      Sum part{};
      chunk.each([&](const Item& item) { part = part + f(item); });
      total = total + part;
    });
    return fold(total, Added{});
  }

  /// out[i] = f(items, i)[..], a pack of results for a pack of items.
  template <class T, class F>
  __device__ void write(const RowArray<T>& out, const F& f) {
    each_chunk([&](Chunk& chunk) {
      chunk.each_pack([&](const Pack<Item, V>& items, index_t i) {
        out.template store<V>(i, n_, f(items, i));
      });
    });
  }
  /// out[i] = f(item).
  template <class T, class F>
  __device__ void write_each(const RowArray<T>& out, const F& f) {
    write(out, [&](const Pack<Item, V>& items, index_t) {
      Pack<T, V> results;
      for (int k = 0; k < V; ++k) results.values[k] = T(f(items.values[k]));
      return results;
    });
  }

 private:
  struct Added {
    template <class A>
    __device__ A operator()(const A& a, const A& b) const {
      return a + b;
    }
  };

  __device__ index_t chunk_size() const { return team_.lanes() * V * Chunk::packs; }
  __device__ void read(Chunk& chunk, index_t first) const {
    chunk.first = first + index_t(team_.lane()) * V;
    chunk.step = team_.lanes() * V;
    chunk.n = n_;
    chunk.each_pack([&](Pack<Item, V>& pack, index_t i) { pack = row_.template load<V>(i, n_); });
  }

  const Row& row_;
  const RowTeam& team_;
  index_t n_;
  Chunk head_;
};

/// @tparam Row  also `arrays`, and `move(offsets)`, to the row with these offsets in its arrays;
///              called with a TeamRow, it computes the row
template <int V, class Row>
__global__ void fused_rows_kernel(Row row, RowTeams teams, Loops<Row::arrays> rows) {
  const RowTeam team(teams);
  if (team.exists()) row.move(rows.at(team.row()).offset);
  TeamRow<V, Row> work(row, team, teams.n);
  row(work);
}

/// The loops over rows along dimension d, for arrays with these strides. @pre no other extent is 0
template <std::size_t N>
LoopNest<int(N)> loops_over_rows(Shape extents, int d, std::array<Shape, N> strides) {
  extents[d] = 1;
  std::array<const Shape*, N> all;
  for (std::size_t k = 0; k < N; ++k) all[k] = &strides[k];
  return LoopNest<int(N)>(extents, all);
}

/// Rows of array k along dimension d.
template <int V, int N, class T>
RowArray<T> row_array(const kernels::Strided<T>& x, int d, const LoopNest<N>& rows, int k) {
  bool packed = x.strides[d] == 1 && aligned_for<V>(x.data);
  for (int e = 0; e < rows.dims; ++e)
    packed = packed && (rows.extents[e] == 1 || rows.strides[k][e] % V == 0);
  return {x.data, x.strides[d], packed};
}

/// A row [n] that applies to all rows.
template <int V, class T>
RowArray<T> common_row(const kernels::Strided<T>& row) {
  return {row.data, row.strides[0], row.strides[0] == 1 && aligned_for<V>(row.data)};
}

/// The teams for rows of n elements, of which threads access V at a time.
///
/// @param rows  array 0 decides how memory is read: by adjacent threads along a row, or across rows
/// @param step  its stride along a row
template <int V, int N>
RowTeams row_teams(const LoopNest<N>& rows, index_t n, index_t step) {
  const auto at_least = [](index_t count, std::uint32_t most) {
    std::uint32_t lanes = 1;
    while (lanes < most && index_t(lanes) < count) lanes *= 2;
    return lanes;
  };
  const bool across =
      magnitude(step) > magnitude(rows.strides[0][rows.inner()]) && rows.size() >= 8;
  RowTeams teams{std::uint32_t(rows.size()), 1, 1, n};
  teams.lanes = across ? at_least((n + 7) / 8, block_threads / 8)
                       : at_least((n + 2 * V - 1) / (2 * V), block_threads);
  if (across) teams.distance = block_threads / teams.lanes;
  return teams;
}

/// Launches a kernel of teams.
template <class... Parameters, class... Args>
void launch_teams(const char* operation, void (*kernel)(Parameters...), const RowTeams& teams,
                  const Args&... args) {
  const std::uint32_t per_block = block_threads / teams.lanes;
  launch(operation, kernel, dim3((teams.rows + per_block - 1) / per_block), dim3(block_threads),
         args...);
}

/// Computes all rows, of n elements each. @see row_teams
template <int V, class Row>
void launch_rows(const char* operation, const Row& row, const LoopNest<Row::arrays>& rows,
                 index_t n, index_t step) {
  in_pieces(rows, [&](const LoopNest<Row::arrays>& piece) {
    const RowTeams teams = row_teams<V>(piece, n, step);
    launch_teams(operation, fused_rows_kernel<V, Row>, teams, row, teams,
                 Loops<Row::arrays>(piece));
  });
}

}  // namespace cleave::inline v0::cuda::detail
