// exchange_halo: receives ghosts into the margins of tensors before something reads them.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/ops/stencil/edges.hpp>
#include <cleave/ops/stencil/halo.hpp>
#include <cleave/ops/stencil/stencil_fields.hpp>
#include <cleave/ops/stencil/stencil_plan.hpp>
#include <cleave/redistribute/read_boxes.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The width of a tensor's margin as a reach; nothing if there is no margin.
template <class Part>
Reach margin_reach(const Part& part) {
  Reach reach{Part::dims};
  if (const ReturnMargin* const margin = margin_around(part.storage(), part.view()))
    for (int d = 0; d < Part::dims; ++d) {
      reach.hi[d] = int(margin->width[d]);
      reach.lo[d] = -reach.hi[d];
    }
  reach.corners = Part::dims > 1;
  return reach;
}

template <class X, class Y>
bool on_same_mesh(const X& x, const Y& y) {
  if constexpr (is_dtensor<X>) return x.mesh() == y.mesh();
  else return true;
}

/// One exchange of the ghosts of some tensors, which this keeps.
template <class E, class... X>
class HaloExchange {
 public:
  static constexpr const char* name = "exchange_halo";
  using First = std::tuple_element_t<0, std::tuple<X...>>;
  using Device = typename First::device_type;

  /// @param reach  null: the widths of the margins
  HaloExchange(const E& of_domain, const Reach* reach, const X&... x)
      : of_domain_(of_domain), x_(x...) {
    each([&](std::size_t k, const auto& tensor) {
      using T = std::remove_cvref_t<decltype(tensor)>;
      if (!on_same_mesh(tensor, std::get<0>(x_)))
        throw Error(name, "the tensors are on different meshes", context_of(std::get<0>(x_)));
      if (!knows_extents(tensor)) return;
      const auto& part = local_part(tensor);
      FilledMargin& filled = filled_[k];
      filled.reach = reach != nullptr ? *reach : margin_reach(part);
      if (filled.reach.dims != T::dims)
        throw Error(name,
                    "the reach " + to_string(filled.reach) +
                        " and the tensor differ in their number of dimensions",
                    context_of(tensor));
      add_field(fields_[k], tensor, part, FieldReach(filled.reach, {}), of_domain_);
      filled.edges = fields_[k].window[0].edges;
      for (auto& sides : filled.edges.side)
        for (EdgeOfSide& side : sides) side = {side.kind};
      filled.changes = changes_in(Device{}, part.storage());
      if constexpr (is_dtensor<T>)
        exchange_[k] = prepare_margin(name, fields_[k], tensor.actual_layout(),
                                      tensor.mesh().state(), tensor.context());
      else fill_margin(name, fields_[k], context_of(tensor));
      if (const auto* margin = std::get_deleter<ReturnMargin>(part.storage()))
        filled.fills = margin->fills;
    });
  }
  HaloExchange(const HaloExchange&) = delete;  // parts refer to each other

  /// @collective every rank of the mesh; a rank outside returns at once
  void run(const MeshState& mesh) {
    if (!mesh.is_member()) return;
    std::vector<redistribution::BoxRead> reads;
    for (const GhostExchange& each : exchange_)
      reads.insert(reads.end(), each.reads.begin(), each.reads.end());
    if (!reads.empty()) redistribution::read_boxes<Device>(name, reads, mesh);
    for (std::size_t k = 0; k < sizeof...(X); ++k) fill_margins(fields_[k], exchange_[k].filled);
  }

  std::tuple<Halo<X>...> halos() const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::tuple<Halo<X>...>{Halo<X>(std::get<K>(x_), filled_[K])...};
    }(std::index_sequence_for<X...>{});
  }

  const First& first() const { return std::get<0>(x_); }

 private:
  template <class F>
  void each(const F& f) {
    std::apply(
        [&](const X&... x) {
          std::size_t k = 0;
          (f(k++, x), ...);
        },
        x_);
  }

  E of_domain_;
  std::tuple<X...> x_;
  std::array<FilledMargin, sizeof...(X)> filled_{};
  std::array<StencilFields, sizeof...(X)> fields_{};
  std::array<GhostExchange, sizeof...(X)> exchange_{};
};

/// The tensors at the beginning of the arguments of exchange_halo, the reach and edges at the end.
template <class... A>
struct HaloArguments {
  using All = std::tuple<A...>;
  static constexpr bool has_edges = is_edges<std::tuple_element_t<sizeof...(A) - 1, All>>;
  static constexpr std::size_t before_edges = sizeof...(A) - std::size_t(has_edges);
  static constexpr bool has_reach = [] {
    constexpr bool is_reach[] = {std::is_same_v<A, Reach>...};
    return before_edges > 0 && is_reach[before_edges - 1];
  }();
  static constexpr std::size_t tensors = before_edges - std::size_t(has_reach);

