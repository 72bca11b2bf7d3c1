// Data parallelism: a module with equal parameters on all ranks of a mesh axis, each of which
// processes a part of the batch.
//
//     auto model = requires_grad(replicate(network, mesh, dp{}));
//     backward(loss_of(model(x)));          // x[S0 on dp, ..]; gradient buckets are all-reduced
//     optimizer.step(model);
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/mesh/device_mesh.hpp>
#include <cleave/nn/describe.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/nn/place.hpp>
#include <cleave/nn/track.hpp>
#include <cleave/nn/tree.hpp>
#include <cleave/nn/visit.hpp>
#include <cleave/parallel/gradient_sync.hpp>
#include <cleave/parallel/own_batch.hpp>
#include <cleave/parallel/separate_members.hpp>
#include <cleave/parallel/sharded_module.hpp>
#include <cleave/parallel/sliced_mesh.hpp>
#include <cleave/tensor/overlap.hpp>

namespace cleave::inline v0 {

struct ReplicateOptions {
  parallel::BucketSizes bucket_bytes{};
  /// Allow parameters on which the loss does not depend: an additional small all-reduce per step
  /// finds the parameters that are used on some rank. The other ones get no gradient.
  bool find_unused_parameters = false;
  /// Broadcast tensors that are on the mesh already from the axis' first rank. @pre if false, they
  /// are equal on all ranks of the axis
  bool init_sync = true;
  /// Before every call of the module, overwrite its buffers with those of the axis' first rank,
  /// unless gradients are being accumulated.
  bool broadcast_buffers = false;
  /// Modules and parameters to leave out, with everything below them: "layers.*.norm". Their
  /// gradients are reduced one by one as they become complete.
  std::vector<std::string> ignored{};
};

namespace parallel {

/// The mask of an axis type: one axis, or several for flat<..>.
template <class Mesh, class A>
constexpr AxisMask mask_of(const Mesh*, const A*) {
  return AxisMask(1) << Mesh::template index_of<A>();
}
template <class Mesh, class... A>
constexpr AxisMask mask_of(const Mesh*, const flat<A...>*) {
  constexpr AxisMask mask = cleave::detail::ascending_mask<Mesh, A...>();
  static_assert(mask != 0, "cleave: name the axes of flat<..> in the order of the mesh");
  return mask;
}

/// Whether a tensor is sharded on some of these axes: then its gradient is not a sum over all axes.
template <class X>
constexpr bool is_sharded_on(AxisMask axes) {
  return (X::layout.sharding_axes() & axes) != 0;
}

/// Whether a module or a part of it is replicated already.
template <class M>
constexpr bool has_replicated() {
  return nn::contains<M>(
      []<class P>(std::type_identity<P>) { return requires { typename P::replicated_over; }; });
}

/// Whether some parameter of a module is tracked.
template <class M>
constexpr bool has_tracked() {
  return nn::contains<M>([]<class P>(std::type_identity<P>) { return tape::is_tracked<P>; });
}

/// Whether a dotted path of patterns matches a part or a module that contains it.
inline bool is_at_or_below(std::string_view pattern, std::string_view path) {
  for (;;) {
    const auto cut = pattern.find('.'), end = path.find('.');
    if (!nn::fits_pattern(pattern.substr(0, cut), path.substr(0, end))) return false;
    if (cut == pattern.npos) return true;
    if (end == path.npos) return false;
    pattern.remove_prefix(cut + 1);
    path.remove_prefix(end + 1);
  }
}
inline bool is_ignored(const std::vector<std::string>& ignored, const std::string& path) {
  for (const std::string& pattern : ignored)
    if (is_at_or_below(pattern, path)) return true;
  return false;
}

/// @throws Error if a pattern matches nothing
template <class M>
void require_matches(const M& m, const std::vector<std::string>& ignored) {
  for (const std::string& pattern : ignored) {
    bool matches = false;
    nn::named_tensors(m, [&](const std::string& path, const auto&) {
      matches = matches || is_at_or_below(pattern, path);
    });
    if (!matches)
      throw Error("replicate",
                  "'" + pattern + "' of `ignored` matches nothing in\n" + nn::describe(m));
  }
}

/// Broadcasts tensors that are on the mesh from the first rank of the axes.
/// @collective the ranks that differ in these axes
template <AxisMask axes, class M, class Mesh>
void broadcast_tensors(const M& m, const Mesh& mesh, const std::vector<std::string>& ignored) {
  if (!mesh.is_member() || mesh.group(axes).size() == 1) return;
  Communicator& group = mesh.group(axes);
  std::vector<Collective> calls;
  const auto add = [&](const auto& x) {
    const View local = x.to_local().view();
    calls.push_back(Collective::broadcast(local, local, 0)
                        .named("replicate", mesh.state().label(axes).c_str()));
    cleave::detail::require_distinct_elements("replicate", local, [&] { return x.context(); });
    note_change(typename Mesh::device_type{}, x.to_local().storage());
  };
  nn::named_tensors(m, [&](const std::string& path, const auto& x) {
    using X = std::remove_cvref_t<decltype(x)>;
    if constexpr (!nn::is_lazy<X>) {
      using Value = tape::untracked_t<X>;
      if constexpr (is_dtensor<Value>) {
        if constexpr (!is_sharded_on<Value>(axes)) {
          if (is_ignored(ignored, path)) return;
          if (!(tape::value_of(x).mesh() == mesh))
            throw Error("replicate", path + " is on another mesh", tape::value_of(x).context());
          if constexpr (tape::is_tracked<X>) mark_changed(x);
          add(tape::value_of(x));
        }
      }
    }
  });
  if (!calls.empty()) group.run_all(calls);
}

/// A module whose gradients are reduced over an axis. Movable but not copyable: each parameter's
/// gradient is reduced once.
///
/// @tparam Inner  the mesh of the parameters without the axis, or NoMesh; for a rank's own batch
template <class M, class Mesh, class A, class Inner>
class Replicated : public M {
 public:
  using wrapped = M;
  using plain = nn::plain_t<M>;
  using replicated_over = A;
  static constexpr AxisMask axes =
      mask_of(static_cast<const Mesh*>(nullptr), static_cast<const A*>(nullptr));

