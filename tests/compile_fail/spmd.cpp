// Graphs that cannot be expanded under some schemas, and programs called with other types.
#include <array>

#include <cleave/functional.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/engine/apply_op.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/stencil/exchange_halo.hpp>
#include <cleave/spmd.hpp>

using namespace cleave;
using namespace cleave::spmd;

struct dp : axis {};
struct tp : axis {};

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;
using Mesh = DeviceMesh<Host, dp>;
using Square = DeviceMesh<Host, dp, tp>;
using Rows = DTensor<float, 2, Mesh, Placements<S0>>;
using Whole = DTensor<float, 2, Mesh, Placements<R>>;

constexpr auto graph = frozen([] {
  return trace([](const auto& x, const auto& w) { return relu(matmul(x, w)); },
               arg<float>("x", {4, 6}), arg<float>("weight", {6, 8}));
});
constexpr std::array schemas{schema(S0{}), schema(R{})};
constexpr auto program = frozen([] { return expand(graph, schemas); });
static_assert(check_expands<graph, schemas>());

auto control(const Mesh& mesh, const Rows& x, const Whole& w) { return run<program>(mesh, x, w); }

#ifdef tensor_in_place_with_a_traced_value  // says: cleave: an operation in place mixes traced values with tensors
void in_place(const Tensor<float, 2>& x, const Traced<float, 2>& y) { add_(x, y); }
#endif

#ifdef copy_of_a_tensor_to_a_traced_value  // says: cleave: an operation in place mixes traced values with tensors
void copied(const Tensor<float, 2>& x, const Traced<float, 2>& y) { copy_(y, x); }
#endif

#ifdef copy_to_other_placements  // says: cleave: the target and the result of an operation have different placements
void copied(const Rows& x, const Whole& y) { copy_(y, x); }
#endif

#ifdef tracked_traced_value_in_place  // says: cleave: an operation in place cannot change a value that tracks gradients
void tracked_in_place(const Tracked<Traced<float, 2>>& x) { add_(x, 1); }
#endif

struct Shifted : Stencil {
  constexpr auto operator()(const auto& u) const { return u(-1, 0); }
};
struct Both : Stencil {
  constexpr auto operator()(const auto& u, const auto& v) const { return u(-1, 0) + v(0, 0); }
};
auto stencil_control(const Traced<float, 2>& x) { return apply(Shifted{}, x, edges(zero)); }

#ifdef stencil_of_a_tensor_and_a_traced_value  // says: cleave: a stencil mixes traced values with tensors
auto mixed(const Tensor<float, 2>& x, const Traced<float, 2>& y) { return apply(Both{}, x, y); }
#endif

#ifdef stencil_with_a_target_of_another_type  // says: cleave: the target and the result of an operation have different element types
void other_type(const Traced<double, 2>& x, const Traced<float, 2>& y) {
  apply(out(x), Shifted{}, y, edges(zero));
}
#endif

#ifdef fewer_schemas_than_inputs  // says: cleave: a graph must be expanded with exactly one schema per input
constexpr std::array one{schema(S0{})};
static_assert(check_expands<graph, one>());
#endif

#ifdef schema_of_a_dimension_that_is_not_there  // says: cleave: a schema shards a dimension that its input does not have
constexpr std::array far{schema(S0{}), schema(Shard<2>{})};
static_assert(check_expands<graph, far>());
#endif

#ifdef input_is_named  // says: -1, 'w', 'e', 'i', 'g', 'h', 't'>
constexpr std::array far{schema(S0{}), schema(Shard<2>{})};
static_assert(check_expands<graph, far>());
#endif

#ifdef schemas_of_different_meshes  // says: cleave: the schemas of an expansion must have one placement per axis of one mesh
constexpr std::array meshes{schema(S0{}), schema(R{}, R{})};
static_assert(check_expands<graph, meshes>());
#endif

