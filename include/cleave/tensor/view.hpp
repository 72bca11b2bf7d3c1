// Strided views of tensors without a static element type, for communicators and files.
//
// A view owns nothing; the caller keeps the storage alive while the view is used.
#pragma once

#include <cstddef>

#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::inline v0 {

namespace detail {

constexpr index_t offset_of(const Shape& index, const Shape& strides) {
  index_t offset = 0;
  for (int d = 0; d < index.dims; ++d) offset += index[d] * strides[d];
  return offset;
}

constexpr bool is_contiguous(const Shape& extents, const Shape& strides) {
  if (extents.product() == 0) return true;
  index_t step = 1;
  for (int d = extents.dims - 1; d >= 0; --d) {
    if (extents[d] != 1 && strides[d] != step) return false;
    step *= extents[d];
  }
  return true;
}

/// Calls `f.template operator()<N>()` for words of that many bytes: 1, 2, 4, 8 or 16.
template <class F>
void visit_word(std::size_t bytes, const F& f) {
  switch (bytes) {
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    case 4: return f.template operator()<4>();
    case 8: return f.template operator()<8>();
    default: return f.template operator()<16>();
  }
}

}  // namespace detail

/// Read-only elements at `data`, index i at offset sum(i[d] * strides[d]), counted in elements.
struct ConstView {
  const void* data = nullptr;
  DType dtype = DType::uint8;
  Shape extents{};
  Shape strides{};

  index_t size() const { return extents.product(); }
  index_t bytes() const { return size() * index_t(size_of(dtype)); }
  bool contiguous() const { return detail::is_contiguous(extents, strides); }

  /// The elements inside `box`. @pre the box lies within the extents
  ConstView operator[](const Box& box) const {
    const auto* base = static_cast<const std::byte*>(data);
    const bool stays = box.empty() || data == nullptr;  // a view without memory has extents only
    const index_t skip = stays ? 0 : detail::offset_of(box.begin, strides);
    return {base + skip * index_t(size_of(dtype)), dtype, box.extents(), strides};
  }

  /// Dense, row-major elements at `data`.
  static ConstView dense(const void* data, DType dtype, const Shape& extents) {
    return {data, dtype, extents, row_major_strides(extents)};
  }
};

/// The same for elements that can be written.
struct View {
  void* data = nullptr;
  DType dtype = DType::uint8;
  Shape extents{};
  Shape strides{};

  operator ConstView() const { return {data, dtype, extents, strides}; }

  index_t size() const { return extents.product(); }
  index_t bytes() const { return size() * index_t(size_of(dtype)); }
  bool contiguous() const { return detail::is_contiguous(extents, strides); }

  /// The elements inside `box`. @pre the box lies within the extents
  View operator[](const Box& box) const {
    auto* base = static_cast<std::byte*>(data);
    const bool stays = box.empty() || data == nullptr;  // a view without memory has extents only
    const index_t skip = stays ? 0 : detail::offset_of(box.begin, strides);
    return {base + skip * index_t(size_of(dtype)), dtype, box.extents(), strides};
  }

  static View dense(void* data, DType dtype, const Shape& extents) {
    return {data, dtype, extents, row_major_strides(extents)};
  }
};

}  // namespace cleave::inline v0
