// Exact sums over some dimensions of an array on a GPU: the same words as on the host, whatever the
// order of the elements.
//
// A block has sets of words in shared memory. Each thread adds its elements to one set, which few
// threads share, by atomic additions; then the sets of a result are added up. GPUs add 32 bits in
// shared memory atomically, but not 64: words are stored as halves, with a carry between them. If
// few results have many elements, several blocks add their words in global memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/reduce_nests.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/exact_words.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

using kernels::ExactTerms;
using kernels::ExactWord;

/// Words in shared memory as halves; those of a sum are `step` apart. `step` threads that access
/// different sums access different banks.
struct SplitWords {
  /// A word that is read and assigned like an ExactWord.
  struct Word {
    std::uint32_t *low, *high;

    __device__ operator ExactWord() const { return ExactWord(std::uint64_t(*high) << 32 | *low); }
    __device__ const Word& operator=(ExactWord value) const {
      *low = std::uint32_t(value);
      *high = std::uint32_t(value >> 32);
      return *this;
    }
  };

  std::uint32_t* halves;  ///< the low half of the first word
  int step;
  int high;  ///< distance from low halves to high ones

  __device__ Word operator[](int at) const {
    std::uint32_t* const low = halves + at * step;
    return {low, low + high};
  }
  __device__ SplitWords operator+(int words) const { return {halves + words * step, step, high}; }

  /// Adds to a word that threads share. Their additions of all carries yield the sum in any order.
  __device__ void add(int at, ExactWord value) const {
    const Word word = (*this)[at];
    const auto low = std::uint32_t(value);
    const std::uint32_t before = atomicAdd(word.low, low);
    const std::uint32_t rest = std::uint32_t(value >> 32) + std::uint32_t(before + low < before);
    if (rest != 0) atomicAdd(word.high, rest);
  }
  __device__ void mark(int at, ExactWord value) const {
    const Word word = (*this)[at];
    atomicOr(word.low, std::uint32_t(value));
    atomicOr(word.high, std::uint32_t(value >> 32));
  }
};

/// The words of a block's sums in shared memory.
template <int Words, int Sums>
struct SharedSums {
  std::uint32_t halves[2 * Words * Sums];

  __device__ SplitWords of(int sum) { return {halves + sum, Sums, Words * Sums}; }
};

/// Whether a word has marks instead of a digit.
template <class T, ExactTerms Terms>
__device__ bool has_marks(int word) {
  constexpr kernels::ExactFormat format = kernels::exact_format<T>(Terms);
  return word % format.words() == format.digits;
}

/// Adds a · b. Products of shorter types are exact in double.
template <class R>
__device__ void put_real_product(const kernels::ExactFormat& format, const SplitWords& put, R a,
                                 R b) {
  using A = accumulator_t<R>;
  if constexpr (std::is_same_v<R, double>) kernels::detail::put_product(format, put, a, b);
  else kernels::detail::put_number(format, put, double(A(a)) * double(A(b)));
}

/// Adds the term of the sum for an element x, or for an element of each array.
template <ExactTerms Terms, class T>
__device__ void put_term(const SplitWords& put, const T& x, const T& y) {
  constexpr kernels::ExactFormat format = kernels::exact_format<T>(Terms);
  using A = accumulator_t<T>;
  if constexpr (is_complex<T>) {
    const SplitWords imaginary = put + format.words();
    if constexpr (Terms == ExactTerms::elements) {
      kernels::detail::put_number(format, put, double(x.real()));
      kernels::detail::put_number(format, imaginary, double(x.imag()));
    } else if constexpr (Terms == ExactTerms::squares) {
      put_real_product(format, put, x.real(), x.real());
      put_real_product(format, put, x.imag(), x.imag());
    } else {
      put_real_product(format, put, x.real(), y.real());
      put_real_product(format, put, -x.imag(), y.imag());
      put_real_product(format, imaginary, x.real(), y.imag());
      put_real_product(format, imaginary, x.imag(), y.real());
    }
  } else if constexpr (Terms == ExactTerms::elements) {
    kernels::detail::put_number(format, put, double(A(x)));
  } else {
    put_real_product(format, put, x, Terms == ExactTerms::squares ? x : y);
  }
}