  /// @collective the ranks that differ in the axes
  Replicated(M m, const Mesh& mesh, const Inner& before, const ReplicateOptions& options)
      : M(std::move(m)), mesh_(mesh), inner_(before), options_(options) {
    if constexpr (has_tracked<M>())
      if (mesh.is_member()) take_gradients();
  }
  Replicated(Replicated&&) noexcept = default;
  Replicated& operator=(Replicated&&) noexcept = default;
  // not deleted, so that a copy is an error with a sentence
  Replicated(const Replicated& other)
      : M(static_cast<const M&>(other)), mesh_(other.mesh_), inner_(other.inner_) {
    refuse_copy<M>();
  }
  Replicated& operator=(const Replicated&) {
    refuse_copy<M>();
    return *this;
  }

  /// Wraps another module in the same way.
  template <class N>
  auto rewrap(N n) const& {
    return Replicated<N, Mesh, A, Inner>(std::move(n), mesh_, inner_, options_);
  }
  /// The same for a module with the parameters of this one; keeps the reduction of their gradients.
  template <class N>
  auto rewrap(N n) && {
    return Replicated<N, Mesh, A, Inner>(std::move(n), mesh_, inner_, options_, std::move(sync_));
  }

  /// Sets the path under which the communication of buckets is listed. @see with_paths
  void set_path(const std::string* kept) const {
    if (sync_ != nullptr) sync_->set_path(kept);
  }

