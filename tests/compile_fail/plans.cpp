// Plans that do not fit their modules, and modules that are distributed twice.
#include <string>

#include <cleave/parallel.hpp>

using namespace cleave;
using axes::dp;
using axes::tp;

using Mesh = DeviceMesh<Host, dp, tp>;
using Rows = DTensor<float, 3, Mesh, Placements<Shard<0>, Replicate>>;

/// A module whose part has a fixed type.
struct Fixed {
  nn::Linear<> layer;
  static constexpr nn::names members{"layer"};
};

auto network() {
  return nn::sequential(std::vector(2, nn::transformer_block(8, 2)), nn::linear(8, 8));
}
auto on_mesh(const Mesh& mesh) {
  return parallelize_module(nn::transformer_block(8, 2), mesh, tp{},
                            on("mlp.up"_path, ColwiseParallel{}),
                            on("mlp.down"_path, RowwiseParallel{}));
}

void control(const Mesh& mesh, const Rows& x) {
  on_mesh(mesh)(x);
  distribute_module(network(), mesh);
  const auto up = parallelize_module(nn::linear(8, 8), mesh, tp{}, ColwiseParallel{});
  parallelize_module(up, mesh, dp{}, RowwiseParallel{});
  parallelize_module(nn::linear(8, 8), mesh[tp{}], ColwiseParallel{});
}

#ifdef path_that_matches_nothing  // says: cleave: this path of the plan matches no module
void wrong(const Mesh& mesh) {
  parallelize_module(network(), mesh, tp{}, on("0.*.mlp.upp"_path, ColwiseParallel{}));
}
#endif

#ifdef number_of_an_element  // says: cleave: this path of the plan matches no module of the tree; elements of a std::vector are called *
void wrong(const Mesh& mesh) {
  parallelize_module(network(), mesh, tp{}, on("0.1.mlp.up"_path, ColwiseParallel{}));
}
#endif

#ifdef two_paths_to_a_module  // says: cleave: two paths of the plan lead to this module
void wrong(const Mesh& mesh) {
  parallelize_module(network(), mesh, tp{}, on("0.*.mlp.up"_path, ColwiseParallel{}),
                     on("0.*.mlp.*"_path, RowwiseParallel{}));
}
#endif

#ifdef style_that_does_not_fit  // says: cleave: the style at this path of the plan does not fit the module
void wrong(const Mesh& mesh) {
  parallelize_module(network(), mesh, tp{}, on("0.*.mlp_norm"_path, ColwiseParallel{}));
}
#endif

#ifdef style_called_on_what_does_not_fit  // says: cleave: a style does not fit this module, which does not declare how it is sharded
void wrong(const Mesh& mesh) { RowwiseParallel{}(nn::layer_norm(8), Along{mesh, tp{}}); }
#endif

#ifdef styled_twice  // says: cleave: parallelize_module: the module at this path of the plan is distributed along this axis already
void wrong(const Mesh& mesh) {
  parallelize_module(on_mesh(mesh), mesh, tp{}, on("mlp.up"_path, RowwiseParallel{}));
}
#endif

#ifdef distributed_twice  // says: cleave: distribute_module: the module is distributed already
void wrong(const Mesh& mesh) { distribute_module(on_mesh(mesh), mesh); }
#endif

#ifdef part_of_a_fixed_type  // says: cleave: the type of a part of this module has to change, but the module is not a template
void wrong(const Mesh& mesh) {
  parallelize_module(Fixed{nn::linear(8, 8)}, mesh, tp{}, on("layer"_path, ColwiseParallel{}));
}
#endif

#ifdef another_number_of_layouts  // says: cleave: a module and its style differ in the numbers of inputs or results
void wrong(const Mesh& mesh, const Rows& x) {
  parallelize_module(nn::linear(8, 8), mesh, tp{}, PrepareModuleInput(Replicate{}, Replicate{}))(x);
}
#endif