/// Stores results as words.
template <class T, ExactTerms Terms>
struct ExactWordsResult {
  ExactWord* out;

  __device__ void put(index_t at, const SplitWords& words) const {
    constexpr kernels::ExactFormat format = kernels::exact_format<T>(Terms);
    constexpr int count = int(kernels::exact_words<T>(Terms));
    for (int i = 0; i < count; i += format.words()) kernels::carry(format, words + i);
    for (int i = 0; i < count; ++i) out[at * count + i] = words[i];
  }
};

/// Stores results rounded.
template <class T, ExactTerms Terms>
struct ExactValueResult {
  T* out;
  kernels::ExactEpilogue epilogue;

  __device__ void put(index_t at, const SplitWords& words) const {
    out[at] = kernels::exact_value<T>(Terms, words, epilogue);
  }
};

/// The number of sets of words per block, limited so that several blocks fit a multiprocessor.
template <int Words>
inline constexpr int exact_sets = Words * 32 * int(sizeof(ExactWord)) <= 40960 ? 32 : 16;

/// The distribution of exact sums over blocks and threads.
struct ExactGrid {
  /// The largest number of steps per block, for which words need no carries.
  static constexpr index_t max_steps = index_t{1} << 27;
  /// Steps per thread that justify another set of words, and another block.
  static constexpr index_t steps_per_set = 16, steps_per_split = 64;

  std::uint32_t results = 0;  ///< steps of the kept loops
  std::uint32_t steps = 0;    ///< steps of the reduced loops, per result
  std::uint32_t chunk = 0;    ///< steps per block
  std::uint32_t splits = 1;   ///< blocks per result
  FastDivision by_splits{};
  std::uint32_t sets = 1;    ///< sets of words per result, a power of two
  std::uint32_t blocks = 1;  ///< blocks before splitting

  /// @param all_sets  sets of words per block
  ExactGrid(std::uint32_t result_count, std::uint32_t step_count, std::uint32_t all_sets)
      : results(result_count), steps(step_count) {
    const index_t per_set = block_threads / all_sets;  // threads
    sets = power_of_two(steps / (per_set * steps_per_set), all_sets);
    const std::uint32_t per_block = all_sets / sets;
    blocks = (results + per_block - 1) / per_block;
    index_t count = 4 * index_t(multiprocessors()) / blocks;
    const index_t worth = steps / (per_set * sets * steps_per_split);
    if (count > worth) count = worth;
    if (count < 1) count = 1;
    index_t each = (steps + count - 1) / count;
    if (each > max_steps) each = max_steps;
    chunk = std::uint32_t(each);
    splits = std::uint32_t((steps + each - 1) / each);
    by_splits = FastDivision(splits);
  }
};

