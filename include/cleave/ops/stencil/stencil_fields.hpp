// The fields of a stencil on one rank: what it reads of other ranks, and the elements it computes.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/ops/stencil/edges.hpp>
#include <cleave/ops/stencil/filled_margin.hpp>
#include <cleave/ops/stencil/reach.hpp>
#include <cleave/ops/stencil/stencil_on_device.hpp>
#include <cleave/ops/stencil/stencil_plan.hpp>
#include <cleave/ops/stencil/stencil_rows.hpp>
#include <cleave/redistribute/read_boxes.hpp>
#include <cleave/tensor/margin.hpp>
#include <cleave/tensor/overlap.hpp>

namespace cleave::inline v0::detail {

/// The argument that a stencil takes for an operand.
template <class X>
struct StencilArgument {
  using type = FieldAt<typename X::value_type, X::dims>;
};
template <class T>
struct StencilArgument<Number<T>> {
  using type = T;
};

/// The number of results of a stencil.
template <class S, class... X>
constexpr std::size_t count_stencil_results() {
  using Value = decltype(std::declval<const S&>()(
      std::declval<const typename StencilArgument<X>::type&>()...));
  if constexpr (is_tuple_of_results<Value>) return std::tuple_size_v<Value>;
  else return 1;
}

/// The operand whose extents and element type the results have: the first field, unless the
/// stencil names another.
template <class S, class... X>
constexpr std::size_t result_like() {
  if constexpr (requires { S::result_like; }) {
    return S::result_like;
  } else {
    const bool is_field[] = {!is_number<X>...};
    std::size_t first = 0;
    while (!is_field[first]) ++first;
    return first;
  }
}

/// A stencil that knows the extents of its fields, if it requires them.
template <class S>
auto bound_stencil(const S& stencil, std::span<const FieldWindow> fields) {
  if constexpr (requires { stencil.bound_to(fields); }) return stencil.bound_to(fields);
  else return stencil;
}

/// The compile-time constants of a stencil on operands X, tensors and Numbers.
template <class S, class... X>
struct StencilCall {
  using First = first_tensor_t<X...>;
  static constexpr std::size_t like = result_like<S, X...>();  ///< an operand
  using T = typename std::tuple_element_t<like, std::tuple<X...>>::value_type;
  using Device = typename First::device_type;
  static constexpr int dims = First::dims;
  static constexpr std::size_t fields = (0 + ... + std::size_t(!is_number<X>));

  static constexpr bool check_operands() {
    constexpr bool has_dims = dims > 0;
    constexpr bool same_dims = ((is_number<X> || X::dims == dims) && ...);
    constexpr bool alike = ((is_number<X> || is_dtensor<X> == is_dtensor<First>) && ...);
    constexpr bool on_one_mesh = (on_mesh<typename MeshOf<X...>::type, X>() && ...);
    constexpr bool on_one_device = (on_device<X>() && ...);
    static_assert(has_dims, "cleave: a stencil requires fields with at least one dimension");
    static_assert(same_dims,
                  "cleave: the fields of a stencil must have the same number of dimensions");
    static_assert(alike,
                  "cleave: an operation mixes a Tensor with DTensors; place the Tensor first "
                  "(distribute_tensor, from_local)");
    static_assert(on_one_mesh,
                  "cleave: the operands of an operation are on meshes of different types");
    static_assert(on_one_device,
                  "cleave: the fields of a stencil are on different devices; copy them: "
                  ".to(Host{})");
    return has_dims && same_dims && alike && on_one_mesh && on_one_device;
  }
  template <class Operand>
  static constexpr bool on_device() {
    if constexpr (is_number<Operand>) return true;
    else return std::is_same_v<typename Operand::device_type, Device>;
  }

  /// The reach in each field.
  static constexpr std::array<FieldReach, fields> reaches = [] {
    constexpr auto found = field_reaches_of<S, typename TypeEntry<X>::type...>;
    constexpr bool is_field[] = {!is_number<X>...};
    std::array<FieldReach, fields> result{};
    std::size_t next = 0;
    for (std::size_t i = 0; i < sizeof...(X); ++i)
      if (is_field[i]) result[next++] = found[i];
    return result;
  }();
  /// Whether element i of the result is at index i of all fields.
  static constexpr bool is_aligned = !declares_stride<S>;

