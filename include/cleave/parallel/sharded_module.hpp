// A module whose parameters are sharded over an axis and unsharded while it is called.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/grad/backward.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/nn/tree.hpp>
#include <cleave/parallel/gathered_slot.hpp>
#include <cleave/parallel/module_axis.hpp>
#include <cleave/parallel/own_batch.hpp>
#include <cleave/parallel/sharded_group.hpp>

namespace cleave::inline v0::parallel {

template <class M, class Group, class A, class Options, class Inner>
struct FullySharded;

template <class M>
inline constexpr bool is_fully_sharded = false;
template <class M, class Group, class A, class Options, class Inner>
inline constexpr bool is_fully_sharded<FullySharded<M, Group, A, Options, Inner>> = true;

/// The module with f(parameter) replacing the parameters of its own group, and g(value) its
/// buffers; parts that are fully sharded themselves stay.
template <class M, class F, class G>
auto map_group(const M& m, const F& f, const G& g) {
  if constexpr (nn::Param<M>) return f(m);
  else if constexpr (nn::is_buffer<M>) return nn::Buffer{g(m.value)};
  else if constexpr (is_fully_sharded<M>) return m;
  else if constexpr (nn::Wrapper<M>)
    return m.rewrap(map_group(static_cast<const typename M::wrapped&>(m), f, g));
  else if constexpr (nn::Inner<M>)
    return nn::map_parts(m, [&](const auto& part, auto) { return map_group(part, f, g); });
  else return m;
}
template <class M, class F>
auto map_group(const M& m, const F& f) {
  return map_group(m, f, [](const auto& buffer) { return buffer; });
}

/// Whether a parameter of the module's own group is tracked.
template <class M, class A>
constexpr bool trains_group() {
  if constexpr (nn::Param<M>) {
    return tape::is_tracked<M> && cleave::detail::is_sharded_over<M, A>();
  } else if constexpr (is_fully_sharded<M>) {
    return false;
  } else {
    bool trains = false;
    nn::detail::each_part_type<M>(
        [&]<class Part>(const char*, Part*) { trains = trains || trains_group<Part, A>(); });
    return trains;
  }
}

template <class X>
constexpr bool has_floats() {
  if constexpr (AnyTensor<X>)
    return !std::is_integral_v<typename X::value_type> && !is_complex<typename X::value_type>;
  else return false;
}

/// x converted to element type To, unless To is void or x has no floating-point elements.
template <class To, class X>
auto as_floats(const X& x) {
  if constexpr (std::is_void_v<To> || !has_floats<X>()) return x;
  else return elements_as<To>(x);
}

/// The module M with parameters sharded over the axis A. A call all-gathers the parameters, calls
/// the module with the unsharded parameters, and frees these.
///
/// A handle, like all modules: copies share parameters and group.
///
/// @tparam Inner  the mesh without the axis, of the parameters when they are unsharded for a
///                rank's own batch, or NoMesh
template <class M, class Group, class A, class Options, class Inner>
struct FullySharded : M {
  using wrapped = M;
  using plain = nn::plain_t<M>;
  using inner_type = Inner;

  FullySharded(M m, std::shared_ptr<Group> of, Inner mesh)
      : M(std::move(m)), group(std::move(of)), inner_mesh(std::move(mesh)) {}

  /// @throws Error if a parameter was replaced by one that does not belong to the group
  template <class N>
  auto rewrap(N n) const {
    std::size_t i = 0;
    each_own(n, [&](const auto& x) {
      const auto& local = tape::value_of(x).to_local();
      if (i == group->layout.count() || (!local.empty() && local.data() != group->part(i)))
        replaced();
      ++i;
    });
    if (i != group->layout.count()) replaced();
    return FullySharded<N, Group, A, Options, Inner>(std::move(n), group, inner_mesh);
  }

  /// The module with unsharded parameters (Replicate on the axis), for calls of functions other
  /// than operator().
  ///
  /// @collective the ranks of the axis
  auto whole() const { return whole_on(whole_batch); }

