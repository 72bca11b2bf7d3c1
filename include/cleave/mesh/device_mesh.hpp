// DeviceMesh: the ranks of a group arranged along named axes.
#pragma once

#include <array>
#include <cstddef>
#include <iosfwd>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/world.hpp>
#include <cleave/mesh/axis.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The position of A among the axes; the number of axes if it is not one of them.
template <class A, class... Axes>
constexpr int axis_index() {
  int index = 0;
  (void)((std::is_same_v<A, Axes> || (++index, false)) || ...);
  return index;
}

template <class... Axes>
constexpr bool distinct() {
  int sum = 0;  // of the first positions: less than 0 + 1 + .. if one appears twice
  ((sum += axis_index<Axes, Axes...>()), ...);
  return sum == int(sizeof...(Axes) * (sizeof...(Axes) - 1) / 2);
}

}  // namespace detail

/// Ranks arranged along named axes, row-major: the last axis varies fastest.
///
/// A handle: copies share the communicators of the axes. Each rank has its own mesh object.
template <class Device, Axis... Axes>
class DeviceMesh {
  static_assert(sizeof...(Axes) >= 1 && sizeof...(Axes) <= std::size_t(max_axes),
                "cleave: a mesh has 1 to 8 axes");
  static_assert(detail::distinct<Axes...>(), "cleave: an axis is named twice in a mesh");

 public:
  using device_type = Device;
  static constexpr int axis_count = int(sizeof...(Axes));

  explicit DeviceMesh(std::shared_ptr<const MeshState> state) : state_(std::move(state)) {}

  /// The position of an axis; an axis that the mesh lacks does not compile.
  template <Axis A>
  static constexpr int index_of() {
    constexpr int index = detail::axis_index<A, Axes...>();
    static_assert(index < axis_count, "cleave: the mesh has no such axis");
    return index;
  }

  /// The number of ranks along each axis, or along one.
  const Shape& extents() const noexcept { return state_->extents(); }
  template <Axis A>
  index_t extent(A) const {
    return state_->extents()[index_of<A>()];
  }
  /// The number of ranks.
  index_t size() const noexcept { return state_->size(); }

  /// The coordinate of this rank. @throws Error on a rank outside of the mesh
  const Shape& coordinate() const { return state_->coordinate(); }
  template <Axis A>
  index_t coordinate(A) const {
    return state_->coordinate()[index_of<A>()];
  }
  bool is_member() const noexcept { return state_->is_member(); }

  /// The ranks that differ from this one along one axis only, as a mesh.
  /// @collective the first time: the ranks of that group
  template <Axis A>
  DeviceMesh<Device, A> operator[](A) const {
    return sub<A>(AxisMask(1) << index_of<A>());
  }

  /// All ranks of the mesh, in row-major order.
  Communicator& communicator() const { return state_->group(); }
  /// The ranks that differ from this one along the axes of the mask only.
  Communicator& group(AxisMask mask) const { return *state_->group(mask); }
  template <Axis A>
  Communicator& group(A) const {
    return *state_->group(AxisMask(1) << index_of<A>());
  }

  /// "dp=2 x tp=2"
  std::string describe() const { return state_->describe(); }
  const MeshState& state() const noexcept { return *state_; }

  /// Whether the same ranks have the same coordinates under the same axes.
  friend bool operator==(const DeviceMesh& a, const DeviceMesh& b) {
    return *a.state_ == *b.state_;
  }

  /// A mesh of some of the axes. @see submesh, flatten
  template <class... To>
  DeviceMesh<Device, To...> sub(AxisMask mask) const {
    return DeviceMesh<Device, To...>(slice_of(state_, mask, {axis_name<To>()...}));
  }

 private:
  std::shared_ptr<const MeshState> state_;
};

template <class M>
inline constexpr bool is_device_mesh = false;
template <class Device, class... Axes>
inline constexpr bool is_device_mesh<DeviceMesh<Device, Axes...>> = true;

/// Writes `mesh.describe()`.
template <class Traits, class Device, class... Axes>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const DeviceMesh<Device, Axes...>& mesh) {
  return out << mesh.describe();
}

namespace detail {

/// Some axes of a mesh as a mask; 0 unless they are in the order of the mesh.
template <class Mesh, class... A>
constexpr AxisMask ascending_mask() {
  constexpr std::array<int, sizeof...(A)> at{Mesh::template index_of<A>()...};
  AxisMask mask = 0;
  bool ascending = true;
  for (std::size_t i = 0; i < at.size(); ++i) {
    ascending = ascending && (i == 0 || at[i - 1] < at[i]);
    mask |= AxisMask(1) << at[i];
  }
  return ascending ? mask : 0;
}

}  // namespace detail

