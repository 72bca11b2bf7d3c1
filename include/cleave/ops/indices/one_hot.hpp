// One-hot encoding of class indices: rows of zeros with a single one.
#pragma once

#include <array>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/host/one_hot_rows.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace ops {

/// One-hot rows; the new last dimension is replicated unless other placements are requested.
template <class T>
struct OneHot {
  index_t count = 0;  ///< classes

  using result = T;
  static constexpr const char* name = "one_hot";
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return detail::factors_text(detail::dim_letters(0, dims[0]),
                                detail::dim_letters(0, dims[0] + 1));
  }
  constexpr Shape extents() const { return Shape::filled(1, count); }

  void kernel(const auto& on, const Task& task, const auto& y, const auto& classes) const {
    const int last = task.box->dims() - 1;
    const auto wrong = one_hot_rows(on, classes, task.box->extent(last), y.data,
                                    kernels::RowRange{task.box->begin[last], count, name});
    if (wrong)
      task.fail("index " + std::to_string(*wrong) + " is not in [0, " + std::to_string(count) +
                ")");
  }
};

}  // namespace ops

/// One-hot encoding: y[.., c] = (classes[..] == c), for c in [0, count).
///
///     // y[S0,R] = one_hot<float>(classes[S0,R], 10)
///
/// @tparam T  the element type of the result
/// @param classes  integers in [0, count)
/// @return    the shape of `classes` with a last dimension of extent `count`
/// @throws Error  on the ranks that hold an index outside [0, count), on a GPU from the next call
///                that waits for the device; or if count is negative
template <Element T, class... R, AnyTensor X>
constexpr auto one_hot(const X& classes, index_t count) {
  using I = typename X::value_type;
  static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>,
                "cleave: one_hot requires integer classes");
  if (count < 0)
    throw Error("one_hot", "the number of classes is negative: " + std::to_string(count),
                detail::context_of(classes));
  return call_op<R...>(ops::OneHot<T>{count}, classes);
}
CLEAVE_USAGE(one_hot, "one_hot(classes, count)")

}  // namespace cleave::inline v0
