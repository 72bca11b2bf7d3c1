// Conversion of tensors from and to views like std::mdspan, Kokkos' and CUDA's.
//
// None of their headers is included: a view is any type with rank(), extent(d), stride(d),
// data_handle() and element_type. Conversion to a view also requires mapping_type and extents_type.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

/// A strided view of elements of a type that a tensor can hold.
template <class View>
concept MdspanLike = requires(const View& view) {
  typename View::element_type;
  { View::rank() } -> std::convertible_to<std::size_t>;
  { view.extent(0) } -> std::convertible_to<index_t>;
  { view.stride(0) } -> std::convertible_to<index_t>;
  { view.data_handle() } -> std::convertible_to<const typename View::element_type*>;
} && Element<std::remove_cv_t<typename View::element_type>>;

namespace detail {

template <class View>
inline constexpr int rank_of_view = int(View::rank());

template <MdspanLike View>
auto extents_of_view(const View& view) {
  std::array<index_t, std::size_t(View::rank())> extents{};
  for (std::size_t d = 0; d < extents.size(); ++d) extents[d] = index_t(view.extent(d));
  return extents;
}

template <MdspanLike View>
auto strides_of_view(const View& view) {
  std::array<index_t, std::size_t(View::rank())> strides{};
  for (std::size_t d = 0; d < strides.size(); ++d) strides[d] = index_t(view.stride(d));
  return strides;
}

/// The numbers as a List{..}: every implementation has its own extents and arrays.
template <class List, class Index, std::size_t... D>
List list_of(const std::array<Index, sizeof...(D)>& numbers, std::index_sequence<D...>) {
  return List{numbers[D]...};
}

/// A mapping made from extents and strides. Its strides() has the type of the strides.
template <class Mapping>
concept StridedMapping =
    requires(const Mapping& mapping, const typename Mapping::extents_type& extents) {
      Mapping(extents, mapping.strides());
    };

}  // namespace detail

/// A tensor of the elements of a view with any layout, without copying.
///
/// @param owner  held until the last handle is destroyed; null if the elements outlive the tensor
/// @throws Error for negative extents and for a null view that should have elements
template <MdspanLike View>
auto as_tensor(const View& view, std::shared_ptr<void> owner = nullptr) {
  static_assert(!std::is_const_v<typename View::element_type>,
                "cleave: a Tensor's elements can be written; use to_tensor to copy a view of const "
                "elements");
  using T = typename View::element_type;
  return Tensor<T, detail::rank_of_view<View>>::adopt(
      view.data_handle(), detail::extents_of_view(view), detail::strides_of_view(view),
      std::move(owner));
}

/// A row-major tensor with a copy of the view's elements, which may be const.
template <MdspanLike View>
auto to_tensor(const View& view) {
  using T = std::remove_cv_t<typename View::element_type>;
  constexpr int dims = detail::rank_of_view<View>;
  Tensor<T, dims> result(detail::extents_of_view(view));
  strided_copy({view.data_handle(), dtype_of<T>(), Shape(result.shape()),
                Shape(detail::strides_of_view(view))},
               result.view());
  return result;
}

/// A view of type `View` of the tensor's elements, which it neither copies nor owns.
///
/// Works with any layout whose mapping is made from extents (row-major, column-major) or from
/// extents and strides, and with static extents.
/// @throws Error if an extent differs from the view's static one, if the layout's strides differ
///         from the tensor's, or if the view's index type is too small
template <class View, Element T, int Rank>
  requires MdspanLike<View>
View to_mdspan(const Tensor<T, Rank>& tensor) {
  static_assert(std::is_same_v<std::remove_const_t<typename View::element_type>, T>,
                "cleave: the view and the tensor have different element types");
  static_assert(detail::rank_of_view<View> == Rank,
                "cleave: the view and the tensor have different numbers of dimensions");
  using Extents = typename View::extents_type;
  using Mapping = typename View::mapping_type;
  using Index = typename Extents::index_type;
  std::array<Index, std::size_t(Rank)> extents{}, strides{};
  for (std::size_t d = 0; d < std::size_t(Rank); ++d) {
    extents[d] = static_cast<Index>(tensor.shape()[d]);
    strides[d] = static_cast<Index>(tensor.strides()[d]);
    if (index_t(extents[d]) != tensor.shape()[d] || index_t(strides[d]) != tensor.strides()[d])
      throw Error("to_mdspan", "the view's index type is too small",
                  {.shapes = to_string(Shape(tensor.shape()))});
    if constexpr (requires {
                    Extents::static_extent(d);
                    Extents::rank_dynamic();
                  }) {
      const auto fixed = Extents::static_extent(d);
      if (fixed != static_cast<decltype(fixed)>(-1) && index_t(fixed) != tensor.shape()[d])
        throw Error("to_mdspan",
                    "dimension " + std::to_string(d) + " of the view has the extent " +
                        std::to_string(fixed),
                    {.shapes = to_string(Shape(tensor.shape()))});
    }
  }
  constexpr auto all = std::make_index_sequence<std::size_t(Rank)>{};
  if constexpr (detail::StridedMapping<Mapping>) {
    using Strides = std::remove_cvref_t<decltype(std::declval<const Mapping&>().strides())>;
    return View(tensor.data(), Mapping(detail::list_of<Extents>(extents, all),
                                       detail::list_of<Strides>(strides, all)));
  } else {
    const View view(tensor.data(), Mapping(detail::list_of<Extents>(extents, all)));
    for (std::size_t d = 0; d < std::size_t(Rank); ++d)
      if (!tensor.empty() && extents[d] != 1 && index_t(view.stride(d)) != tensor.strides()[d])
        throw Error("to_mdspan",
                    "the tensor's strides " + to_string(Shape(tensor.strides())) +
                        " are not those of the view's layout, " +
                        to_string(Shape(detail::strides_of_view(view))),
                    {.shapes = to_string(Shape(tensor.shape()))});
    return view;
  }
}

}  // namespace cleave::inline v0