#ifdef another_number_of_placements  // says: cleave: the layout of a Tensor has exactly one placement per mesh axis
void wrong(const Mesh& mesh, const Tensor<float, 3>& x) {
  parallelize_module(nn::linear(8, 8), mesh, tp{},
                     ColwiseParallel{}.input_layouts(Placements<Replicate>{}))(x);
}
#endif

#ifdef layout_of_one_axis_among_two  // says: cleave: on a mesh of several axes the layout of a Tensor is Placements<..>
void wrong(const Mesh& mesh, const Tensor<float, 3>& x) {
  parallelize_module(nn::linear(8, 8), mesh, tp{}, ColwiseParallel{}.input_layouts(Replicate{}))(x);
}
#endif

#ifdef tensor_without_a_layout  // says: cleave: a style is given a Tensor; state its layout
void wrong(const Mesh& mesh, const Tensor<float, 3>& x) {
  parallelize_module(nn::linear(8, 8), mesh, tp{}, ColwiseParallel{})(x);
}
#endif

#ifdef called_before_it_is_placed  // says: cleave: the module that is called has uninitialised parameters
void wrong(const Rows& x) { nn::transformer_block(8, 2)(x); }
#endif

#ifdef placement_for_a_style  // says within 20 kB: cleave: an entry of the plan is not a style
void wrong(const Mesh& mesh) {
  parallelize_module(network(), mesh, tp{}, on("0.*.mlp.up"_path, Shard<0>{}));
}
#endif

#ifdef function_of_a_module_for_a_style  // says within 20 kB: cleave: an entry of the plan is not a style
void wrong(const Mesh& mesh) {
  parallelize_module(nn::linear(8, 8), mesh, tp{}, [](const auto& m) { return m; });
}
#endif

#ifdef two_styles_without_paths  // says within 20 kB: cleave: parallelize_module: a plan consists of on(path, style), or of one style
void wrong(const Mesh& mesh) {
  parallelize_module(nn::linear(8, 8), mesh, tp{}, ColwiseParallel{}, RowwiseParallel{});
}
#endif

#ifdef path_in_a_string  // says within 20 kB: cleave: the path of a plan is a constant
void wrong(const Mesh& mesh) {
  const std::string path = "0.*.mlp.up";
  parallelize_module(network(), mesh, tp{}, on(path, ColwiseParallel{}));
}
#endif

#ifdef path_in_a_literal  // says within 20 kB: cleave: the path of a plan is a constant
void wrong(const Mesh& mesh) {
  parallelize_module(network(), mesh, tp{}, on("0.*.mlp.up", ColwiseParallel{}));
}
#endif

#ifdef two_axes_and_none_named  // says within 20 kB: cleave: parallelize_module: the mesh has several axes; name the one along which the styles apply
void wrong(const Mesh& mesh) {
  parallelize_module(network(), mesh, on("0.*.mlp.up"_path, ColwiseParallel{}));
}
#endif

#ifdef partition_without_a_mesh  // says within 20 kB: cleave: distribute_module: the partition function is called with a path, a module and the mesh
void wrong(const Mesh& mesh) {
  distribute_module(nn::linear(8, 8), mesh, [](auto, const auto& part) { return part; });
}
#endif

#ifdef input_function_without_a_mesh  // says within 20 kB: cleave: distribute_module: the input function is called with the mesh and the inputs of the module
void wrong(const Mesh& mesh, const Rows& x) {
  distribute_module(nn::linear(8, 8), mesh, nn::None{}, [](const auto& y) { return y; })(x);
}
#endif

#ifdef output_function_without_a_mesh  // says within 20 kB: cleave: distribute_module: the output function is called with the mesh and the result of the module
void wrong(const Mesh& mesh, const Rows& x) {
  distribute_module(nn::linear(8, 8), mesh, nn::None{}, nn::None{}, [](int) { return 1; })(x);
}
#endif
