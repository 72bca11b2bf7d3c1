// A dense or strided array of fixed rank: a handle on shared storage, local to one rank.
//
// Copying a Tensor copies the handle; `clone` copies the elements. Views (`slice`, `select`,
// `transpose`, `permute`, ..) share the storage and keep it alive.
//
// As with std::span, `const` applies to the handle: a const Tensor always refers to the same
// elements, and `x(i, j) = v` and `x.data()` write to them. The names of members that write to
// elements end in an underscore: `fill_`, `copy_`. Functions of the library never write to their
// arguments unless their names end in an underscore, too.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/overlap.hpp>
#include <cleave/tensor/refused.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

template <Element T, int Rank, class Device>
class Tensor;

namespace detail {

struct TensorAccess;

template <class T, int Rank, class Device>
inline constexpr int call_level<Tensor<T, Rank, Device>> = 0;

}  // namespace detail

/// An array of `Rank` dimensions with elements T in the memory of `Device`.
///
/// @tparam T     one of the types of `DType`
/// @tparam Rank  0 (a scalar) to 8
template <Element T, int Rank, class Device = Host>
class Tensor : public RefusedConversions<Tensor<T, Rank, Device>> {
  static_assert(Rank >= 0 && Rank <= max_dims, "cleave: a Tensor has 0 to 8 dimensions");

 public:
  using value_type = T;
  using device_type = Device;
  using Extents = std::array<index_t, std::size_t(Rank)>;
  static constexpr int dims = Rank;

  /// Every extent is 0: no elements; a scalar (Rank 0) has one uninitialised element.
  Tensor() : Tensor(Extents{}) {}

  /// Fresh, uninitialised, row-major. @throws Error for a negative extent or lack of memory
  explicit Tensor(const Extents& extents) : extents_(extents) {
    storage_ = allocate_bytes(Device{}, detail::checked_bytes(extents.data(), Rank, sizeof(T)));
    data_ = static_cast<T*>(storage_.get());
    strides_ = to_array<Rank>(row_major_strides(Shape(extents)));
  }

  /// Only a message: another number of extents.
  template <std::size_t N>
    requires(N != std::size_t(Rank))
  explicit Tensor(const index_t (&)[N]) {
    static_assert(N == std::size_t(Rank),
                  "cleave: a Tensor<T, Rank> takes Rank extents: Tensor<float, 2> x({3, 4})");
  }
  template <std::size_t N>
    requires(N != std::size_t(Rank))
  Tensor(const index_t (&extents)[N], std::initializer_list<T>) : Tensor(extents) {}

  /// Fresh, row-major, filled from a flat list of values in row-major order.
  /// @throws Error if there are not exactly as many values as elements
  Tensor(const Extents& extents, std::initializer_list<T> values) : Tensor(extents) {
    if (index_t(values.size()) != size())
      throw Error(
          "Tensor",
          std::to_string(values.size()) + " values for " + std::to_string(size()) + " elements",
          {.shapes = to_string(Shape(extents))});
    static_assert(std::is_same_v<Device, Host>,
                  "cleave: the host cannot write a device tensor; make one on the host and copy "
                  "it: .to(Cuda{})");
    index_t i = 0;
    for (const T& value : values) data_[i++] = value;
  }

  /// Adopts the user's row-major buffer without copying; `owner`, e.g. a
  /// `shared_ptr<void>(buffer, deleter)`, is held until the last view is destroyed. Without an
  /// owner the buffer must outlive all views.
  /// @throws Error for a negative extent and for a null buffer that should have elements
  static Tensor adopt(T* data, const Extents& extents) { return adopt(data, extents, nullptr); }
  template <class Owner>
    requires std::is_convertible_v<Owner, std::shared_ptr<void>>
  static Tensor adopt(T* data, const Extents& extents, Owner owner) {
    detail::checked_bytes(extents.data(), Rank, sizeof(T));
    return adopt(data, extents, to_array<Rank>(row_major_strides(Shape(extents))),
                 std::move(owner));
  }
  /// The same with strides, in elements.
  static Tensor adopt(T* data, const Extents& extents, const Extents& strides,
                      std::shared_ptr<void> owner = nullptr) {
    if (detail::checked_bytes(extents.data(), Rank, sizeof(T)) != 0 && data == nullptr)
      throw Error("Tensor", "a null buffer has no elements to adopt",
                  {.shapes = to_string(Shape(extents))});
    return Tensor(std::move(owner), data, extents, strides);
  }

  T* data() const noexcept { return data_; }
  const Extents& shape() const noexcept { return extents_; }
  const Extents& strides() const noexcept { return strides_; }
  index_t extent(int d) const { return extents_[std::size_t(checked_dim(d))]; }
  index_t size() const noexcept { return Shape(extents_).product(); }
  bool empty() const noexcept { return size() == 0; }
  /// Row-major without gaps.
  bool contiguous() const noexcept {
    return detail::is_contiguous(Shape(extents_), Shape(strides_));
  }
  /// Whether other handles share the storage.
  bool shared() const noexcept { return storage_.use_count() > 1; }
  const std::shared_ptr<void>& storage() const noexcept { return storage_; }

