// Modules that cannot be distributed in the requested way.
#include <cleave/parallel.hpp>

using namespace cleave;

struct dp : axis {};
struct pod : axis {};

using Mesh = DeviceMesh<Host, dp, pod>;
using Rows = DTensor<float, 2, Mesh, Placements<Shard<0>, Replicate>>;

void control(const Mesh& mesh, const Rows& x) {
  auto m = requires_grad(replicate(nn::linear(4, 3), mesh, flat<dp, pod>{}));
  m.set_requires_gradient_sync(false);
  const auto moved = std::move(m);
  moved(x);
}

#ifdef part_is_replicated_already  // says: cleave: replicate: the module, or a part of it, is replicated already
auto part(const Mesh& mesh) {
  auto m = nn::sequential(replicate(nn::linear(4, 3), mesh, dp{}), nn::Relu{});
  return replicate(m, mesh, dp{});
}
#endif

#ifdef copy_of_a_replicated_module  // says: deleted
void copied(const Mesh& mesh) {
  const auto m = replicate(nn::linear(4, 3), mesh, dp{});
  auto copy = m;
}
#endif

#ifdef hook_of_parameters_that_are_not_tracked  // says: cleave: gradients of a replicated module require tracked parameters
void hooked(const Mesh& mesh) {
  replicate(nn::linear(4, 3), mesh, dp{}).register_comm_hook(NoCommunication{});
}
#endif

#ifdef parameter_on_a_mesh_of_another_type  // says: cleave: replicate: a parameter is on a mesh of another type
auto elsewhere(const DeviceMesh<Host, dp>& mesh, const Mesh& other) {
  return replicate(nn::place(nn::linear(4, 3), mesh), other, dp{});
}
#endif
