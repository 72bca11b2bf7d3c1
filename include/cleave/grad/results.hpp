// Operations with several results in the tape: one record for the call and one slot per result,
// which passes its gradient to the record. The gradient of an unused result is zero.
#pragma once

#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/grad/gradient_slot.hpp>
#include <cleave/grad/value.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/shapes/zeros_like.hpp>
#include <cleave/spmd/traced.hpp>

namespace cleave::inline v0::tape {

template <class X>
inline constexpr bool is_tuple = false;
template <class... X>
inline constexpr bool is_tuple<std::tuple<X...>> = true;

template <class... X>
struct GradientType<std::tuple<X...>> {
  using type = std::tuple<typename GradientType<X>::type...>;
};

/// A gradient of x with all elements equal to `value`.
template <class X>
constexpr gradient_t<X> filled_gradient(const X& x, const typename X::value_type& value) {
  using T = typename X::value_type;
  if constexpr (is_tracked<X>) {
    return gradient_t<X>(filled_gradient(x.value(), value));
  } else if constexpr (cleave::detail::is_traced<X>) {
    spmd::Graph& graph = x.graph();
    graph.constants.push_back(spmd::Attributes::of(value));
    const int place = int(graph.constants.size()) - 1;
    const Traced<T, 0, typename X::device_type> number(
        graph, graph.add({-1, 0, place, dtype_of<T>(), Shape{}}));
    if constexpr (X::dims == 0) return number;
    else return broadcast_dims<(1u << X::dims) - 1u>(number, x);
  } else {
    return full_like(x, value);
  }
}

template <class... X>
constexpr std::tuple<X...> hollow(const std::tuple<X...>& x) {
  return std::apply([](const X&... each) { return std::tuple<X...>(hollow(each)...); }, x);
}
template <class... X>
constexpr unsigned changes_of(const std::tuple<X...>& x) {
  return std::apply([](const X&... each) { return (0u + ... + changes_of(each)); }, x);
}

/// The gradients of all results: one each, the sum over the uses of the result.
template <class... X>
class GradientSum<std::tuple<X...>> {
 public:
  constexpr bool empty() const {
    return std::apply([](const auto&... g) { return (!g.has_value() && ...); }, arrived_);
  }
  constexpr void clear() { arrived_ = {}; }

  template <std::size_t K, class G>
  constexpr void put(const G& g) {
    std::get<K>(arrived_).emplace(g);
  }

  constexpr std::tuple<gradient_t<X>...> settle(const std::tuple<X...>& x) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::tuple<gradient_t<X>...>(settled<K>(std::get<K>(x))...);
    }(std::index_sequence_for<X...>{});
  }

 private:
  template <std::size_t K, class A>
  constexpr gradient_t<A> settled(const A& x) const {
    if (const auto& g = std::get<K>(arrived_)) return *g;
    return filled_gradient(x, typename A::value_type(0));
  }

  std::tuple<std::optional<gradient_t<X>>...> arrived_{};
};

/// Result K of a call with the results `All`.
template <class All, std::size_t K>
class ResultSlot : public Slot<std::tuple_element_t<K, All>> {
  using X = std::tuple_element_t<K, All>;

 public:
  constexpr ResultSlot(Slot<All>* call, const X& x) : Slot<X>(&functions, hollow(x)), call_(call) {
    this->operands = &call_;
    this->operand_count = 1;
  }

 private:
  /// Passes the gradient to the record of the call.
  constexpr void pass_on() {
    if (this->sum.empty()) return;
    if (!call_)
      throw Error("backward",
                  "the tape has been freed by an earlier backward; evaluate the function again, or "
                  "call backward(loss, retain)");
    static_cast<Slot<All>*>(call_.get())->sum.template put<K>(this->sum.settle(this->like));
    this->sum.clear();
  }

  static constexpr void destroy_slot(RecordBase* r) { delete static_cast<ResultSlot*>(r); }
  static constexpr void run_slot(RecordBase* r) { static_cast<ResultSlot*>(r)->pass_on(); }
  static constexpr void release_slot(RecordBase* r) { static_cast<ResultSlot*>(r)->call_.reset(); }
  static constexpr Table functions{&destroy_slot, &run_slot, &release_slot, &Slot<X>::forget};

  Ref<RecordBase> call_;
};

/// The results of a call with their places in the tape; results without gradients are unchanged.
template <class... Y>
constexpr auto tracked_results(Slot<std::tuple<Y...>>* call, const std::tuple<Y...>& y) {
  const Ref<RecordBase> held(call);
  const auto tracked = [&]<std::size_t K, class A>(std::integral_constant<std::size_t, K>,
                                                   const A& x) {
    if constexpr (std::is_integral_v<typename A::value_type>) return x;
    else return Tracked<A>(x, new ResultSlot<std::tuple<Y...>, K>(call, x));
  };
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return std::tuple{tracked(std::integral_constant<std::size_t, K>{}, std::get<K>(y))...};
  }(std::index_sequence_for<Y...>{});
}

}  // namespace cleave::inline v0::tape
