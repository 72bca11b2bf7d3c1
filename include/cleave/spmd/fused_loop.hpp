// Computes a run of elementwise operations block by block. @see passes/fuse_elementwise.hpp
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <cleave/core/shape.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/ops/engine/op_info.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/spmd/passes/fuse_elementwise.hpp>

namespace cleave::spmd::detail {

/// The operations of a run, with their arrays on this rank.
class FusedLoop {
 public:
  /// Begins a run of `count` operations whose results have these extents.
  void begin(const Shape& extents, int count) {
    extents_ = extents;
    steps_.clear();
    steps_.reserve(std::size_t(count));
  }

  /// Adds an operation.
  ///
  /// @param in        the operands; those of `one_block` are results of the run with one block
  /// @param one_block bit i: of operand i; bit max_operands: of the result
  /// @param out       the result, dense
  void add(const cleave::detail::CallContext& call, const void* op, const OperandRef* in,
           unsigned one_block, void* out, DType dtype) {
    Step& step = steps_.emplace_back();
    step.info = &call.info;
    step.op = op;
    const int operands = call.info.rule->operands;
    for (int i = 0; i < operands; ++i) {
      Array& array = step.in[std::size_t(i)];
      const OperandRef& x = in[i];
      array.data = static_cast<std::byte*>(x.data);
      array.size = index_t(size_of(x.dtype));
      array.one_block = (one_block >> i & 1u) != 0;
      const int skip = extents_.dims - x.dims;
      for (int d = 0; d < extents_.dims; ++d)
        array.strides[d] = d < skip || call.repeats(i, d - skip) ? 0 : x.strides[d - skip];
      step.operand[std::size_t(i)] = x;
    }
    step.out.data = static_cast<std::byte*>(out);
    step.out.size = index_t(size_of(dtype));
    step.out.one_block = (one_block >> max_operands & 1u) != 0;
    step.out.strides = row_major_strides(extents_);
  }

  void run() {
    if (extents_.product() == 0) return;
    box_ = extents_;
    int p = extents_.dims - 1;  // blocks are parts of dimension p, and whole dimensions after it
    index_t inner = 1;
    while (p > 0 && inner * extents_[p] <= FusedRun::block) inner *= extents_[p--];
    for (int d = 0; d < p; ++d) box_[d] = 1;
    const index_t most = p >= 0 ? std::max(index_t(1), FusedRun::block / inner) : 1;
    Shape at = Shape::filled(extents_.dims, 0);
    for (;;) {
      if (p >= 0) box_[p] = std::min(most, extents_[p] - at[p]);
      for (const Step& step : steps_) call(step, at);
      int d = p;
      for (; d >= 0; --d) {
        at[d] += d == p ? most : 1;
        if (at[d] < extents_[d]) break;
        at[d] = 0;
      }
      if (d < 0) return;
    }
  }

 private:
  struct Array {
    std::byte* data = nullptr;
    index_t size = 0;  ///< of an element
    bool one_block = false;
    Shape strides{};

    void* at(const Shape& index) const {
      index_t offset = 0;
      for (int d = 0; !one_block && d < index.dims; ++d) offset += index[d] * strides[d];
      return data + offset * size;
    }
  };
  struct Step {
    const cleave::detail::OpInfo* info = nullptr;
    const void* op = nullptr;
    std::array<Array, std::size_t(max_operands)> in{};
    std::array<OperandRef, std::size_t(max_operands)> operand;
    Array out{};
  };

  void call(const Step& step, const Shape& at) const {
    std::array<OperandRef, std::size_t(max_operands)> in;
    const int operands = step.info->rule->operands;
    for (int i = 0; i < operands; ++i) {
      const Array& array = step.in[std::size_t(i)];
      OperandRef& x = in[std::size_t(i)] = step.operand[std::size_t(i)];
      x.data = array.at(at);
      x.extents = box_.begin();
      x.strides = array.strides.begin();
      x.dims = extents_.dims;
    }
    ArrayRef out{step.out.at(at), box_.begin(), step.out.strides.begin(), extents_.dims};
    Task task;
    task.name = step.info->name;
    task.in = in.data();
    task.operands = operands;
    task.out = &out;
    step.info->run(step.op, task);
  }

  Shape extents_{};
  Shape box_{};  ///< the extents of the current block
  std::vector<Step> steps_{};
};

}  // namespace cleave::spmd::detail