  template <class X, class First>
  static constexpr bool is_alike() {
    if constexpr (is_dtensor<X> && is_dtensor<First>)
      return std::is_same_v<typename X::mesh_type, typename First::mesh_type> &&
             std::is_same_v<typename X::placements_type, typename First::placements_type>;
    else if constexpr (is_tensor<X> && is_tensor<First>)
      return std::is_same_v<typename X::device_type, typename First::device_type>;
    else return false;
  }
  template <class X>
  static constexpr bool can_have_ghosts() {
    if constexpr (is_dtensor<X>) return !X::layout.has_partial();
    else return is_tensor<X>;
  }

  static constexpr bool check() {
    constexpr bool are_tensors = []<std::size_t... I>(std::index_sequence<I...>) {
      return sizeof...(I) > 0 && (can_have_ghosts<std::tuple_element_t<I, All>>() && ...);
    }(std::make_index_sequence<tensors>{});
    static_assert(
        are_tensors,
        "cleave: exchange_halo takes tensors without Partial, a reach such as star(1, 1), "
        "and edges(..) at the end");
    if constexpr (are_tensors) {
      constexpr bool are_alike = []<std::size_t... I>(std::index_sequence<I...>) {
        return (is_alike<std::tuple_element_t<I, All>, std::tuple_element_t<0, All>>() && ...);
      }(std::make_index_sequence<tensors>{});
      static_assert(
          are_alike,
          "cleave: the tensors of exchange_halo must have the same mesh and placements, or "
          "device; call it once for each");
      return are_alike;
    } else {
      return false;
    }
  }

  /// Prepares the exchange.
  static auto prepare(const A&... a) {
    const std::tuple<const A&...> all(a...);
    const Reach* reach = nullptr;
    if constexpr (has_reach) reach = &std::get<before_edges - 1>(all);
    const auto prepare_with = [&](const auto& of_domain) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        using Exchange =
            HaloExchange<std::remove_cvref_t<decltype(of_domain)>, std::tuple_element_t<I, All>...>;
        return std::make_shared<Exchange>(of_domain, reach, std::get<I>(all)...);
      }(std::make_index_sequence<tensors>{});
    };
    if constexpr (has_edges) return prepare_with(std::get<before_edges>(all));
    else return prepare_with(edges(none));
  }
};

}  // namespace detail

/// Receives the elements of other ranks around this rank's own ones into the margins of tensors.
///
///     auto u = zeros<double>({n, n}, mesh, Shard<0>{}, Shard<1>{}, margin(2)), v = ..
///     const auto [hu, hv] = exchange_halo(u, v, edges(periodic));      // as wide as the margins
///     const auto h = exchange_halo(u, reach_of<Heat>, edges(periodic));  // what a stencil reads
///     auto w = apply(Heat{}, h);
///
/// `apply` takes a Halo in place of its tensor and receives nothing for it. The ghosts are valid
/// until something writes to the tensor or to its margin; reading them afterwards is an Error. All
/// functions and operations of the library that change elements count as writes, and so does a
/// stencil that receives ghosts into the same margin. Assignments to elements, as in
/// `u.to_local()(i, j) = 1`, and writes through `data()` are not noticed: call
/// `note_change(Host{}, u.to_local().storage())` after them.
///
/// @param a     Tensors or DTensors with margins, of the same placements; then the reach of the
///              ghosts, `star(1, 1)`, `box(2, 2)` or `reach_of<S>`, without which they are as wide
///              as the margins, with corners; then edges(..), without which all are `none`
/// @return      a Halo of the tensor; a std::tuple of several
/// @collective  every rank of the mesh
/// @cost        one message per neighbour for all tensors; receives what this rank lacks; copies no
///              own elements
/// @throws Error if a margin is missing, or narrower than the reach
template <class... A>
auto exchange_halo(const A&... a) {
  using Arguments = detail::HaloArguments<A...>;
  if constexpr (Arguments::check()) {
    const auto exchange = Arguments::prepare(a...);
    if constexpr (is_dtensor<typename std::remove_cvref_t<decltype(*exchange)>::First>)
      exchange->run(exchange->first().mesh().state());
    auto halos = exchange->halos();
    if constexpr (Arguments::tensors == 1) return std::get<0>(std::move(halos));
    else return halos;
  }
}

}  // namespace cleave::inline v0