  /// @collective the ranks of the axis
  /// @cost       receives (n-1)/n of the parameters in one all-gather
  template <class... X>
  auto operator()(const X&... x) const {
    const auto& on = batch_mesh<A, M>(inner_mesh, x...);
    constexpr bool fits = takes_batch_on<A, M, std::remove_cvref_t<decltype(on)>>();
    static_assert(fits,
                  "cleave: a module whose parameters are sharded over an axis is called with this "
                  "rank's own batch; place the batch on a mesh with this axis, and no other one: "
                  "mesh[tp{}]");
    if constexpr (fits) {
      const auto full = whole_on(on);
      if (tape::Sweep::current() == nullptr) group->order->start_after(group.get());
      return as_floats<typename Options::output_type>(
          full(as_floats<typename Options::compute_type>(x)...));
    }
  }

  /// Whether backward reduces gradients, for all groups of the module passed to fully_shard.
  /// @see cleave::set_requires_gradient_sync
  void set_requires_gradient_sync(bool on) const {
    if (tape::Sweep::current() != nullptr)
      throw Error("set_requires_gradient_sync", "called while a backward is in progress");
    group->order->sums_gradients = on;
  }

  /// Sets the path under which the communication of the group is listed. @see with_paths
  void set_path(const std::string* kept) const { group->path = kept; }

  std::shared_ptr<Group> group;
  Inner inner_mesh;

 private:
  /// The module with unsharded parameters for a batch on the mesh `on`, see `batch_mesh`.
  template <class On>
  auto whole_on(const On& on) const {
    const auto parameters = group->take();
    if (tape::Sweep::current() != nullptr) group->keep(parameters);
    GroupRecord<Group>* record = nullptr;
    if constexpr (trains_group<M, A>()) record = new GroupRecord<Group>(group, parameters);
    const tape::Ref<tape::RecordBase> held(record);
    std::size_t i = 0;
    const auto others = [&](const auto& x) { return own_part(x, on); };
    return map_group(
        static_cast<const M&>(*this),
        [&](const auto& x) {
          using P = std::remove_cvref_t<decltype(x)>;
          if constexpr (!cleave::detail::is_sharded_over<P, A>()) return others(x);
          else return gathered(x, *parameters, record, i++, on);
        },
        others);
  }

  template <class N, class F>
  static void each_own(const N& n, const F& f) {
    static_cast<void>(map_group(n, [&f](const auto& x) {
      if constexpr (cleave::detail::is_sharded_over<std::remove_cvref_t<decltype(x)>, A>()) f(x);
      return x;
    }));
  }
  [[noreturn]] static void replaced() {
    throw Error("fully_shard",
                "a parameter of a fully sharded module was replaced; change its elements, or "
                "replace it before fully_shard");
  }

  /// The unsharded parameter i of the group.
  template <class P, class On>
  auto gathered(const P& parameter, const typename Group::Whole& whole, GroupRecord<Group>* record,
                std::size_t i, const On& on) const {
    using X = tape::untracked_t<P>;
    using F = DTensor<typename Group::compute_type, X::dims, typename X::mesh_type,
                      cleave::detail::on_axis<X, X::mesh_type::template index_of<A>(), Replicate>>;
    using Slot = GatheredSlot<F, X, Group, On>;
    const auto& sharded = tape::value_of(parameter);
    const auto value = Slot::gathered(whole, group->layout, i, sharded, on);
    if constexpr (tape::is_tracked<P>) {
      auto& leaf = tape::leaf_of(parameter, "fully_shard");
      record->set_target(i, {tape::Ref<tape::RecordBase>(&leaf), &leaf.drops, &Slot::deliver,
                             leaf.receiver != nullptr ? leaf.receiver->axes() : 0});
      return Tracked<typename Slot::Value>(value, new Slot(value, record, i, sharded, on));
    } else {
      return value;
    }
  }
};

}  // namespace cleave::inline v0::parallel