  /// One element; host only. @pre the indices lie within the extents
  template <class... Index>
    requires(std::is_integral_v<Index> && ...)
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == std::size_t(Rank),
                  "cleave: an element of a Tensor has one index per dimension: x(i, j)");
    static_assert(std::is_same_v<Device, Host>,
                  "cleave: the host cannot read elements of a device tensor; copy it first");
    index_t offset = 0;
    std::size_t d = 0;
    ((offset += index_t(index) * strides_[d++]), ...);
    return data_[offset];
  }

  /// The element of a tensor that has exactly one; waits for a device.
  /// @throws Error if it has more or none
  T item() const {
    if (size() != 1)
      throw Error("item", "the tensor has " + std::to_string(size()) + " elements, not one",
                  {.shapes = to_string(Shape(extents_))});
    if constexpr (std::is_same_v<Device, Host>) return *data_;
    else return to(Host{}).item();
  }

  /// The tensor itself, for functions that are written for distributed tensors too: all elements
  /// are on this rank, under any placements.
  Tensor to_local() const { return *this; }
  Tensor full_tensor() const { return *this; }
  template <class... P>
    requires(sizeof...(P) > 0 && (std::is_empty_v<P> && ...))
  Tensor redistribute(P...) const {
    return *this;
  }

  /// Type-erased views of the elements.
  View view() const { return {data_, dtype_of<T>(), Shape(extents_), Shape(strides_)}; }

  /// [begin, end) of dimension d, without copying. Negative d counts from the end.
  Tensor slice(int d, index_t begin, index_t end) const {
    const auto k = std::size_t(checked_dim(d));
    if (begin < 0 || end < begin || end > extents_[k])
      throw Error("slice",
                  "[" + std::to_string(begin) + ", " + std::to_string(end) +
                      ") is not in dimension " + std::to_string(k),
                  {.shapes = to_string(Shape(extents_))});
    Tensor result = *this;
    result.extents_[k] = end - begin;
    if (!result.empty()) result.data_ += begin * strides_[k];
    return result;
  }

  /// The elements with index `at` in dimension d, which is removed. Negative d counts from the end.
  auto select(int d, index_t at) const {
    static_assert(Rank > 0, "cleave: select requires a dimension");
    const int k = checked_dim(d);
    if (at < 0 || at >= extents_[std::size_t(k)])
      throw Error("select",
                  "index " + std::to_string(at) + " is not in dimension " + std::to_string(k),
                  {.shapes = to_string(Shape(extents_))});
    const Tensor row = slice(k, at, at + 1);
    std::array<index_t, std::size_t(Rank - 1)> extents{}, strides{};
    for (int i = 0, j = 0; i < Rank; ++i) {
      if (i == k) continue;
      extents[std::size_t(j)] = extents_[std::size_t(i)];
      strides[std::size_t(j++)] = strides_[std::size_t(i)];
    }
    return Tensor<T, Rank - 1, Device>::adopt(row.data(), extents, strides, storage_);
  }

  /// Dimension i of the result is dimension order[i] of this tensor.
  Tensor permute(const std::array<int, std::size_t(Rank)>& order) const {
    Tensor result = *this;
    unsigned seen = 0;
    for (std::size_t i = 0; i < std::size_t(Rank); ++i) {
      const auto k = std::size_t(checked_dim(order[i]));
      if (seen >> k & 1u)
        throw Error("permute", "dimension " + std::to_string(k) + " is named twice");
      seen |= 1u << k;
      result.extents_[i] = extents_[k];
      result.strides_[i] = strides_[k];
    }
    return result;
  }

  /// The tensor with two dimensions exchanged.
  Tensor transpose(int a, int b) const {
    Tensor result = *this;
    const auto i = std::size_t(checked_dim(a)), j = std::size_t(checked_dim(b));
    std::swap(result.extents_[i], result.extents_[j]);
    std::swap(result.strides_[i], result.strides_[j]);
    return result;
  }

  /// A new dimension of extent 1 before dimension d (d == Rank appends it).
  Tensor<T, Rank + 1, Device> unsqueeze(int d) const {
    const int k = d < 0 ? d + Rank + 1 : d;
    if (k < 0 || k > Rank)
      throw Error("unsqueeze", "a dimension cannot be inserted at " + std::to_string(d),
                  {.shapes = to_string(Shape(extents_))});
    std::array<index_t, std::size_t(Rank + 1)> extents{}, strides{};
    for (int i = 0; i <= Rank; ++i) {
      const auto from = std::size_t(i < k ? i : i - 1);
      extents[std::size_t(i)] = i == k ? 1 : extents_[from];
      strides[std::size_t(i)] = i == k ? 1 : strides_[from];
    }
    return Tensor<T, Rank + 1, Device>::adopt(data_, extents, strides, storage_);
  }

  template <std::integral Index>
  T& operator[](Index i) const {
    static_assert(sizeof(Index) == 0,
                  "cleave: write x(i, j) for an element of a Tensor, x.select(0, i) for a row");
    return data_[i];
  }
  /// The elements inside the box, without copying. @throws Error if it reaches outside
  Tensor operator[](const Box& box) const {
    bool inside = box.dims() == Rank && Box::of(Shape(extents_)).contains(box);
    for (int d = 0; d < box.dims(); ++d) inside = inside && box.extent(d) >= 0;
    if (!inside)
      throw Error("Tensor", "a box exceeds the tensor", {.shapes = to_string(Shape(extents_))});
    Tensor result = *this;
    result.extents_ = to_array<Rank>(box.extents());
    if (!result.empty()) result.data_ += detail::offset_of(box.begin, Shape(strides_));
    return result;
  }

  /// The same elements with other extents, without copying.
  /// @throws Error if the tensor is not contiguous or the numbers of elements differ
  template <std::size_t NewRank>
  Tensor<T, int(NewRank), Device> reshape(const std::array<index_t, NewRank>& extents) const {
    const std::size_t bytes = detail::checked_bytes(extents.data(), int(NewRank), sizeof(T));
    if (!contiguous() || index_t(bytes / sizeof(T)) != size())
      throw Error("reshape",
                  contiguous() ? "the numbers of elements differ"
                               : "the tensor is not contiguous; clone it first",
                  {.shapes = to_string(Shape(extents_)) + " to " + to_string(Shape(extents))});
    return Tensor<T, int(NewRank), Device>::adopt(data_, extents, storage_);
  }

  /// A dense copy of the elements in new storage.
  Tensor clone() const {
    Tensor result(extents_);
    strided_copy(Device{}, view(), result.view());
    return result;
  }

  /// The elements in the memory of a device: `x.to(Cuda{})`, `y.to(Host{})`.
  ///
  /// @return a dense copy; this tensor itself if it is there already
  template <class Other>
  Tensor<T, Rank, Other> to(Other other) const {
    if constexpr (std::is_same_v<Other, Device>) {
      return *this;
    } else {
      if (!contiguous()) {
        if constexpr (std::is_same_v<Device, Host>) return clone().to(other);
        else return memory_on(other).clone();
      }
      const Tensor<T, Rank, Other> result(extents_);
      transfer(Device{}, other, data_, result.data(), std::size_t(size()) * sizeof(T));
      return result;
    }
  }

  /// Copies the elements of `source`, with any strides.
  /// @throws Error if the extents differ, or this tensor repeats elements
  void copy_(const Tensor& source) const {
    if (source.extents_ != extents_)
      throw Error(
          "copy_", "the extents differ",
          {.shapes = to_string(Shape(source.extents_)) + " to " + to_string(Shape(extents_))});
    detail::require_distinct_elements("copy_", view());
    note_change(Device{}, storage_);
    strided_copy(Device{}, source.view(), view());
  }

  /// Sets every element. @throws Error if this tensor repeats elements
  void fill_(const T& value) const {
    detail::require_distinct_elements("fill_", view());
    note_change(Device{}, storage_);
    strided_fill(Device{}, view(), value);
  }

 private:
  friend detail::TensorAccess;

  Tensor(std::shared_ptr<void> storage, T* data, const Extents& extents, const Extents& strides)
      : storage_(std::move(storage)), data_(data), extents_(extents), strides_(strides) {}

  /// A view of a copy of all memory between the first and the last element.
  template <class Other>
  Tensor<T, Rank, Other> memory_on(Other other) const {
    index_t begin = 0, end = 1;
    for (int d = 0; d < Rank; ++d) {
      const index_t reach = (extents_[std::size_t(d)] - 1) * strides_[std::size_t(d)];
      (reach < 0 ? begin : end) += reach;
    }
    const Tensor<T, 1, Other> memory({end - begin});
    transfer(Device{}, other, data_ + begin, memory.data(), std::size_t(end - begin) * sizeof(T));
    return Tensor<T, Rank, Other>::adopt(memory.data() - begin, extents_, strides_,
                                         memory.storage());
  }

  int checked_dim(int d) const {
    const int k = d < 0 ? d + Rank : d;
    if (k < 0 || k >= Rank)
      throw Error(
          "Tensor",
          "dimension " + std::to_string(d) + " of " + std::to_string(Rank) + " does not exist",
          {.shapes = to_string(Shape(extents_))});
    return k;
  }

  std::shared_ptr<void> storage_;
  T* data_ = nullptr;
  Extents extents_{};
  Extents strides_{};
};

namespace detail {

/// Makes tensors of the results of operations, without checking them again.
struct TensorAccess {
  template <class X>
  static X make(std::shared_ptr<void>&& storage, void* data, const index_t* extents,
                const index_t* strides) {
    return X(std::move(storage), static_cast<typename X::value_type*>(data),
             to_array<X::dims>(extents), to_array<X::dims>(strides));
  }
};

}  // namespace detail

template <class T>
inline constexpr bool is_tensor = false;
template <class T, int Rank, class Device>
inline constexpr bool is_tensor<Tensor<T, Rank, Device>> = true;

}  // namespace cleave::inline v0
