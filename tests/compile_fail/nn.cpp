// Modules that are not ready, or that cannot be changed as requested.
#include <cleave/nn.hpp>

#include "../../examples/train_gpt/model.hpp"

using namespace cleave;

struct dp : axis {};

using Mesh = DeviceMesh<Host, dp>;
using Rows = DTensor<float, 2, Mesh, Placements<Shard<0>>>;

/// A module whose part has a fixed type.
struct Fixed {
  nn::Linear<> layer;
  static constexpr nn::names members{"layer"};
};
/// A module whose template parameter is not the type of its part.
template <class T>
struct Other {
  nn::Linear<> layer;
  static constexpr nn::names members{"layer"};
};

void control(const Mesh& mesh, const Rows& x) {
  const auto m = requires_grad(nn::place(nn::linear(4, 3), mesh));
  m(x);
  nn::state_dict(m);
  static_cast<void>(nn::adamw(m, {}));
}

#ifdef called_before_it_is_made  // says: cleave: the module that is called has uninitialised parameters
auto called(const Rows& x) { return nn::layer_norm(4)(x); }
#endif

#ifdef tracked_before_it_is_made  // says: cleave: requires_grad: the module has uninitialised parameters
auto tracked() { return requires_grad(nn::linear(4, 3)); }
#endif

#ifdef saved_before_it_is_made  // says: cleave: state_dict: the module has uninitialised parameters
auto saved() { return nn::state_dict(nn::linear(4, 3)); }
#endif

#ifdef part_of_a_fixed_type  // says: cleave: the type of a part of this module has to change, but the module is not a template
auto fixed(const Mesh& mesh) { return nn::place(Fixed{nn::linear(4, 3)}, mesh); }
#endif

#ifdef part_that_is_no_parameter  // says: cleave: the type of a part of this module has to change, but is not a template parameter
auto other(const Mesh& mesh) { return nn::place(Other<float>{nn::linear(4, 3)}, mesh); }
#endif

#ifdef placements_of_the_wrong_number  // says: cleave: place takes one placement per mesh axis, or none
auto placed(const Mesh& mesh) { return nn::place(nn::linear(4, 3), mesh, Shard<0>{}, Replicate{}); }
#endif

using Ids = DTensor<index_t, 2, Mesh, Placements<Shard<0>>>;

/// The model of examples/train_gpt, on another mesh.
auto small_gpt(World& world) {
  const auto mesh = init_device_mesh<axes::dp, axes::tp>(world, {2, 2});
  return requires_grad(gpt::placed_model(80, 64, 64, 4, 2, mesh));
}

#ifdef input_on_the_wrong_mesh  // says within 20 kB: cleave: the operands of an operation are on meshes of different types
auto wrong(World& world, const Ids& ids, const Ids& where) { return small_gpt(world)(ids, where); }
#endif

#ifdef input_on_the_wrong_mesh_untracked  // says within 20 kB: cleave: the operands of an operation are on meshes of different types
auto wrong(World& world, const Ids& ids, const Ids& where) {
  return detach(small_gpt(world))(ids, where);
}
#endif

#ifdef step_of_an_optimizer_that_is_not_an_argument  // says: cleave: the step of an optimizer with state in a traced function: pass the optimizer to trace, too, as args_of(optimizer)
template <class Model>
auto wrong(const Model& model) {
  const auto optimizer = nn::adamw(model, {});
  return spmd::trace(
      [&](const auto& m) {
        optimizer.step(m);
        return m;
      },
      spmd::args_of(model));
}
auto wrong(const Mesh& mesh) { return wrong(requires_grad(nn::place(nn::linear(4, 3), mesh))); }
#endif

#ifdef clipping_in_a_trace  // says: cleave: a traced function may call the steps of optimizers, but no other function of the gradients of a module
template <class Model>
auto wrong(const Model& model) {
  return spmd::trace(
      [&](const auto& m) {
        nn::clip_grad_norm_(m, 1.0);
        return m;
      },
      spmd::args_of(model));
}
auto wrong(const Mesh& mesh) { return wrong(requires_grad(nn::place(nn::linear(4, 3), mesh))); }
#endif
