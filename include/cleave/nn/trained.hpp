// The trained parameters of a module, type-erased, for optimizers. One list per call, in the order
// of the parameters.
#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cleave/grad/backward.hpp>
#include <cleave/nn/fields.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/nn/part.hpp>
#include <cleave/nn/visit.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::nn {

/// A tracked parameter: this rank's elements and those of its gradient, under equal placements.
/// @tparam Device  where they are
template <class Device>
struct Trained {
  View value;
  View gradient;  ///< if one has arrived
  bool has_gradient;
  const Layout* layout;   ///< null for a Tensor
  const MeshState* mesh;  ///< null for a Tensor
  tape::RecordBase* leaf;
  View (*own)(tape::RecordBase*);
  const std::shared_ptr<void>* storage;  ///< of the value

  /// Records an in-place change of the elements.
  void record_change() const {
    ++leaf->version;
    note_change(Device{}, *storage);
  }

  /// Makes the leaf's gradient contiguous and unshared, so that it can be changed in place.
  /// @pre has_gradient
  void own_gradient() { gradient = own(leaf); }

  /// Whether this rank is the first of the ranks that hold these elements.
  bool is_first_replica() const {
    if (mesh == nullptr) return true;
    if (!mesh->is_member()) return false;
    for (int a = 0; a < layout->axes; ++a)
      if (!(*layout)[a].shards() && mesh->coordinate()[a] != 0) return false;
    return true;
  }
};

namespace detail {

template <class X>
const auto& local_of(const X& x) {
  if constexpr (is_dtensor<X>) return x.to_local();
  else return x;
}

template <class X>
View own_gradient_of(tape::RecordBase* record) {
  std::optional<gradient_t<X>>& gradient = static_cast<tape::Leaf<X>*>(record)->gradient;
  const auto& local = local_of(*gradient);
  if (local.shared() || !local.contiguous()) {
    if constexpr (is_dtensor<X>)
      gradient.emplace(gradient_t<X>::unchecked(local.clone(), gradient->mesh(), gradient->shape(),
                                                gradient->actual_layout()));
    else gradient.emplace(local.clone());
  }
  return local_of(*gradient).view();
}

template <class X>
auto trained(const Tracked<X>& x) {
  static_assert(!cleave::detail::is_traced<X>,
                "cleave: a traced function may call the steps of optimizers, but no other function "
                "of the gradients of a module; write it with operations in place (map_, mul_)");
  static_assert(std::is_same_v<gradient_t<X>, X>,
                "cleave: a trained parameter must not be Partial, and must be tracked once");
  tape::Leaf<X>& leaf = tape::leaf_of(x, "optimizer");
  Trained<typename X::device_type> result{local_of(x.value()).view(),
                                          {},
                                          leaf.gradient.has_value(),
                                          nullptr,
                                          nullptr,
                                          &leaf,
                                          &own_gradient_of<X>,
                                          &local_of(x.value()).storage()};
  if (leaf.gradient) result.gradient = local_of(*leaf.gradient).view();
  if constexpr (is_dtensor<X>) {
    result.layout = &x.value().actual_layout();
    result.mesh = &x.mesh().state();
  }
  return result;
}

struct SeveralDevices {};

/// The device of two groups of parameters, each on a device, on several, or empty (None).
template <class A, class B>
constexpr auto common_device(A a, B b) {
  if constexpr (std::is_same_v<A, None>) return b;
  else if constexpr (std::is_same_v<B, None> || std::is_same_v<A, B>) return a;
  else return SeveralDevices{};
}

template <class M>
constexpr auto device_of_trained();

constexpr None device_of_parts(Types<>) { return {}; }
template <class X, class... Rest>
constexpr auto device_of_parts(Types<X, Rest...>) {
  return common_device(device_of_trained<X>(), device_of_parts(Types<Rest...>{}));
}
template <class... X>
constexpr auto device_of_parts(const std::tuple<X...>*) {
  return device_of_parts(Types<X...>{});
}

template <class M>
constexpr auto device_of_trained() {
  if constexpr (tape::is_tracked<M>) return typename M::device_type{};
  else if constexpr (Param<M>) return None{};
  else if constexpr (Wrapper<M>) return device_of_trained<plain_t<M>>();
  else if constexpr (is_vector<M>) return device_of_trained<typename M::value_type>();
  else if constexpr (is_tuple<M>) return device_of_parts(static_cast<const M*>(nullptr));
  else if constexpr (Struct<M>) return device_of_parts(fields_t<M>{});
  else return None{};
}

template <class M>
struct TrainedDevice {
  using Found = decltype(device_of_trained<M>());
  static_assert(!std::is_same_v<Found, SeveralDevices>,
                "cleave: the trained parameters of a module must be on one device");
  using type = std::conditional_t<std::is_same_v<Found, None>, Host, Found>;
};

}  // namespace detail

/// The device of a module's tracked parameters; the host if there are none.
template <class M>
using trained_device_t = typename detail::TrainedDevice<M>::type;

/// The tracked parameters of a module, in order.
template <class M>
std::vector<Trained<trained_device_t<M>>> trained_parameters(const M& m) {
  std::vector<Trained<trained_device_t<M>>> list;
  parameters(m, [&](const auto& x) {
    if constexpr (tape::is_tracked<std::remove_cvref_t<decltype(x)>>)
      list.push_back(detail::trained(x));
  });
  return list;
}

namespace detail {

template <class X>
auto zeros_like(const X& x) {
  const auto& local = local_of(x);
  std::remove_cvref_t<decltype(local)> zeros(local.shape());
  zeros.fill_(typename X::value_type(0));
  if constexpr (is_dtensor<X>) return X::unchecked(zeros, x.mesh(), x.shape(), x.actual_layout());
  else return zeros;
}

/// The elements of a module's tensors on this rank, in the order of its parameters.
template <class M>
std::vector<View> views_of(const M& m) {
  std::vector<View> views;
  parameters(m, [&](const auto& x) { views.push_back(local_of(x).view()); });
  return views;
}

}  // namespace detail

/// An untracked module of zeros with the names and placements of another module's tracked
/// parameters; None replaces untracked ones.
template <class M>
auto zeros_like_trained(const M& m) {
  return map_parameters(unwrapped(m), [](const auto& x) {
    if constexpr (tape::is_tracked<std::remove_cvref_t<decltype(x)>>)
      return detail::zeros_like(x.value());
    else return None{};
  });
}

}  // namespace cleave::inline v0::nn
