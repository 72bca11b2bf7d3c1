// Tensors and Kokkos views of the same memory. Needs Kokkos (Debian: libtrilinos-kokkos-dev).
//
//     const auto u = from_local(kokkos::as_tensor(view), mesh, Shard<0>{});
//     const auto again = kokkos::view(u.to_local());  // for Kokkos::parallel_for
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::kokkos {

namespace detail {

template <class T, int Rank>
struct Pointers {
  using type = typename Pointers<T, Rank - 1>::type*;
};
template <class T>
struct Pointers<T, 0> {
  using type = T;
};

/// Kokkos's names of the element types that it spells otherwise.
template <class T>
struct ElementOf {
  using type = T;
};
template <class T>
struct ElementOf<Kokkos::complex<T>> {
  using type = std::complex<T>;
};

}  // namespace detail

/// A tensor of a view's elements, without a copy, of any layout and rank. It keeps the view's
/// allocation; an unmanaged view must outlive it.
///
/// Kernels that write the elements asynchronously must have ended before cleave reads them:
/// `Kokkos::fence()`.
template <class T, class... Properties>
auto as_tensor(const Kokkos::View<T, Properties...>& view) {
  using View = Kokkos::View<T, Properties...>;
  using E = typename detail::ElementOf<typename View::non_const_value_type>::type;
  static_assert(Element<E>, "cleave: kokkos::as_tensor: a Tensor has no elements of this type");
  static_assert(std::is_same_v<typename View::value_type, typename View::non_const_value_type>,
                "cleave: kokkos::as_tensor: the view's elements are const, but a Tensor's can be "
                "written");
  static_assert(
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible,
      "cleave: kokkos::as_tensor: the host cannot access the view's memory space; copy it to a "
      "mirror in HostSpace");
  constexpr std::size_t rank = View::rank;
  std::array<index_t, rank> extents{}, strides{};
  std::array<index_t, rank + 1> all{};  // Kokkos adds the size of the allocation
  view.stride(all.data());
  for (std::size_t d = 0; d < rank; ++d) {
    extents[d] = index_t(view.extent(d));
    strides[d] = all[d];
  }
  return Tensor<E, int(rank)>::adopt(reinterpret_cast<E*>(view.data()), extents, strides,
                                     std::make_shared<View>(view));
}

/// An unmanaged view of a tensor's elements, without a copy, with its strides. The tensor must
/// outlive it.
template <class T, int Rank>
auto view(const Tensor<T, Rank>& x) {
  static_assert(Rank <= 8, "cleave: kokkos::view: a view has at most eight dimensions");
  Kokkos::LayoutStride layout;
  for (std::size_t d = 0; d < std::size_t(Rank); ++d) {
    layout.dimension[d] = std::size_t(x.shape()[d]);
    layout.stride[d] = std::size_t(x.strides()[d]);
  }
  return Kokkos::View<typename detail::Pointers<T, Rank>::type, Kokkos::LayoutStride,
                      Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(x.data(), layout);
}

/// An unmanaged view of a given type, for functions that take it: `kokkos::view_as<Kokkos::View<
/// double**, Kokkos::LayoutRight, Kokkos::HostSpace>>(x)`.
/// @throws Error unless the tensor has the strides of the view's layout
template <class View, class T, int Rank>
View view_as(const Tensor<T, Rank>& x) {
  static_assert(std::is_same_v<typename View::non_const_value_type, T> && View::rank == Rank,
                "cleave: kokkos::view_as: the view has another element type or rank");
  static_assert(
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible,
      "cleave: kokkos::view_as: the tensor is on the host, the view elsewhere");
  constexpr bool is_right = std::is_same_v<typename View::array_layout, Kokkos::LayoutRight>;
  constexpr bool is_left = std::is_same_v<typename View::array_layout, Kokkos::LayoutLeft>;
  static_assert(
      is_right || is_left,
      "cleave: kokkos::view_as makes views of LayoutRight and LayoutLeft; view(x) has the "
      "strides of any tensor");
  static_assert(int(View::rank) == int(View::rank_dynamic),
                "cleave: kokkos::view_as: the view has extents in its type");
  index_t expected = 1;
  for (int k = 0; k < Rank; ++k) {
    const auto d = std::size_t(is_right ? Rank - 1 - k : k);
    if (x.shape()[d] != 1 && x.size() > 0 && x.strides()[d] != expected)
      throw Error("kokkos::view_as",
                  std::string("the tensor has the strides ") + to_string(Shape(x.strides())) +
                      ", not those of " + (is_right ? "LayoutRight" : "LayoutLeft"),
                  {.shapes = to_string(Shape(x.shape()))});
    expected *= x.shape()[d];
  }
  return [&]<std::size_t... D>(std::index_sequence<D...>) {
    return View(x.data(), typename View::array_layout(std::size_t(x.shape()[D])...));
  }(std::make_index_sequence<std::size_t(Rank)>{});
}

}  // namespace cleave::inline v0::kokkos
