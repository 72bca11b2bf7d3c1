// Modules that cannot be distributed in the requested way.
#include <memory>

#include <cleave/parallel.hpp>

using namespace cleave;

struct dp : axis {};
struct pod : axis {};
struct tp : axis {};

using Mesh = DeviceMesh<Host, dp, pod>;
using Rows = DTensor<float, 2, Mesh, Placements<Shard<0>, Replicate>>;

void control(const Mesh& mesh, const Rows& x) {
  auto m = requires_grad(replicate(nn::linear(4, 3), mesh, flat<dp, pod>{}));
  m.set_requires_gradient_sync(false);
  m.register_comm_hook([](const GradientBucket& bucket) { bucket.all_reduce(bucket.gradient); });
  const auto moved = std::move(m);
  moved(x);
  on_gradient(requires_grad(x), [](const auto&) {});
}

void control_of_slices(const Mesh& mesh, const DeviceMesh<Host, tp>& line,
                       const Tensor<float, 2>& x) {
  replicate(nn::linear(4, 3), line)(x);
  replicate(nn::place(nn::linear(4, 3), line), mesh[dp{}]);
  TensorParallelRNGTracker(mesh[dp{}]).distribute_region();
}

#ifdef part_is_replicated_already  // says: cleave: replicate: the module, or a part of it, is replicated already
auto part(const Mesh& mesh) {
  auto m = nn::sequential(replicate(nn::linear(4, 3), mesh, dp{}), nn::Relu{});
  return replicate(m, mesh, dp{});
}
#endif

#ifdef copy_of_a_replicated_module  // says within 20 kB: cleave: a replicated module cannot be copied, because each gradient is reduced once
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

#ifdef assignment_of_a_replicated_module  // says within 20 kB: cleave: a replicated module cannot be copied, because each gradient is reduced once
void assigned(const Mesh& mesh) {
  auto m = replicate(nn::linear(4, 3), mesh, dp{});
  auto other = replicate(nn::linear(4, 3), mesh, dp{});
  other = m;
}
#endif

#ifdef parameter_on_a_mesh_of_another_type  // says within 20 kB: cleave: replicate: a parameter is on a mesh of another type
auto elsewhere(const DeviceMesh<Host, dp>& mesh, const Mesh& other) {
  auto model = requires_grad(replicate(nn::place(nn::mlp(4, 8, 3), mesh), other, dp{}));
  return model(ones<float>({2, 4}, other, Shard<0>{}, Replicate{}));
}
#endif

#ifdef replicated_over_a_slice_inside_of_a_mesh  // says within 20 kB: cleave: replicate: a parameter is on a mesh of another type
auto hybrid(const Mesh& mesh, const DeviceMesh<Host, tp>& slice) {
  return replicate(fully_shard(nn::mlp(4, 8, 3), mesh, dp{}), slice);
}
#endif

#ifdef two_axes_and_none_named  // says within 20 kB: cleave: replicate: the mesh has several axes; name the one over which the module is replicated
auto unnamed(const Mesh& mesh) { return replicate(nn::linear(4, 3), mesh); }
#endif

#ifdef tracker_of_two_axes_and_none_named  // says within 20 kB: cleave: the mesh has several axes; name the one along which ranks draw different numbers
auto unnamed(const Mesh& mesh) { return TensorParallelRNGTracker(mesh); }
#endif

#ifdef comm_hook_with_other_arguments  // says within 20 kB: cleave: a communication hook is a copyable function of a const GradientBucket&
void hooked(const Mesh& mesh) {
  const auto m = requires_grad(replicate(nn::linear(4, 3), mesh, dp{}));
  m.register_comm_hook([](int, float) {});
}
#endif

#ifdef comm_hook_that_cannot_be_copied  // says within 20 kB: cleave: a communication hook is a copyable function of a const GradientBucket&
void hooked(const Mesh& mesh) {
  const auto m = requires_grad(replicate(nn::linear(4, 3), mesh, dp{}));
  m.register_comm_hook([state = std::make_unique<int>(1)](const GradientBucket&) {});
}
#endif

#ifdef gradient_hook_with_other_arguments  // says within 20 kB: cleave: on_gradient: a hook is a copyable function of the gradient
void hooked(const Rows& x) {
  on_gradient(requires_grad(x), [](int, int) {});
}
#endif

#ifdef own_batch_of_a_sharded_module  // says within 20 kB: cleave: a module whose parameters are sharded over an axis is called with this rank's own batch
auto own(const Mesh& mesh, const Tensor<float, 2>& x) {
  const auto m = replicate(nn::place(nn::linear(4, 3), mesh, Replicate{}, Shard<0>{}), mesh, dp{});
  return m(x);
}
#endif