/// @param kept     arrays 0 and 1 are x and y, array 2 the result
/// @param reduced  arrays 0 and 1 are x and y
/// @param words    the words to which blocks that share results add; null if no blocks do
template <ExactTerms Terms, class T, class Result>
__global__ void exact_sums_kernel(const T* x, const T* y, Loops<3> kept, Loops<2> reduced,
                                  ExactGrid grid, ExactWord* words, Result result) {
  constexpr int count = int(kernels::exact_words<T>(Terms)), sets = exact_sets<count>;
  __shared__ SharedSums<count, sets> memory;
  for (int i = int(threadIdx.x); i < 2 * count * sets; i += block_threads) memory.halves[i] = 0;
  __syncthreads();

  const std::uint32_t block = grid.by_splits.quotient(blockIdx.x);
  const std::uint32_t split = blockIdx.x - block * grid.splits;
  const std::uint32_t per_block = sets / grid.sets, first = block * per_block;
  const std::uint32_t set = threadIdx.x % sets, mine = first + set / grid.sets;
  if (mine < grid.results) {
    const auto place = kept.at(mine);
    const std::uint32_t lanes = block_threads / sets * grid.sets;
    const std::uint32_t lane = threadIdx.x / sets * grid.sets + set % grid.sets;
    const std::uint32_t begin = split * grid.chunk;
    const std::uint32_t end = grid.steps - begin < grid.chunk ? grid.steps : begin + grid.chunk;
    for (std::uint32_t step = begin + lane; step < end; step += lanes) {
      const auto at = reduced.at(step);
      put_term<Terms>(memory.of(int(set)), x[place.offset[0] + at.offset[0]],
                      y[place.offset[1] + at.offset[1]]);
    }
  }
  __syncthreads();

  const std::uint32_t here = grid.results - first < per_block ? grid.results - first : per_block;
  for (std::uint32_t i = threadIdx.x; i < here * count; i += block_threads) {
    const std::uint32_t of = i % here;
    const int word = int(i / here);
    const std::uint32_t begin = of * grid.sets;
    ExactWord sum = 0;
    for (std::uint32_t k = begin; k < begin + grid.sets; ++k) {
      const ExactWord part = memory.of(int(k))[word];
      sum = has_marks<T, Terms>(word) ? sum | part : sum + part;
    }
    memory.of(int(begin))[word] = sum;
    if (words == nullptr || sum == 0) continue;
    using Word = unsigned long long;
    auto* const out = reinterpret_cast<Word*>(words + kept.at(first + of).offset[2] * count + word);
    if (has_marks<T, Terms>(word)) atomicOr(out, static_cast<Word>(sum));
    else atomicAdd(out, static_cast<Word>(sum));
  }
  if (words != nullptr) return;
  __syncthreads();
  if (threadIdx.x >= here) return;
  result.put(kept.at(first + threadIdx.x).offset[2], memory.of(int(threadIdx.x * grid.sets)));
}

/// Computes results from the words of sums.
/// @param places  array 0 is the words, array 1 the result
template <ExactTerms Terms, class T, class Result>
__global__ void exact_results_kernel(const ExactWord* words, index_t step, Loops<2> places,
                                     std::uint32_t results, Result result) {
  constexpr int count = int(kernels::exact_words<T>(Terms)), threads = exact_sets<count>;
  __shared__ SharedSums<count, threads> memory;
  const std::uint32_t mine = blockIdx.x * threads + threadIdx.x;
  if (mine >= results) return;
  const auto place = places.at(mine);
  const SplitWords own = memory.of(int(threadIdx.x));
  for (int i = 0; i < count; ++i) own[i] = words[place.offset[0] + i * step];
  result.put(place.offset[1], own);
}

/// @param words    any strides; the words of a sum are `step` apart
/// @param extents  extents of the results, which are row-major
template <ExactTerms Terms, class T, class Result>
void exact_results(const ExactWord* words, const Shape& strides, index_t step, const Shape& extents,
                   const Result& result) {
  if (extents.product() == 0) return;
  const Shape out = row_major_strides(extents);
  in_pieces(LoopNest<2>(extents, {&strides, &out}), [&](const LoopNest<2>& piece) {
    const Loops<2> loops(piece);
    const std::uint32_t results = loops.size();
    constexpr int threads = exact_sets<int(kernels::exact_words<T>(Terms))>;
    launch("exact_sum", exact_results_kernel<Terms, T, Result>,
           dim3((results + threads - 1) / threads), dim3(threads), words, step, loops, results,
           result);
  });
}

/// Words of sums in global memory, initially zero; the words of a sum are contiguous.
template <ExactTerms Terms, class T>
struct SharedWords {
  static constexpr index_t count = kernels::exact_words<T>(Terms);

  Shape extents;  ///< extents of the results
  std::shared_ptr<void> memory;

  explicit SharedWords(const Shape& of)
      : extents(of),
        memory(allocate_bytes(Cuda{}, std::size_t(of.product() * count) * sizeof(ExactWord))) {
    const Shape all(std::array<index_t, 1>{of.product() * count});
    strided_fill(Cuda{}, View::dense(memory.get(), DType::int64, all), ExactWord(0));
  }
  ExactWord* data() const { return static_cast<ExactWord*>(memory.get()); }

