// Class indices as rows of zeros with a single one.
#pragma once

#include <array>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/host/one_hot_rows.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/placement/ownership.hpp>

namespace cleave {

/// One-hot rows of an array with `Rank` dimensions.
template <int Rank>
struct OneHot {};

/// The new, last dimension is replicated unless it is asked for otherwise.
template <int Rank>
struct sharding_rule<OneHot<Rank>> {
  static constexpr RuleText factors = [] {
    RuleText text;
    for (int d = 0; d < Rank; ++d) text += char('a' + d);
    text += '-';
    text += '>';
    for (int d = 0; d <= Rank; ++d) text += char('a' + d);
    return text;
  }();
};

/// y[.., c] = (classes[..] == c), for c in [0, count).
///
///     // y[S0,R] = one_hot<float>(classes[S0,R], 10)
///
/// @tparam T  the element type of the result
/// @param classes  integers in [0, count)
/// @return    one more dimension, of extent `count`
/// @cost      on a GPU the host waits, to see whether all indices are classes
/// @throws Error  on the ranks that have an index outside of [0, count), or if count is negative
template <Element T, class... R, AnyTensor X>
auto one_hot(const X& classes, index_t count) {
  using I = typename X::value_type;
  static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>,
                "cleave: one_hot takes class indices: integers");
  using Rows = detail::Call<OneHot<X::dims>, detail::Request<R...>, X>;
  const Rows call("one_hot", classes, {count});
  if (count < 0)
    throw Error("one_hot", "the number of classes is negative: " + std::to_string(count),
                call.context());
  return call.run(
      [&](const typename X::local_type& local) {
        const Box box = call.local_box(Rows::solution.computed, call.result_shape());
        const Tensor<T, Rows::dims, typename Rows::Device> out(to_array<Rows::dims>(box.extents()));
        const auto wrong = one_hot_rows(kernels::On<typename Rows::Device>{}, kernels::read(local),
                                        box.begin[X::dims], box.extent(X::dims), count, out.data());
        if (wrong)
          throw Error("one_hot",
                      "index " + std::to_string(*wrong) + " is not one of " +
                          std::to_string(count) + " classes",
                      call.context());
        return out;
      },
      classes);
}

}  // namespace cleave
