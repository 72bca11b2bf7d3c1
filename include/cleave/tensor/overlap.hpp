// Whether two arrays overlap in memory, which decides whether one may be written while the other is
// read; and whether an array repeats elements, which decides whether it may be written at all.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// Inserts an element into the first `count`, which are sorted.
template <class T, std::size_t N, class Before>
void insert_sorted(std::array<T, N>& sorted, int count, const std::type_identity_t<T>& value,
                   const Before& before) {
  int at = count;
  for (; at > 0 && before(value, sorted[std::size_t(at - 1)]); --at)
    sorted[std::size_t(at)] = sorted[std::size_t(at - 1)];
  sorted[std::size_t(at)] = value;
}

/// Sums of k[i] * step[i] with 0 <= k[i] < count[i]: the byte offsets that arrays reach.
class ByteSums {
 public:
  void add(index_t step, index_t count) {
    if (count <= 1 || step == 0) return;
    if (step < 0) {
      offset_ += (count - 1) * step;
      step = -step;
    }
    for (int i = 0; i < size_; ++i)
      if (terms_[std::size_t(i)].step == step) {
        terms_[std::size_t(i)].count += count - 1;
        return;
      }
    insert_sorted(terms_, size_++, Term{step, count},
                  [](const Term& a, const Term& b) { return a.step > b.step; });
  }

  /// Whether one of the sums is `target`; also true if `budget_` steps do not decide it.
  bool reach(index_t target) {
    for (int i = size_ - 1, low = size_; i >= 0; low = i--)
      rest_[std::size_t(i)] = (low < size_ ? rest_[std::size_t(low)] : 0) +
                              (terms_[std::size_t(i)].count - 1) * terms_[std::size_t(i)].step;
    return reach(0, target - offset_);
  }

 private:
  struct Term {
    index_t step;
    index_t count;
  };

  bool reach(int i, index_t target) {
    if (target < 0 || target > (i < size_ ? rest_[std::size_t(i)] : 0)) return false;
    if (i == size_ || --budget_ < 0) return true;
    const Term& term = terms_[std::size_t(i)];
    const index_t others = i + 1 < size_ ? rest_[std::size_t(i + 1)] : 0;
    const index_t first = target > others ? (target - others + term.step - 1) / term.step : 0;
    const index_t last = std::min(target / term.step, term.count - 1);
    for (index_t k = last; k >= first; --k)
      if (reach(i + 1, target - k * term.step)) return true;
    return false;
  }

  static constexpr std::size_t most = 2 * std::size_t(max_dims) + 2;
  std::array<Term, most> terms_{};
  std::array<index_t, most> rest_{};  ///< the largest sum of the terms from this one on
  int size_ = 0;
  int budget_ = 1 << 14;
  index_t offset_ = 0;
};

/// Whether some byte belongs to elements of both arrays.
inline bool overlap(const ConstView& a, const ConstView& b) {
  if (a.size() == 0 || b.size() == 0) return false;
  ByteSums sums;
  const auto add = [&](const ConstView& x, index_t sign) {
    const auto size = index_t(size_of(x.dtype));
    for (int d = 0; d < x.extents.dims; ++d) sums.add(sign * size * x.strides[d], x.extents[d]);
    sums.add(sign, size);
  };
  add(a, 1);
  add(b, -1);
  return sums.reach(
      index_t(reinterpret_cast<std::intptr_t>(b.data) - reinterpret_cast<std::intptr_t>(a.data)));
}

/// Whether elements with the same index are at the same address, for all indices.
inline bool same_elements(const ConstView& a, const ConstView& b) {
  if (a.data != b.data || a.dtype != b.dtype || !(a.extents == b.extents)) return false;
  for (int d = 0; d < a.extents.dims; ++d)
    if (a.extents[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

/// Whether two indices that differ first in dimension `d` name one address; also true if this
/// cannot be decided quickly.
inline bool has_repeats_along(const ConstView& a, int d) {
  ByteSums differences;
  differences.add(a.strides[d], a.extents[d] - 1);
  for (int e = d + 1; e < a.extents.dims; ++e) {
    differences.add(a.strides[e], a.extents[e]);
    differences.add(-a.strides[e], a.extents[e]);
  }
  return differences.reach(-a.strides[d]);
}

/// Whether no two elements share an address.
inline bool has_distinct_elements(const ConstView& a) {
  if (a.contiguous()) return true;
  std::array<std::array<index_t, 2>, std::size_t(max_dims)> loops;  // stride, extent
  int count = 0;
  for (int d = 0; d < a.extents.dims; ++d) {
    if (a.extents[d] <= 1) continue;
    if (a.strides[d] == 0) return false;
    insert_sorted(loops, count++, {a.strides[d] < 0 ? -a.strides[d] : a.strides[d], a.extents[d]},
                  [](const auto& x, const auto& y) { return x[0] < y[0]; });
  }
  index_t reach = 0;
  bool nested = true;  // each stride steps over all elements of the smaller ones
  for (std::size_t i = 0; i < std::size_t(count); ++i) {
    nested = nested && loops[i][0] > reach;
    reach += loops[i][0] * (loops[i][1] - 1);
  }
  for (int d = 0; !nested && d < a.extents.dims; ++d)
    if (a.extents[d] > 1 && has_repeats_along(a, d)) return false;
  return true;
}

/// @param context  returns the ErrorContext
/// @throws Error if the target of an operation repeats elements: one write would change several
template <class Context>
void require_distinct_elements(const char* operation, const ConstView& target,
                               const Context& context) {
  if (!has_distinct_elements(target)) [[unlikely]]
    throw Error(operation, "the target repeats elements; clone it first", context());
}
inline void require_distinct_elements(const char* operation, const ConstView& target) {
  require_distinct_elements(operation, target,
                            [&] { return ErrorContext{.shapes = to_string(target.extents)}; });
}

}  // namespace cleave::inline v0::detail