  template <class Result>
  void finish(const Result& result) const {
    Shape strides = row_major_strides(extents);
    for (int d = 0; d < strides.dims; ++d) strides[d] *= count;
    exact_results<Terms, T>(data(), strides, 1, extents, result);
  }
};

/// Passes the sums over the dimensions of the mask to `result`.
/// @param y  x itself if the terms are of one array
template <ExactTerms Terms, class T, class Result>
void exact_nests(unsigned mask, const kernels::Strided<const T>& x,
                 const kernels::Strided<const T>& y, const Result& result) {
  const ReduceShapes of_x(x.extents, x.strides, mask), of_y(y.extents, y.strides, mask);
  if (of_x.kept.product() == 0) return;
  if (x.extents.product() == 0) return SharedWords<Terms, T>(of_x.kept).finish(result);
  constexpr int sets = exact_sets<int(kernels::exact_words<T>(Terms))>;
  const LoopNest<3> kept(of_x.kept, {&of_x.kept_strides, &of_y.kept_strides, &of_x.out_strides});
  const LoopNest<2> reduced(of_x.reduced, {&of_x.reduced_strides, &of_y.reduced_strides});
  std::optional<SharedWords<Terms, T>> shared;
  in_pieces(kept, [&](const LoopNest<3>& results) {
    in_pieces(reduced, [&](const LoopNest<2>& part) {
      const Loops<3> outer(results);
      const Loops<2> inner(part);
      const ExactGrid grid(outer.size(), inner.size(), sets);
      if (!shared && (grid.splits > 1 || part.size() < reduced.size())) shared.emplace(of_x.kept);
      launch("exact_sum", exact_sums_kernel<Terms, T, Result>, dim3(grid.blocks * grid.splits),
             dim3(block_threads), x.data, y.data, outer, inner, grid,
             shared ? shared->data() : nullptr, result);
    });
  });
  if (shared) shared->finish(result);
}

}  // namespace cuda::detail

namespace kernels {

/// The words of exact sums over the dimensions of the mask, in the order of the current stream; the
/// same words as on the host.
///
/// @param x,y  any extents and strides; y if the terms are products
/// @param out  [results.., words], row-major and contiguous
/// @cost       one launch; three, and memory for the words, if few results have many elements
/// @throws Error if a launch fails, or there is no memory for words
template <ExactTerms Terms, class T, class... Y>
void exact_parts(On<Cuda>, std::integral_constant<ExactTerms, Terms>, unsigned mask, ExactWord* out,
                 const Strided<const T>& x, const Y&... y) {
  const auto& other = std::get<sizeof...(Y)>(std::tie(x, y...));
  cuda::detail::exact_nests<Terms>(mask, x, other, cuda::detail::ExactWordsResult<T, Terms>{out});
}

/// Exact sums over the dimensions of the mask, with the epilogue applied, rounded; likewise.
/// @param out  row-major and contiguous
template <ExactTerms Terms, class T, class... Y>
void exact_reduce(On<Cuda>, std::integral_constant<ExactTerms, Terms>, unsigned mask,
                  const ExactEpilogue& epilogue, T* out, const Strided<const T>& x, const Y&... y) {
  const auto& other = std::get<sizeof...(Y)>(std::tie(x, y...));
  cuda::detail::exact_nests<Terms>(mask, x, other,
                                   cuda::detail::ExactValueResult<T, Terms>{out, epilogue});
}

/// The numbers that words represent, with the epilogue applied, in the order of the current stream.
/// @param parts  [results.., words], any strides
/// @param out    row-major and contiguous
template <ExactTerms Terms, class T>
void exact_values(On<Cuda>, std::integral_constant<ExactTerms, Terms>,
                  const ExactEpilogue& epilogue, const Strided<const ExactWord>& parts, T* out) {
  Shape extents = parts.extents, strides = parts.strides;
  const int last = --extents.dims;
  --strides.dims;
  cuda::detail::exact_results<Terms, T>(parts.data, strides, parts.strides[last], extents,
                                        cuda::detail::ExactValueResult<T, Terms>{out, epilogue});
}

}  // namespace kernels

}  // namespace cleave::inline v0