  /// @collective the ranks that differ in the axes, if buffers are broadcast
  template <class... X>
  auto operator()(const X&... x) const {
    if (options_.broadcast_buffers && (sync_ == nullptr || sync_->is_on())) broadcast_buffers();
    const auto& on = batch_mesh<A, M>(inner_, x...);
    using On = std::remove_cvref_t<decltype(on)>;
    constexpr bool fits = takes_batch_on<A, M, On>();
    static_assert(fits,
                  "cleave: a module whose parameters are sharded over an axis is called with this "
                  "rank's own batch; place the batch on a mesh with this axis, and no other one: "
                  "mesh[tp{}]");
    if constexpr (std::is_same_v<On, WholeBatch>) {
      return M::operator()(x...);
    } else if constexpr (fits) {
      const auto own = [&on](const auto& part) { return own_part(part, on); };
      return map_group(static_cast<const M&>(*this), own, own)(x...);
    }
  }

  /// Whether backward reduces gradients over the axis; initially true. If false, each rank
  /// accumulates its gradients without communication, and `grad` does not include them; the next
  /// backward that reduces gradients includes them.
  void set_requires_gradient_sync(bool on) const { sync().switch_on(on); }
  bool requires_gradient_sync() const { return sync().is_on(); }

  /// Sets the communication hook that reduces gradient buckets; it is called asynchronously.
  /// @param hook  called with a const GradientBucket&
  template <class Hook>
  void register_comm_hook(Hook hook) const {
    constexpr bool is_hook =
        std::is_invocable_v<Hook&, const GradientBucket&> && std::is_copy_constructible_v<Hook>;
    static_assert(is_hook,
                  "cleave: a communication hook is a copyable function of a const "
                  "GradientBucket&: [](const GradientBucket& bucket) { .. }");
    if constexpr (is_hook) sync().set_hook(std::move(hook));
  }

  /// The number of gradient buckets.
  index_t bucket_count() const { return index_t(sync().bucket_count()); }

  /// Broadcasts buffers from the axis' first rank, for use after changes on single ranks.
  /// @collective the ranks that differ in the axes
  void broadcast_buffers() const {
    nn::visit(static_cast<const plain&>(*this), [&](const std::string&, const auto& part) {
      if constexpr (nn::is_buffer<std::remove_cvref_t<decltype(part)>>)
        broadcast_tensors<axes>(part, mesh_, {});
    });
  }

 private:
  using Sync = GradientSync<typename Mesh::device_type>;

  template <class, class, class, class>
  friend class Replicated;

  Replicated(M m, const Mesh& mesh, const Inner& before, const ReplicateOptions& options,
             std::unique_ptr<Sync> sync)
      : M(std::move(m)), mesh_(mesh), inner_(before), options_(options), sync_(std::move(sync)) {}

  template <class N>
  static void refuse_copy() {
    static_assert(sizeof(N*) == 0,
                  "cleave: a replicated module cannot be copied, because each gradient is reduced "
                  "once: move it, or save and load its state_dict");
  }

  void take_gradients() {
    sync_ = std::make_unique<Sync>(mesh_.state(), axes, options_.bucket_bytes,
                                   options_.find_unused_parameters);
    nn::named_parameters(
        static_cast<const plain&>(*this), [&](const std::string& path, const auto& p) {
          using P = std::remove_cvref_t<decltype(p)>;
          if constexpr (tape::is_tracked<P>) {
            using X = tape::untracked_t<P>;
            static_assert(!X::layout.has_partial(), "cleave: a parameter is not Partial");
            if constexpr (!is_sharded_on<X>(axes))
              if (!is_ignored(options_.ignored, path)) sync_->add(path, p);
          }
        });
    sync_->arrange();
  }

  Sync& sync() const {
    static_assert(has_tracked<M>(),
                  "cleave: gradients of a replicated module require tracked parameters; call "
                  "requires_grad(module) first");
    if (sync_ == nullptr)
      throw Error("replicate", "this rank is outside the mesh and has no gradients",
                  {.mesh = mesh_.describe(), .rank = mesh_.state().world_rank()});
    return *sync_;
  }

