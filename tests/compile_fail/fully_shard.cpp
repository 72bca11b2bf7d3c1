// Modules that cannot be fully sharded.
#include <cleave/parallel.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};
struct other : axis {};

using Mesh = DeviceMesh<Host, dp, tp>;

void control(const Mesh& mesh) {
  const auto m = fully_shard(nn::mlp(4, 8, 3), mesh, dp{}, "up"_path);
  const auto model = requires_grad(m);
  fully_shard(nn::mlp(4, 8, 3), mesh[dp{}], FullyShardOptions<>{.prefetch = false}, "up"_path);
  static_cast<void>(
      fully_shard(nn::place(nn::linear(4, 3), mesh, Replicate{}, Shard<0>{}), mesh, dp{}));
}

#ifdef sharded_twice  // says: cleave: fully_shard: the module, or a part of it, is fully sharded already
auto twice(const Mesh& mesh) {
  return fully_shard(fully_shard(nn::linear(4, 3), mesh, dp{}), mesh, dp{});
}
#endif

#ifdef sharded_on_the_axis  // says: cleave: fully_shard: a parameter is sharded on this axis already
auto sharded(const Mesh& mesh) {
  return fully_shard(nn::place(nn::linear(4, 3), mesh, Shard<0>{}, Replicate{}), mesh, dp{});
}
#endif

#ifdef path_to_nothing  // says: cleave: fully_shard: a path leads to no module
auto nothing(const Mesh& mesh) { return fully_shard(nn::mlp(4, 8, 3), mesh, dp{}, "middle"_path); }
#endif

#ifdef module_chosen_twice  // says: cleave: fully_shard: two paths lead to one module
auto chosen(const Mesh& mesh) {
  return fully_shard(nn::mlp(4, 8, 3), mesh, dp{}, "up"_path, "*"_path);
}
#endif

#ifdef axis_that_is_not_there  // says: cleave: the mesh has no such axis
auto axis_of_none(const Mesh& mesh) { return fully_shard(nn::linear(4, 3), mesh, other{}); }
#endif

#ifdef parameters_on_another_mesh  // says within 20 kB: cleave: fully_shard: a parameter is on another mesh
auto elsewhere(const Mesh& mesh, const DeviceMesh<Host, tp>& line) {
  return fully_shard(nn::place(nn::linear(4, 3), line), mesh, dp{});
}
#endif

#ifdef two_axes_and_none_named  // says within 20 kB: cleave: fully_shard: the mesh has several axes; name the one over which parameters are sharded
auto unnamed(const Mesh& mesh) { return fully_shard(nn::mlp(4, 8, 3), mesh, "up"_path); }
#endif

#ifdef path_in_a_string  // says within 20 kB: cleave: fully_shard: options come first, then paths, which are constants
auto at_run_time(const Mesh& mesh) { return fully_shard(nn::mlp(4, 8, 3), mesh, dp{}, "up"); }
#endif

#ifdef group_without_parameters  // says: cleave: fully_shard: a chosen module has no parameter that the axis can shard
auto empty_group(const Mesh& mesh) {
  return fully_shard(nn::mlp(4, 8, 3), mesh, dp{}, "activation"_path);
}
#endif

#ifdef mixed_types  // says: cleave: fully_shard: the parameters of a group must have one element type
auto mixed(const Mesh& mesh) {
  return fully_shard(nn::Linear{nn::linear<float>(4, 3).weight, nn::linear<double>(4, 3).bias},
                     mesh, dp{});
}
#endif