constexpr auto explicit_graph = frozen([] {
  return trace(
      [](const auto& x, const auto& w) { return matmul<explicit_communication>(relu(x), w); },
      arg<float>("x", {4, 6}), arg<float>("w", {6, 8}));
});
constexpr std::array gathered{schema(S0{}), schema(S0{})};

#ifdef communication_that_was_to_be_explicit  // says: cleave: explicit_communication: an operand of this node would be redistributed
static_assert(check_expands<explicit_graph, gathered>());
#endif

#ifdef node_is_named  // says: 1, 'm', 'a', 't', 'm', 'u', 'l'>
static_assert(check_expands<explicit_graph, gathered>());
#endif

#ifdef node_asked_for_a_dimension_that_is_not_there  // says: cleave: the placements requested of this node shard a dimension that its result does not have
constexpr auto asked = frozen([] {
  return trace([](const auto& x) { return redistribute(x, Shard<3>{}); }, arg<float>("x", {4, 6}));
});
constexpr std::array whole{schema(R{})};
static_assert(check_expands<asked, whole>());
#endif

#ifdef sharded_dimension_that_repeats  // says: cleave: at this node an operand repeats a dimension of extent 1 that is sharded
constexpr auto repeats = frozen([] {
  return trace([](const auto& x, const auto& row) { return add(x, row); }, arg<float>("x", {4, 6}),
               arg<float>("row", {1, 6}));
});
constexpr std::array by_rows{schema(S0{}), schema(S0{})};
static_assert(check_expands<repeats, by_rows>());
#endif

#ifdef input_with_other_placements  // says: cleave: this input of the program has another element type, number of dimensions or placements
auto placed_otherwise(const Mesh& mesh, const Whole& x, const Whole& w) {
  return run<program>(mesh, x, w);
}
#endif

#ifdef too_few_inputs  // says: cleave: the program takes another number of inputs
auto one_input(const Mesh& mesh, const Rows& x) { return run<program>(mesh, x); }
#endif

#ifdef mesh_with_more_axes  // says: cleave: the program is for another number of mesh axes
using Cut = DTensor<float, 2, Square, Placements<S0, R>>;
auto square(const Square& mesh, const Cut& x, const Cut& w) { return run<program>(mesh, x, w); }
#endif

#ifdef tensor_in_a_trace  // says within 5 kB: cleave: an operation mixes traced values with tensors
Graph captured(const Tensor<float, 2>& w) {
  return trace([&](const auto& x) { return matmul(x, w); }, arg<float>("x", {4, 6}));
}
#endif

constexpr auto merged = frozen([] {
  return trace([](const auto& x) { return flatten(x, dim<0, 1>{}); }, arg<float>("x", {3, 4}));
});
constexpr std::array merged_rows{schema(S0{})};
static_assert(check_expands<merged, merged_rows>() && check_expands<merged, merged_rows, 2>());

#ifdef mesh_with_other_axes_than_schemas  // says: cleave: a schema must have one placement per axis of the mesh of the expansion
static_assert(check_expands<merged, merged_rows, 3, 1>());
#endif

#ifdef collective_of_a_traced_tensor  // says: cleave: a traced value is communicated along an axis of the mesh that the program will run on: functional::all_reduce(x, Sum{}, spmd::mesh_axis(0))
auto collective(const World& world, const Traced<float, 1>& x) {
  return functional::all_gather(x, 0, world);
}
#endif

struct Kept {};
template <>
struct cleave::sharding_rule<Kept> {
  static constexpr const char* factors = "ab->ab";
};

#ifdef function_of_local_tensors_in_a_trace  // says: cleave: apply_op takes Tensors and DTensors
void kept(const Traced<float, 2>& x) {
  apply_op<Kept>("kept", [](const auto& part) { return part; }, x);
}
#endif

#ifdef halo_of_a_traced_value  // says: cleave: exchange_halo takes tensors without Partial
void halo(const Traced<float, 2>& x) { exchange_halo(x, edges(periodic)); }
#endif
