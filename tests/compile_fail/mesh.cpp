// Axes that a mesh does not have, and invalid meshes.
#include <cleave/mesh/device_mesh.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};
struct pt : axis {};

using Mesh = DeviceMesh<Host, dp, tp>;

void control(const Mesh& mesh) {
  mesh[tp{}].coordinate(tp{});
  flatten(mesh, dp{}, tp{});
}

#ifdef misspelled_axis_of_a_coordinate  // says: cleave: the mesh has no such axis
index_t coordinate(const Mesh& mesh) { return mesh.coordinate(pt{}); }
#endif

#ifdef misspelled_axis_of_a_sub_mesh  // says: cleave: the mesh has no such axis
void sub_mesh(const Mesh& mesh) { mesh[pt{}]; }
#endif

#ifdef axes_flattened_in_another_order  // says: cleave: name the axes to flatten in the order of the mesh
void flattened(const Mesh& mesh) { flatten(mesh, tp{}, dp{}); }
#endif

#ifdef axis_named_twice  // says: cleave: an axis is named twice in a mesh
void twice(const DeviceMesh<Host, dp, tp, dp>& mesh) { mesh.size(); }
#endif
