// The mesh on which a module is replicated or fully sharded: its parameters are on this mesh, or on
// no mesh yet, or on another slice of the same mesh; the latter move to the mesh of both slices.
//
//     const auto m = parallelize_module(network, mesh[tp{}], ..);     // parameters on tp
//     const auto model = replicate(m, mesh[dp{}]);                    // on dp x tp, equal on dp
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/mesh/device_mesh.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/nn/tree.hpp>
#include <cleave/nn/visit.hpp>
#include <cleave/parallel/module_axis.hpp>

namespace cleave::inline v0::parallel {

/// Instead of a mesh: the values are Tensors.
struct NoMesh {};
/// Instead of a mesh: several meshes.
struct ManyMeshes {};

template <class A, class B>
constexpr auto operator|(std::type_identity<A> a, std::type_identity<B> b) {
  if constexpr (std::is_same_v<A, B> || std::is_same_v<B, NoMesh>) return a;
  else if constexpr (std::is_same_v<A, NoMesh>) return b;
  else return std::type_identity<ManyMeshes>{};
}

/// The mesh of a parameter.
struct MeshOfParameter {
  template <class X>
  static constexpr auto of() {
    if constexpr (!nn::is_lazy<X> && nn::Param<X>) {
      using Value = cleave::detail::innermost_t<X>;
      if constexpr (is_dtensor<Value>) return std::type_identity<typename Value::mesh_type>{};
      else return std::type_identity<NoMesh>{};
    } else {
      return std::type_identity<NoMesh>{};
    }
  }
};
/// The mesh that the parameters of a wrapped module have left. @see on_common_mesh
struct MeshBefore {
  template <class X>
  static constexpr auto of() {
    if constexpr (requires { typename X::inner_type; })
      return std::type_identity<typename X::inner_type>{};
    else return std::type_identity<NoMesh>{};
  }
};

/// The type that Of states for a module and all below it, as a std::type_identity.
template <class Of, class M>
constexpr auto find_mesh() {
  if constexpr (nn::is_buffer<M>) {
    return find_mesh<Of, decltype(M::value)>();
  } else if constexpr (nn::Wrapper<M>) {
    return Of::template of<M>() | find_mesh<Of, typename M::wrapped>();
  } else if constexpr (nn::is_vector<M>) {
    return find_mesh<Of, typename M::value_type>();
  } else if constexpr (nn::is_tuple<M>) {
    return []<class... P>(const std::tuple<P...>*) {
      return (Of::template of<M>() | ... | find_mesh<Of, P>());
    }(static_cast<const M*>(nullptr));
  } else if constexpr (nn::Struct<M>) {
    return []<class... P>(Types<P...>) {
      return (Of::template of<M>() | ... | find_mesh<Of, P>());
    }(nn::fields_t<M>{});
  } else {
    return Of::template of<M>();
  }
}
template <class M>
using mesh_of_parameters = typename decltype(find_mesh<MeshOfParameter, M>())::type;
template <class M>
using mesh_before = typename decltype(find_mesh<MeshBefore, M>())::type;

/// Whether a mesh has an axis, or some axis of flat<..>.
template <class Mesh, class A>
inline constexpr bool has_axis = false;
template <class Device, class... Axes, class A>
inline constexpr bool has_axis<DeviceMesh<Device, Axes...>, A> = (std::is_same_v<A, Axes> || ...);
template <class Device, class... Axes, class... A>
inline constexpr bool has_axis<DeviceMesh<Device, Axes...>, flat<A...>> =
    (std::is_same_v<flat<A...>, Axes> || ...) ||
    (cleave::detail::axis_index<A, Axes...>() + ... + 0) < int(sizeof...(A) * sizeof...(Axes));

/// The mesh of two slices, the axis of the first one before those of the other.
template <class Outer, class Inner>
struct JoinedMesh;
template <class Device, class A, class... B>
struct JoinedMesh<DeviceMesh<Device, A>, DeviceMesh<Device, B...>> {
  using type = DeviceMesh<Device, A, B...>;
};

/// Whether a wrapper of this module is tied to the mesh of its parameters.
template <class M>
constexpr bool has_synchronised_part() {
  return nn::contains<M>([]<class P>(std::type_identity<P>) {
    return requires(const P& part) { part.set_requires_gradient_sync(true); };
  });
}

/// How the parameters of a module lie to the mesh that the user passes.
enum class MeshMatch { same, slice, other_slice, none };
template <class M, class Mesh, class A>
constexpr MeshMatch match_mesh() {
  using Parameters = mesh_of_parameters<M>;
  if constexpr (std::is_same_v<Parameters, NoMesh> || std::is_same_v<Parameters, Mesh>) {
    return MeshMatch::same;
  } else if constexpr (std::is_same_v<Parameters, ManyMeshes> || Mesh::axis_count != 1) {
    return MeshMatch::none;
  } else if constexpr (!std::is_same_v<typename Parameters::device_type,
                                       typename Mesh::device_type>) {
    return MeshMatch::none;
  } else if constexpr (has_axis<Parameters, A>) {
    return MeshMatch::slice;
  } else if constexpr (has_synchronised_part<M>()) {
    return MeshMatch::none;
  } else {
    return MeshMatch::other_slice;
  }
}

/// The mesh of a module's parameters. @throws Error if they are on different meshes
template <class M>
auto mesh_of(const char* operation, const M& m) {
  using Mesh = mesh_of_parameters<M>;
  std::optional<Mesh> mesh;
  nn::named_tensors(m, [&](const std::string& path, const auto& x) {
    if constexpr (is_dtensor<cleave::detail::innermost_t<std::remove_cvref_t<decltype(x)>>>) {
      const Mesh& on = cleave::detail::innermost(x).mesh();
      if (!mesh) mesh.emplace(on);
      else if (!(*mesh == on))
        throw Error(operation,
                    path + " is on the mesh " + on.state().describe_ranks() +
                        ", other parameters are on " + mesh->state().describe_ranks(),
                    cleave::detail::innermost(x).context());
    }
  });
  return *mesh;
}

/// The same elements on a mesh with an additional first axis, equal along it.
template <class Mesh, class X>
auto lifted(const X& x, const Mesh& mesh) {
  if constexpr (nn::is_lazy<X>) {
    return x;
  } else if constexpr (tape::is_tracked<X>) {
    return requires_grad(lifted(x.value(), mesh));
  } else if constexpr (is_dtensor<X>) {
    return [&]<class... P>(Placements<P...>) {
      using Y = DTensor<typename X::value_type, X::dims, Mesh, Placements<Replicate, P...>>;
      return Y::unchecked(x.to_local(), mesh, x.shape());
    }(x.placements());
  } else {
    return x;
  }
}

/// The mesh that the parameters of a wrapped module have left, or NoMesh.
template <class M>
auto inner_mesh_of(const M& m) {
  using Mesh = mesh_before<M>;
  if constexpr (std::is_same_v<Mesh, NoMesh>) {
    return NoMesh{};
  } else {
    std::optional<Mesh> mesh;
    nn::visit_wrappers(m, [&]<class P>(const P& part) {
      if constexpr (requires { typename P::inner_type; })
        if constexpr (std::is_same_v<typename P::inner_type, Mesh>) mesh.emplace(part.inner_mesh);
    });
    return *mesh;
  }
}

/// Returns f(module, mesh, inner) with parameters that are on `mesh`, or on no mesh yet; `inner` is
/// the mesh that they left, or NoMesh. @pre match_mesh is not none
///
/// @collective   the first time for two slices: the ranks of both
/// @throws Error if the parameters are not on slices of the mesh that `mesh` is a slice of
template <class A, class M, class Mesh, class F>
auto on_common_mesh(const char* operation, const M& m, const Mesh& mesh, const F& f) {
  constexpr MeshMatch match = match_mesh<M, Mesh, A>();
  if constexpr (match == MeshMatch::same) {
    return f(m, mesh, inner_mesh_of(m));
  } else if constexpr (match == MeshMatch::slice) {
    const auto on = mesh_of(operation, m);
    if (!(on[A{}] == mesh))
      throw Error(operation,
                  "the parameters are on the mesh " + on.state().describe_ranks() + ", of which " +
                      mesh.state().describe_ranks() + " is not a slice",
                  {.mesh = mesh.describe(), .rank = mesh.state().world_rank()});
    return f(m, on, inner_mesh_of(m));
  } else {
    const auto inner = mesh_of(operation, m);
    using Joined = typename JoinedMesh<Mesh, std::remove_const_t<decltype(inner)>>::type;
    const Joined joined(
        joined_slices(operation, "the parameters are on the mesh ", mesh.state(), inner.state()));
    const auto lift = [&](const auto& x) { return lifted(x, joined); };
    return f(nn::map_tensors(m, lift, lift), joined, inner);
  }
}

}  // namespace cleave::inline v0::parallel