  static constexpr bool check_reach() {
    constexpr bool has_dims = [] {
      for (const Reach& reach : reaches_of<S, typename TypeEntry<X>::type...>.of)
        if (reach.dims != 0 && reach.dims != dims) return false;
      return true;
    }();
    constexpr bool has_strides = []<std::size_t... I>(std::index_sequence<I...>) {
      return (declared_stride<S, I>().is_valid(dims) && ...);
    }(std::index_sequence_for<X...>{});
    static_assert(has_strides,
                  "cleave: the stride of a stencil is one positive number for all dimensions of "
                  "its fields, or one per dimension: coarsen(2), refine(1, 2)");
    static_assert(has_dims,
                  "cleave: the reach of a stencil has another number of dimensions than its "
                  "fields; it reads u(-1, 0) in two dimensions, u(0, 0, 1) in three");
    return has_dims && has_strides;
  }

  static constexpr std::size_t results() { return count_stencil_results<S, X...>(); }
};

/// A local field whose innermost dimension has stride 1: a copy if need be.
template <class T, int Rank, class Device>
Tensor<T, Rank, Device> with_rows(const Tensor<T, Rank, Device>& x) {
  constexpr auto last = std::size_t(Rank - 1);
  return x.shape()[last] > 1 && x.strides()[last] != 1 ? x.clone() : x;
}
template <class T>
Number<T> with_rows(const Number<T>& x) {
  return x;
}
/// The local part of an operand.
template <class X>
const auto& local_part(const X& x) {
  if constexpr (is_dtensor<X>) return x.to_local();
  else return x;
}
/// The global indices of the local part.
template <class X>
Box own_box_of(const X& x) {
  if constexpr (is_dtensor<X>) return x.local_box();
  else return Box::of(Shape(x.shape()));
}

/// The edges of a call, and the ghosts of each operand that exchange_halo has received; null: none.
template <class E, std::size_t Operands>
struct EdgesAndGhosts {
  const E& edges;
  std::array<const FilledMargin*, Operands> ghosts;
};
template <class E>
inline constexpr bool has_ghosts = false;
template <class E, std::size_t Operands>
inline constexpr bool has_ghosts<EdgesAndGhosts<E, Operands>> = true;
/// Adds a field. @param part  its local part, see with_rows
template <class X, class Part, class... Edge>
void add_field(StencilFields& fields, const X& x, const Part& part, const FieldReach& reach,
               const Edges<Edge...>& of_domain) {
  using E = Edges<Edge...>;
  using Device = typename X::device_type;
  fields.allocate = [](std::size_t bytes) { return allocate_bytes(Device{}, bytes); };
  fields.read = &redistribution::read_boxes<Device>;
  fields.add({part.view(),
              own_box_of(x),
              {},
              {},
              Shape(x.shape()),
              ~0u,
              reach,
              edges_of_domain<typename X::value_type, X::dims>(of_domain),
              &of_domain,
              &fill_boxes<typename X::value_type, X::dims, Device, E>},
             margin_around(part.storage(), part.view()));
}
template <class X, class Part, class E, std::size_t Operands>
void add_field(StencilFields& fields, const X& x, const Part& part, const FieldReach& reach,
               const EdgesAndGhosts<E, Operands>& of_domain) {
  add_field(fields, x, part, reach, of_domain.edges);
}

/// @param x      the operands
/// @param local  their local parts, see with_rows
/// @throws Error if ghosts that exchange_halo has received are out of date
template <class Call, class E, class... X, class... Local>
StencilFields stencil_fields(const char* name, const E& of_domain, const std::tuple<const X&...>& x,
                             const std::tuple<Local...>& local) {
  StencilFields fields;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto add = [&](std::size_t i, const auto& operand, const auto& part) {
      if constexpr (!is_number<std::remove_cvref_t<decltype(operand)>>) {
        const std::size_t k = fields.window.size();
        if (i == Call::like) fields.like = k;
        add_field(fields, operand, part, Call::reaches[k], of_domain);
        if constexpr (has_ghosts<E>) {
          const FilledMargin* const ghosts = of_domain.ghosts[i];
          if (ghosts != nullptr && knows_extents(operand))
            use_filled_margin(name, fields, k, *ghosts, part.storage(),
                              changes_in(typename Call::Device{}, part.storage()),
                              context_of(operand));
        }
      }
    };
    (add(I, std::get<I>(x), std::get<I>(local)), ...);
  }(std::index_sequence_for<X...>{});
  return fields;
}