  Mesh mesh_;
  Inner inner_;
  ReplicateOptions options_;
  std::unique_ptr<Sync> sync_{};
};

/// Places a parameter that is not on a mesh yet.
template <class X, class Mesh>
auto on_mesh(const X& x, const Mesh& mesh) {
  if constexpr (nn::is_lazy<X>) return nn::place(x, mesh);
  else if constexpr (is_dtensor<tape::untracked_t<X>>) return x;
  else return nn::place(x, mesh);
}

}  // namespace parallel

/// Distributed data parallelism: the module with equal parameters on all ranks of an axis, or of
/// several axes, `flat<dp, pod>`. Backward all-reduces the gradients of tracked parameters over the
/// axis in buckets, overlapped with the computation of other gradients.
///
/// A Lazy is initialised on every rank, a Tensor is taken from the mesh's first rank, both
/// Replicate on all axes; a DTensor keeps its placements and is broadcast from the axis' first
/// rank. Parameters that are sharded on the axis, as by `fully_shard`, are left out. With a slice
/// `mesh[dp{}]`, parameters on another slice, such as `mesh[tp{}]`, move to the mesh of both.
///
/// A call with a batch on the axis computes with the global batch, and gradients are sums over the
/// ranks. A call with this rank's own batch, a Tensor or a DTensor on a mesh without the axis,
/// computes with this rank's replicas, and gradients are averages over the ranks.
///
/// @collective every rank of the world; with a slice, every rank of the mesh that it belongs to
/// @throws Error for a pattern in `ignored` that matches nothing, two parameters that share
///         elements, a parameter on another mesh, or one whose gradient another wrapper reduces
template <nn::Struct M, class Device, Axis... Axes, Axis A>
auto replicate(const M& m, const DeviceMesh<Device, Axes...>& mesh, A,
               const ReplicateOptions& options = {}) {
  using Mesh = DeviceMesh<Device, Axes...>;
  constexpr bool is_new = !parallel::has_replicated<M>();
  static_assert(is_new,
                "cleave: replicate: the module, or a part of it, is replicated already; to "
                "replicate over several axes, name them in one call: flat<dp, pod>");
  constexpr bool fits = parallel::match_mesh<M, Mesh, A>() != parallel::MeshMatch::none;
  static_assert(
      fits,
      "cleave: replicate: a parameter is on a mesh of another type; pass the mesh of the "
      "parameters, or slices of one mesh: mesh[tp{}] for the parameters, mesh[dp{}] here");
  if constexpr (is_new && fits) {
    parallel::require_separate_members("replicate", m);
    parallel::require_matches(m, options.ignored);
    return parallel::on_common_mesh<A>(
        "replicate", m, mesh, [&](const auto& on_slices, const auto& common, const auto& inner) {
          using Common = std::remove_cvref_t<decltype(common)>;
          constexpr AxisMask axes = parallel::mask_of(static_cast<const Common*>(nullptr),
                                                      static_cast<const A*>(nullptr));
          if (options.init_sync)
            parallel::broadcast_tensors<axes>(on_slices, common, options.ignored);
          const auto place = [&](const auto& x) { return parallel::on_mesh(x, common); };
          auto placed = nn::map_tensors(on_slices, place, place);
          using Inner = std::remove_cvref_t<decltype(inner)>;
          return parallel::Replicated<decltype(placed), Common, A, Inner>(std::move(placed), common,
                                                                          inner, options);
        });
  }
}
/// The same over the only axis of a mesh, for example `mesh[dp{}]`.
template <nn::Struct M, class Device, Axis... Axes>
auto replicate(const M& m, const DeviceMesh<Device, Axes...>& mesh,
               const ReplicateOptions& options = {}) {
  constexpr bool is_clear = sizeof...(Axes) == 1;
  static_assert(is_clear,
                "cleave: replicate: the mesh has several axes; name the one over which the module "
                "is replicated: replicate(m, mesh, dp{})");
  if constexpr (is_clear) return replicate(m, mesh, Axes{}..., options);
}

}  // namespace cleave::inline v0