/// The ranks that differ from this one along the named axes only, as a mesh of these axes.
/// @collective the first time: the ranks of that group
template <class Device, class... Axes, Axis... A>
DeviceMesh<Device, A...> submesh(const DeviceMesh<Device, Axes...>& mesh, A...) {
  constexpr AxisMask mask = detail::ascending_mask<DeviceMesh<Device, Axes...>, A...>();
  static_assert(mask != 0, "cleave: name the axes of a sub-mesh in the order of the mesh");
  return mesh.template sub<A...>(mask);
}

/// The named axes as one axis `flat<A...>`, whose coordinate counts row-major.
/// @collective the first time: the ranks of that group
template <class Device, class... Axes, Axis... A>
DeviceMesh<Device, flat<A...>> flatten(const DeviceMesh<Device, Axes...>& mesh, A...) {
  constexpr AxisMask mask = detail::ascending_mask<DeviceMesh<Device, Axes...>, A...>();
  static_assert(mask != 0, "cleave: name the axes to flatten in the order of the mesh");
  return mesh.template sub<flat<A...>>(mask);
}

namespace detail {

/// The product of the extents of a mesh: 0 if an extent is not positive, the largest index_t on
/// overflow.
inline index_t places(const Shape& extents) {
  constexpr index_t most = std::numeric_limits<index_t>::max();
  index_t count = 1;
  for (const index_t extent : extents) {
    if (extent <= 0) return 0;
    count = count > most / extent ? most : count * extent;
  }
  return count;
}

/// The state of a mesh of all ranks of a group.
/// @throws Error if the extents do not fit
std::shared_ptr<const MeshState> mesh_of_all(const std::shared_ptr<Communicator>& group,
                                             const Shape& extents, std::vector<std::string> names);

}  // namespace detail

/// Arranges all ranks of a group along the axes, row-major.
///
/// @param extents  the number of ranks along each axis; their product is the group's size
/// @collective     none on the host, where a mesh over a whole group does not communicate; on
///                 another device every rank of the group, the first time
/// @throws Error   if an extent is not positive or the product is not the number of ranks
template <Axis... Axes, class Device = Host>
DeviceMesh<Device, Axes...> init_device_mesh(const std::shared_ptr<Communicator>& ranks_of,
                                             const std::array<index_t, sizeof...(Axes)>& extents,
                                             Device device = {}) {
  const std::shared_ptr<Communicator> group = communicator_on(device, ranks_of);
  return DeviceMesh<Device, Axes...>(
      detail::mesh_of_all(group, Shape(extents), {axis_name<Axes>()...}));
}

/// Arranges all ranks of the world along the axes.
template <Axis... Axes, class Device = Host>
DeviceMesh<Device, Axes...> init_device_mesh(const World& world,
                                             const std::array<index_t, sizeof...(Axes)>& extents,
                                             Device device = {}) {
  return init_device_mesh<Axes...>(world.shared_communicator(), extents, device);
}

/// Arranges the listed ranks of the world along the axes, in the order of the list, row-major.
///
/// On a rank that is not listed the result only knows its extents: `is_member()` is false and
/// every use of its communicators or coordinates throws.
/// @collective   the listed ranks (others may call it too); the first mesh of a device that is not
///               the host: every rank of the world
/// @throws Error if the product is not the number of ranks, or a rank is listed twice or invalid
template <Axis... Axes, class Device = Host>
DeviceMesh<Device, Axes...> init_device_mesh(const World& world,
                                             const std::array<index_t, sizeof...(Axes)>& extents,
                                             const std::vector<int>& ranks, Device device = {}) {
  const Shape shape(extents);
  std::vector<bool> seen(std::size_t(world.size()), false);
  bool member = false;
  for (const int rank : ranks) {
    if (rank < 0 || rank >= world.size() || seen[std::size_t(rank)])
      throw Error(
          "init_device_mesh",
          "rank " + std::to_string(rank) +
              (rank < 0 || rank >= world.size()
                   ? " is outside of the world of " + std::to_string(world.size()) + " ranks"
                   : " is listed twice"),
          {.rank = world.rank()});
    seen[std::size_t(rank)] = true;
    member = member || rank == world.rank();
  }
  std::vector<std::string> names{axis_name<Axes>()...};
  std::string label;
  for (const std::string& name : names) label += (label.empty() ? "" : ".") + name;
  const bool fits = !ranks.empty() && detail::places(shape) == index_t(ranks.size());
  const std::shared_ptr<Communicator> all = communicator_on(device, world.shared_communicator());
  std::shared_ptr<Communicator> group;
  if (fits && member) group = all->subgroup(ranks, label);
  auto state =
      std::make_shared<const MeshState>(all, std::move(group), shape, ranks, std::move(names));
  if (!fits)
    throw Error("init_device_mesh",
                "the extents must be positive and multiply to the number of listed ranks, " +
                    std::to_string(ranks.size()),
                {.mesh = state->describe(), .rank = world.rank()});
  return DeviceMesh<Device, Axes...>(std::move(state));
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/mesh/device_mesh_body.hpp>
#endif
