// Stencils that read what is not there, and edges that do not fit.
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/stencil/apply.hpp>
#include <cleave/ops/stencil/exchange_halo.hpp>

using namespace cleave;

struct dp : axis {};

using Mesh = DeviceMesh<Host, dp>;
using Rows = DTensor<double, 2, Mesh, Placements<Shard<0>>>;
using Columns = DTensor<double, 2, Mesh, Placements<Shard<1>>>;
using Local = Tensor<double, 2>;

struct Heat : Stencil {
  constexpr auto operator()(const auto& u) const { return u(0, 0) + u(-1, 0) + u(0, 1); }
};
struct InThree : Stencil {
  constexpr auto operator()(const auto& u) const { return u(0, 0, 0) + u(0, 0, 1); }
};
struct TooShort : Stencil {
  static constexpr auto reach = star(1, 1);
  constexpr auto operator()(const auto& u) const { return u(0, 0) + u(-2, 0); }
};
struct Unknown : Stencil {
  auto operator()(const auto& u) const { return __builtin_sqrt(u(0, rand_offset())); }
  static int rand_offset();
};
struct Two : Stencil {
  constexpr auto operator()(const auto& u, const auto& c) const { return u(0, 0) * c(0, 1); }
};
struct ThreeStrides : Stencil {
  static constexpr auto stride = coarsen(2, 1, 1);
  constexpr auto operator()(const auto& u) const { return u(0, 0); }
};
struct NoStencil {
  constexpr auto operator()(const auto& u) const { return u(0, 0); }
};

void control(const Local& x, const Rows& u, const Columns& v) {
  apply(out(x), Heat{}, x, edges(sides(dirichlet(1), neumann), periodic));
  apply(out(u), Two{}, u, v, edges(dirichlet([](index_t i, index_t j) { return i + j; })));
  static_assert(reach_of<Heat> == star(Sides{-1, 0}, Sides{0, 1}));
  const auto [h, k] = exchange_halo(u, u, star(1, 1), edges(periodic));
  apply(Two{}, h, u);
}

#ifdef reach_in_a_dimension_that_is_missing  // says: cleave: the reach of a stencil has another number of dimensions than its fields
void reach(const Rows& u) { apply(InThree{}, u, edges(periodic)); }
#endif

#ifdef reach_beyond_the_declared_one  // says: cleave: a stencil reads farther than its declared reach
void declared(const Local& x) { apply(TooShort{}, x, edges(periodic)); }
#endif

#ifdef reach_that_cannot_be_found  // says: cleave: the reach of this stencil cannot be found, because its operator() cannot be called in a constant expression
void unknown(const Local& x) { apply(Unknown{}, x, edges(periodic)); }
#endif

#ifdef stride_in_a_dimension_that_is_missing  // says: cleave: the stride of a stencil is one positive number for all dimensions of its fields, or one per dimension
void strides(const Rows& u) { apply(ThreeStrides{}, u, edges(periodic)); }
#endif

#ifdef edges_of_a_missing_dimension  // says: cleave: edges takes one edge for all dimensions of the fields, or one per dimension
void too_many(const Rows& u) { apply(Heat{}, u, edges(periodic, periodic, zero)); }
#endif

#ifdef dimension_that_is_periodic_at_one_side  // says: cleave: a dimension is periodic at both sides or at neither
void one_side(const Rows& u) { apply(Heat{}, u, edges(sides(periodic, zero))); }
#endif

#ifdef edges_of_other_things  // says: cleave: edges takes periodic, dirichlet(..), neumann, mirror, zero, none or sides(.., ..)
void other_edges(const Rows& u) { apply(Heat{}, u, edges(1.0)); }
#endif

#ifdef dirichlet_function_of_too_few_indices  // says: cleave: dirichlet takes a number, or a function of one index per dimension of the fields
void one_index(const Rows& u) {
  apply(Heat{}, u, edges(dirichlet([](index_t i) { return i; })));
}
#endif

#ifdef fields_of_different_dimensions  // says: cleave: the fields of a stencil must have the same number of dimensions
void dimensions(const Local& x, const Tensor<double, 1>& y) { apply(Two{}, x, y); }
#endif

#ifdef tensor_among_dtensors  // says: cleave: an operation mixes a Tensor with DTensors; place the Tensor first
void mixed(const Local& x, const Rows& u) { apply(Two{}, u, x); }
#endif

#ifdef target_with_other_placements  // says: cleave: the target and the result of an operation have different placements
void target(const Rows& u, const Columns& v) { apply(out(v), Heat{}, u, edges(zero)); }
#endif

#ifdef targets_for_one_result  // says: cleave: apply takes one target per result of the stencil
void targets(const Local& x, const Local& y) { apply(out(x, y), Heat{}, x, edges(zero)); }
#endif

#ifdef edges_before_a_field  // says: cleave: apply takes a stencil, its fields and numbers, and edges(..) at the end
void order(const Local& x) { apply(Heat{}, edges(zero), x); }
#endif

#ifdef halo_of_no_tensor  // says: cleave: exchange_halo takes tensors without Partial, a reach such as star(1, 1), and edges(..) at the end
void no_tensor(const Rows& u) { exchange_halo(u, 1, edges(periodic)); }
#endif

#ifdef halo_of_other_placements  // says: cleave: the tensors of exchange_halo must have the same mesh and placements
void other_placements(const Rows& u, const Columns& v) { exchange_halo(u, v, edges(periodic)); }
#endif

#ifdef halo_for_a_stride  // says: cleave: a stencil with a stride takes tensors, not results of exchange_halo
struct EverySecond : Stencil {
  static constexpr auto stride = coarsen(2);
  constexpr auto operator()(const auto& u) const { return u(0, 0) + u(0, 1); }
};
void strided(const Rows& u) { apply(EverySecond{}, exchange_halo(u, edges(periodic))); }
#endif

#ifdef repeat_with_a_stride  // says: cleave: repeat requires a stencil without a stride
struct Coarser : Stencil {
  static constexpr auto stride = coarsen(2);
  constexpr auto operator()(const auto& u) const { return u(0, 0) + u(0, 1); }
};
void coarser(const Rows& u) { apply(repeat<2>(Coarser{}), u, edges(periodic)); }
#endif

#ifdef repeat_without_a_field_for_a_result  // says: cleave: repeat requires a stencil whose first operands are fields, one for each of its results
struct Pair : Stencil {
  constexpr auto operator()(const auto& u) const { return std::tuple{u(0, 0), u(0, 1)}; }
};
void pair(const Rows& u) { apply(repeat<2>(Pair{}), u, edges(periodic)); }
#endif

#ifdef block_cyclic_field  // says: cleave: the part of a BlockCyclic tensor is no box: use each_local_box, or redistribute the tensor to Shard first
void cyclic(const DTensor<double, 2, Mesh, Placements<BlockCyclic<0, 2>>>& u) {
  apply(Heat{}, u, edges(periodic));
}
#endif
