// Computes runs of elementwise operations block by block. @see passes/fuse_elementwise.hpp
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/ops/engine/op_info.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/spmd/passes/fuse_elementwise.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::spmd::detail {

/// An array of a run on this rank.
struct FusedArray {
  std::byte* data = nullptr;  ///< of its first element
  std::byte* at = nullptr;    ///< of the current block
  index_t step = 0;  ///< bytes from an element to the next one; 0: a number, or one block is kept
  index_t size = 0;  ///< the same inside of a block; 0: a number, or needed in the run only
  int value = 0;     ///< of the program
  int strided = -1;  ///< which of the arrays that are copied block by block; -1: dense
};

/// An operation of a run.
struct FusedStep {
  void (*row)(const void* op, void* out, index_t n, const void* const* in) = nullptr;
  const void* op = nullptr;
  int operands = 0;
  int out = 0;                                      ///< an array of the run
  std::array<int, std::size_t(max_operands)> in{};  ///< likewise
};

/// A reduction at the end of a run.
struct FusedReduction {
  const Instruction* instruction = nullptr;
  int in = 0;                ///< an array of the run
  std::byte* out = nullptr;  ///< the first result; set before each run
};

/// A kernel for a run of a program that is a constant. @see fused_kernel.hpp
struct FusedKernel {
  std::span<const FusedStep> steps{};   ///< with arrays numbered as in the run
  std::span<const char> is_internal{};  ///< of each array: whether it is needed in the run only
  index_t at_once = 1;                  ///< the kernel takes multiples of this number of elements
  void (*call)(const FusedArray* arrays, index_t n) = nullptr;
};

/// The runs of a program, prepared once. A run computes only with addresses of contiguous elements.
class FusedLoops {
 public:
  /// @param code    must outlive this: the operations and numbers are part of it
  /// @param values  of the program
  FusedLoops(std::span<const Instruction> code, std::span<const PlacedValue> values,
             std::span<const FusedRun> runs, std::span<const FusedKernel> kernels = {}) {
    std::size_t count = 0;
    for (const FusedRun& run : runs) count += count_of(run);
    steps_.reserve(count);
    arrays_.reserve(2 * count);
    std::vector<int> known(values.size(), -1);  // the array of a value, in one of the runs
    for (const FusedRun& run : runs) {
      const int first = int(arrays_.size());
      runs_.push_back(
          {int(steps_.size()), first, 0, 0, int(reductions_.size()), 0, run.rows, nullptr});
      const auto array_of = [&](int value) {
        int& array = known[std::size_t(value)];
        if (array < first) {
          array = int(arrays_.size());
          arrays_.push_back({.value = value});
        }
        return array;
      };
      for (const Instruction& i : code.subspan(std::size_t(run.begin), count_of(run))) {
        FusedStep step{i.op->row, i.attributes.bytes.data(), i.operands, array_of(i.first)};
        for (std::size_t k = 0; k < std::size_t(i.operands); ++k)
          step.in[k] = array_of(i.operand[k]);
        steps_.push_back(step);
      }
      runs_.back().steps = int(steps_.size()) - runs_.back().first_step;
      for (int n = run.reductions; n < run.end; ++n) {
        const Instruction& i = code[std::size_t(n)];
        reductions_.push_back({&i, array_of(i.operand[0]), nullptr});
      }
      runs_.back().reductions = run.end - run.reductions;
      runs_.back().arrays = int(arrays_.size()) - first;
      for (const FusedKernel& kernel : kernels)
        if (computes(kernel, run, values)) runs_.back().kernel = &kernel;
    }
  }

  /// The number of runs that kernels compute.
  int compiled() const {
    return int(std::count_if(runs_.begin(), runs_.end(),
                             [](const Run& run) { return run.kernel != nullptr; }));
  }

  /// The arrays of a run, whose data and steps its caller sets.
  std::span<FusedArray> arrays(std::size_t run) {
    const Run& of = runs_[run];
    return std::span(arrays_).subspan(std::size_t(of.first_array), std::size_t(of.arrays));
  }

  /// Its reductions.
  std::span<FusedReduction> reductions(std::size_t run) {
    const Run& of = runs_[run];
    return std::span(reductions_)
        .subspan(std::size_t(of.first_reduction), std::size_t(of.reductions));
  }

  /// Copies an array that is not dense block by block.
  void copy_blocks(FusedArray& array, DType dtype, const Shape& strides) {
    array.strided = int(used_++);
    if (strided_.size() < used_) strided_.emplace_back();
    Strided& source = strided_[std::size_t(array.strided)];
    source.view = {array.data, dtype, {}, strides};
    source.copied = 0;
    source.dense.resize(size_of(dtype) * std::size_t(FusedRun::block));
  }

  /// Computes a run whose results have these extents.
  void operator()(std::size_t run, const Shape& extents) {
    const Run& of = runs_[run];
    extents_ = extents;
    whole_ = 1;
    for (int d = of.rows; d >= 0 && d < extents.dims; ++d) whole_ *= extents[d];
    if (extents.product() == 0) {
      if (of.reductions > 0) reduce(of, 0, 0);
    } else if (used_ == 0) {
      compute_dense(of, extents.product());
    } else {
      compute_boxes(of, extents);
    }
    used_ = 0;
  }

 private:
  struct Run {
    int first_step, first_array, steps, arrays, first_reduction, reductions;
    int rows;                   ///< the first dimension that reductions reduce, or -1
    const FusedKernel* kernel;  ///< null: its operations are called one by one
  };
  struct Strided {
    ConstView view{};
    index_t offset = 0;  ///< of the block that was copied last
    index_t copied = 0;  ///< the number of its elements
    std::vector<std::byte> dense{};
  };

  /// Whether a kernel computes the last run.
  bool computes(const FusedKernel& kernel, const FusedRun& of,
                std::span<const PlacedValue> values) const {
    const Run& run = runs_.back();
    if (int(kernel.steps.size()) != run.steps || int(kernel.is_internal.size()) != run.arrays)
      return false;
    for (int s = 0; s < run.steps; ++s) {
      const FusedStep& a = kernel.steps[std::size_t(s)];
      const FusedStep& b = steps_[std::size_t(run.first_step + s)];
      bool same = a.row == b.row && a.operands == b.operands && a.out == b.out - run.first_array &&
                  std::memcmp(a.op, b.op, Attributes::size) == 0;
      for (std::size_t k = 0; same && k < std::size_t(a.operands); ++k)
        same = a.in[k] == b.in[k] - run.first_array;
      if (!same) return false;
    }
    const int made = arrays_[std::size_t(steps_[std::size_t(run.first_step)].out)].value;
    for (int k = 0; k < run.arrays; ++k) {
      const int v = arrays_[std::size_t(run.first_array + k)].value;
      const bool internal = v >= made && values[std::size_t(v)].last_use < of.reductions;
      if (internal != (kernel.is_internal[std::size_t(k)] != 0)) return false;
    }
    return true;
  }

  void compute_dense(const Run& run, index_t size) {
    const index_t most = run.reductions > 0 ? FusedRun::block / whole_ * whole_ : FusedRun::block;
    const index_t block = run.kernel != nullptr && run.reductions == 0 ? size : most;
    for (index_t begin = 0; begin < size; begin += block)
      compute_block(run, begin, std::min(block, size - begin));
  }

  /// Blocks are boxes, which are contiguous in dense arrays: parts of dimension p, and whole
  /// dimensions after it.
  void compute_boxes(const Run& run, const Shape& extents) {
    Shape box = extents;
    int p = extents.dims - 1;
    index_t inner = 1;
    while (p > 0 && inner * extents[p] <= FusedRun::block) inner *= extents[p--];
    for (int d = 0; d < p; ++d) box[d] = 1;
    const index_t most = p >= 0 ? std::max(index_t(1), FusedRun::block / inner) : 1;
    Shape at = Shape::filled(extents.dims, 0);
    for (index_t begin = 0;;) {
      if (p >= 0) box[p] = std::min(most, extents[p] - at[p]);
      const index_t n = box.product();
      for (FusedArray& array :
           std::span(arrays_).subspan(std::size_t(run.first_array), std::size_t(run.arrays)))
        if (array.strided >= 0) copy_block(array, box, at);
      compute_block(run, begin, n);
      begin += n;
      int d = p;
      for (; d >= 0; --d) {
        at[d] += d == p ? most : 1;
        if (at[d] < extents[d]) break;
        at[d] = 0;
      }
      if (d < 0) return;
    }
  }

  /// Copies the elements of a block, unless they are those that were copied last, or their first.
  void copy_block(FusedArray& array, const Shape& box, const Shape& at) {
    Strided& source = strided_[std::size_t(array.strided)];
    const index_t offset = cleave::detail::offset_of(at, source.view.strides);
    const index_t n = box.product();
    array.data = source.dense.data();
    array.step = 0;
    if (source.copied >= n && source.offset == offset) return;
    source.offset = offset;
    source.copied = n;
    ConstView block = source.view;
    block.data = static_cast<const std::byte*>(block.data) + offset * index_t(size_of(block.dtype));
    block.extents = box;
    pack_view(block, source.dense.data());
  }

  void compute_block(const Run& run, index_t begin, index_t n) {
    compute_elements(run, begin, n);
    if (run.reductions > 0) reduce(run, begin, n);
  }

  /// Reduces the rows of a block of n elements; n is 0 if rows are empty.
  void reduce(const Run& run, index_t begin, index_t n) {
    Shape box = extents_;
    if (n > 0 && run.rows > 0) {
      for (int d = 0; d < run.rows - 1; ++d) box[d] = 1;
      box[run.rows - 1] = n / whole_;
    }
    Shape kept = box;
    kept.dims = run.rows;
    const Shape in_strides = row_major_strides(box), out_strides = row_major_strides(kept);
    for (int k = 0; k < run.reductions; ++k) {
      const FusedReduction& reduction = reductions_[std::size_t(run.first_reduction + k)];
      const cleave::detail::OpInfo& info = *reduction.instruction->op;
      const FusedArray& x = arrays_[std::size_t(reduction.in)];
      OperandRef in{};
      in.data = x.data + begin * x.step;
      in.extents = box.begin();
      in.strides = in_strides.begin();
      in.dims = box.dims;
      const index_t first = n > 0 ? begin / whole_ : 0;
      cleave::ArrayRef out{reduction.out + first * index_t(size_of(info.dtype[0])), kept.begin(),
                           out_strides.begin(), kept.dims};
      Task task;
      task.name = reduction.instruction->name;
      task.in = &in;
      task.operands = 1;
      task.out = &out;
      info.run(reduction.instruction->attributes.bytes.data(), task);
    }
  }

  void compute_elements(const Run& run, index_t begin, index_t n) {
    FusedArray* const arrays = arrays_.data() + run.first_array;
    for (int k = 0; k < run.arrays; ++k) arrays[k].at = arrays[k].data + begin * arrays[k].step;
    if (run.kernel != nullptr) {
      const index_t most = n / run.kernel->at_once * run.kernel->at_once;
      run.kernel->call(arrays, most);
      if ((n -= most) == 0) return;
      for (int k = 0; k < run.arrays; ++k) arrays[k].at += most * arrays[k].size;
    }
    const FusedStep* const steps = steps_.data() + run.first_step;
    for (int s = 0; s < run.steps; ++s) {
      const FusedStep& step = steps[s];
      const void* in[max_operands];
      for (int k = 0; k < step.operands; ++k)
        in[k] = arrays_[std::size_t(step.in[std::size_t(k)])].at;
      step.row(step.op, arrays_[std::size_t(step.out)].at, n, in);
    }
  }

  std::vector<Run> runs_{};
  std::vector<FusedStep> steps_{};
  std::vector<FusedArray> arrays_{};
  std::vector<FusedReduction> reductions_{};
  Shape extents_{};    ///< of the current run
  index_t whole_ = 1;  ///< elements of its rows that are reduced
  std::vector<Strided> strided_{};
  std::size_t used_ = 0;  ///< of `strided_`, in the next run
};

}  // namespace cleave::inline v0::spmd::detail
