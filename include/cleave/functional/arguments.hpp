// What functional collectives take: a local tensor, or the result of another collective, for which
// they wait; coalesced ones a list, a tuple of any types or a vector of one, and they return their
// results in the same form.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/core/call_site.hpp>
#include <cleave/functional/functional_ranks.hpp>
#include <cleave/functional/run_functional.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::functional {

namespace detail {

/// The tensor of an argument.
template <class X>
struct Argument {
  static_assert(sizeof(X*) == 0,
                "cleave: functional collectives take a local Tensor or the result of another one; "
                "redistribute a DTensor, and pass value() of a tensor that tracks gradients: "
                "gradients do not pass through functional collectives");
  using type = Tensor<float, 1>;
  static type of(const X&);
};
template <class T, int Rank, class Device>
struct Argument<Tensor<T, Rank, Device>> {
  using type = Tensor<T, Rank, Device>;
  static const type& of(const type& x) { return x; }
};
template <class X>
struct Argument<Async<X>> {
  using type = typename Argument<X>::type;
  static const type& of(const Async<X>& x) { return x.wait(); }
};

template <class X>
using tensor_t = typename Argument<X>::type;

template <class X>
inline constexpr bool is_argument = is_tensor<X>;
template <class X>
inline constexpr bool is_argument<Async<X>> = is_tensor<X>;

/// The tensors of a list by value.
template <class List>
struct TensorsOf {};
template <class... X>
  requires(is_argument<std::remove_cvref_t<X>> && ...)
struct TensorsOf<std::tuple<X...>> {
  using type = std::tuple<tensor_t<std::remove_cvref_t<X>>...>;
};
template <class T, int Rank, class Device>
struct TensorsOf<std::vector<Tensor<T, Rank, Device>>> {
  using type = std::vector<Tensor<T, Rank, Device>>;
};

/// The device that all tensors of a list are on; a single tensor counts as a list.
template <class X>
struct DeviceOfList {
  using type = typename X::device_type;
};
template <class First, class... More>
struct DeviceOfList<std::tuple<First, More...>> {
  using type = typename First::device_type;
  static_assert((std::is_same_v<type, typename More::device_type> && ...),
                "cleave: the tensors of one collective must be on one device");
};
template <>
struct DeviceOfList<std::tuple<>> {
  using type = Host;
};
template <class X>
struct DeviceOfList<std::vector<X>> : DeviceOfList<X> {};
template <class List>
using DeviceOf = typename DeviceOfList<List>::type;

/// Calls f(tensor) for a tensor, or for each of a list, in order.
template <class List, class F>
void for_each_tensor(List& list, F f) {
  if constexpr (is_tensor<std::remove_const_t<List>>) f(list);
  else if constexpr (requires { std::tuple_size<std::remove_const_t<List>>::value; })
    std::apply([&](auto&... tensors) { (f(tensors), ...); }, list);
  else
    for (auto& tensor : list) f(tensor);
}

}  // namespace detail

/// A tuple of tensors of any types (`std::tuple{a, b}`, `std::tie(a, b)`), or a `std::vector` of
/// tensors of one type.
template <class List>
concept TensorList = requires { typename detail::TensorsOf<List>::type; };

/// The same tensors by value: the results of a coalesced collective.
template <TensorList List>
using Tensors = typename detail::TensorsOf<List>::type;

namespace detail {

/// The input of a call by value: it shares the elements of the argument.
/// @throws what the collective threw of which x is the result
template <class X>
auto input_of(const X& x) {
  if constexpr (TensorList<X>) return Tensors<X>(x);
  else return tensor_t<X>(Argument<X>::of(x));
}

/// A collective that has been called but not started, and its input: a tensor, or those of a list.
template <class Input>
struct Call : Entry {
  Input input;

  template <class X>
  Call(const char* operation, const X& x, const Group& group, CallSite where)
      : Entry(DeviceOf<Input>{}, operation, group, where), input(input_of(x)) {}

  /// Starts f(channel) asynchronously.
  template <class F>
  auto start(F f) const {
    return Entry::start(DeviceOf<Input>{}, std::move(f));
  }
};
template <class X>
Call(const char*, const X&, const Group&, CallSite)
    -> Call<decltype(input_of(std::declval<const X&>()))>;

}  // namespace detail

/// A dimension of each tensor of a list: one for all, or one for each. Negative ones count from
/// the end.
class Dims {
 public:
  Dims(int dim) : dims_{dim}, for_all_(true) {}
  Dims(std::vector<int> dims) : dims_(std::move(dims)) {}
  Dims(std::initializer_list<int> dims) : dims_(dims) {}

  /// The dimension of tensor `index` of `count`.
  /// @throws Error if the numbers of dimensions and of tensors differ
  int of(std::size_t index, std::size_t count, const detail::Entry& entry) const {
    if (for_all_) return dims_[0];
    if (dims_.size() != count)
      entry.fail(std::to_string(dims_.size()) + " dimensions are given for " +
                 std::to_string(count) + " tensors");
    return dims_[index];
  }

 private:
  std::vector<int> dims_;
  bool for_all_ = false;
};

}  // namespace cleave::inline v0::functional
