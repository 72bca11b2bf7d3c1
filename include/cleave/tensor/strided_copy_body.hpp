// Strided copies and fills on the host, dispatched by element size.
#pragma once

#include <algorithm>
#include <cstddef>

#include <cleave/core/config.hpp>
#include <cleave/tensor/copy_loops.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

namespace detail {

template <class Device>
void fill(const View& view, const void* value) {
  if (view.size() == 0 || is_dry()) return;
  visit_word(size_of(view.dtype), [&]<std::size_t N>() { fill_words<N>(view, value); });
}

}  // namespace detail

CLEAVE_INLINE void strided_copy(const ConstView& source, const View& destination,
                                std::size_t array) {
  const index_t count = source.extents.product();
  if (count == 0 || detail::is_dry()) return;
  if (source.data == destination.data && source.strides == destination.strides) return;
  const auto element = index_t(size_of(source.dtype));
  const auto* from = static_cast<const std::byte*>(source.data);
  auto* to = static_cast<std::byte*>(destination.data);
  const auto bytes = std::size_t(count * element);
  if (source.contiguous() && destination.contiguous())
    return detail::copy_run(from, to, bytes, array);
  detail::CopyPlan plan =
      detail::plan_copy(source.extents, source.strides, destination.strides, element);
  plan.array = std::max(bytes, array);
  detail::copy_planned(plan, from, to);
}

CLEAVE_INLINE void pack_view(const ConstView& source, void* dense) {
  if (!source.contiguous() || detail::is_dry())
    return strided_copy(source, View::dense(dense, source.dtype, source.extents));
  if (const index_t bytes = source.bytes(); bytes > 0 && dense != source.data)
    detail::copy_run(static_cast<const std::byte*>(source.data), static_cast<std::byte*>(dense),
                     std::size_t(bytes));
}

CLEAVE_INLINE void unpack_view(const void* dense, const View& destination) {
  if (!destination.contiguous() || detail::is_dry())
    return strided_copy(ConstView::dense(dense, destination.dtype, destination.extents),
                        destination);
  if (const index_t bytes = destination.bytes(); bytes > 0 && dense != destination.data)
    detail::copy_run(static_cast<const std::byte*>(dense),
                     static_cast<std::byte*>(destination.data), std::size_t(bytes));
}

}  // namespace cleave::inline v0
