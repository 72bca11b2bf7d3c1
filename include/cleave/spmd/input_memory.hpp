// Which inputs of a program lie in memory of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/spmd/value_slot.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::spmd::detail {

class InputMemory {
 public:
  /// Looks at the first slots, those of inputs. Repeated calls with the same memory are cheap.
  void find(const std::vector<ValueSlot>& slots, std::size_t inputs) {
    bool is_known = data_.size() == inputs;
    for (std::size_t i = 0; is_known && i < inputs; ++i)
      is_known = data_[i] == slots[i].operand.data;
    if (is_known) return;
    data_.resize(inputs);
    is_apart_.assign(inputs, 1);
    ranges_.clear();
    for (std::size_t i = 0; i < inputs; ++i) {
      data_[i] = slots[i].operand.data;
      add(slots[i].operand, i);
    }
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    for (std::size_t i = 1, longest = 0; i < ranges_.size(); ++i) {
      if (ranges_[i].begin < ranges_[longest].end)
        is_apart_[ranges_[i].input] = is_apart_[ranges_[longest].input] = 0;
      if (ranges_[i].end > ranges_[longest].end) longest = i;
    }
  }

  /// Whether an input is contiguous and overlaps no other one.
  bool is_apart(const OperandRef& x, std::size_t input) const {
    return is_apart_[input] &&
           cleave::detail::is_contiguous(cleave::detail::shape_at(x.extents, x.dims),
                                         cleave::detail::shape_at(x.strides, x.dims));
  }

 private:
  struct Range {
    std::uintptr_t begin, end;
    std::size_t input;
  };

  void add(const OperandRef& x, std::size_t input) {
    index_t below = 0, above = 1;
    for (int d = 0; d < x.dims; ++d) {
      if (x.extents[d] == 0) return;
      (x.strides[d] < 0 ? below : above) += (x.extents[d] - 1) * x.strides[d];
    }
    const auto size = index_t(size_of(x.dtype));
    const auto at = reinterpret_cast<std::uintptr_t>(x.data);
    ranges_.push_back(
        {at + std::uintptr_t(below * size), at + std::uintptr_t(above * size), input});
  }

  std::vector<const void*> data_{};
  std::vector<char> is_apart_{};
  std::vector<Range> ranges_{};
};

}  // namespace cleave::inline v0::spmd::detail