/// The addresses of Numbers; null for fields.
template <class... X>
std::array<const void*, sizeof...(X)> numbers_of(const std::tuple<X...>& operands) {
  const auto number = [](const auto& operand) -> const void* {
    if constexpr (is_number<std::remove_cvref_t<decltype(operand)>>) return &operand;
    else return nullptr;
  };
  return std::apply(
      [&](const X&... x) { return std::array<const void*, sizeof...(X)>{number(x)...}; }, operands);
}

/// Computes this rank's part on another device than the host.
template <class Call, class S, class... X, class... Y>
void run_on_device(const S& stencil, const StencilFields& fields, const std::tuple<X...>& operands,
                   const Y&... to) {
  const auto operand = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    using X0 = std::tuple_element_t<I, std::tuple<X...>>;
    OperandOnDevice<S, I, typename TypeEntry<X0>::type, Call::dims> result;
    if constexpr (is_number<X0>) result.value = std::get<I>(operands).value;
    return result;
  };
  SweepOnDevice<typename Call::Device> sweep(fields.window, fields.part);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    using Operands = Types<OperandOnDevice<S, I, typename TypeEntry<X>::type, Call::dims>...>;
    sweep.run(StencilOnDevice<S, Call::dims, Types<typename Y::value_type...>, Operands>{
        stencil,
        {operand(std::integral_constant<std::size_t, I>{})...},
        {ArrayOnDevice<typename Y::value_type, Call::dims>(to.data(), fields.part.begin,
                                                           Shape(to.strides()))...}});
  }(std::index_sequence_for<X...>{});
}

/// Computes this rank's part.
///
/// @param operands  local parts of fields, and Numbers
/// @param y         the local parts of the results
template <class Call, class S, class... X, class... Y>
void compute_stencil(const S& stencil, StencilFields& fields, const std::tuple<X...>& operands,
                     const Y&... y) {
  const auto rows = [](const auto& target) {  // computed elsewhere and copied if it has gaps
    using Target = std::remove_cvref_t<decltype(target)>;
    constexpr auto last = std::size_t(Target::dims - 1);
    return target.shape()[last] > 1 && target.strides()[last] != 1 ? Target(target.shape())
                                                                   : target;
  };
  const auto run = [&](const auto&... to) {
    using Results = Types<typename Y::value_type...>;
    if constexpr (std::is_same_v<typename Call::Device, Host>) {
      using Loops = StencilLoops<S, Call::dims, Results, typename TypeEntry<X>::type...>;
      const Loops loops{stencil,
                        numbers_of(operands),
                        {ResultRow<typename Y::value_type>{to.data(), Shape(to.strides())}...},
                        fields.part.begin};
      sweep_stencil(fields.window, loops.kernel(), fields.part);
    } else {
      run_on_device<Call>(stencil, fields, operands, to...);
    }
    const auto finish = [](const auto& target, const auto& computed) {
      if (computed.data() != target.data()) target.copy_(computed);
      else note_change(typename Call::Device{}, target.storage());
    };
    (finish(y, to), ...);
  };
  run(rows(y)...);
}

/// Makes results of an element type, or takes the targets' local parts, and computes them.
///
/// @return the local parts as a tuple
template <class Call, class S, class... X, class... Y>
auto stencil_results(const S& stencil, StencilFields& fields, const std::tuple<X...>& operands,
                     const std::tuple<const Y&...>& targets) {
  const Shape extents = fields.part.extents();
  const auto compute = [&](const auto&... y) {
    compute_stencil<Call>(stencil, fields, operands, y...);
    return std::tuple{y...};
  };
  if constexpr (sizeof...(Y) > 0) {
    static_assert(sizeof...(Y) == Call::results(),
                  "cleave: apply takes one target per result of the stencil");
    return std::apply(
        [&](const Y&... y) {
          (check_stencil_target(S::name, local_part(y).view(), extents, fields.window), ...);
          return compute(local_part(y)...);
        },
        targets);
  } else {
    const auto make = [&](std::size_t) {
      return Tensor<typename Call::T, Call::dims, typename Call::Device>(
          to_array<Call::dims>(extents));
    };
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return compute(make(K)...);
    }(std::make_index_sequence<Call::results()>{});
  }
}

}  // namespace cleave::inline v0::detail
