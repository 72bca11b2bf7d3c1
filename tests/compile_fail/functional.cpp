// Invalid functional collectives.
#include <complex>
#include <tuple>
#include <vector>

#include <cleave/functional.hpp>
#include <cleave/functional/mesh_group.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};
struct pt : axis {};

using Mesh = DeviceMesh<Host, dp, tp>;
using Matrix = Tensor<float, 2>;

void control(const Mesh& mesh, const Matrix& x) {
  (void)functional::all_reduce(x, Sum{}, {mesh, tp{}});
  (void)functional::all_reduce(x, "sum", mesh[tp{}]);
  (void)functional::permute(x, std::vector<std::pair<int, int>>{{0, 1}}, {mesh, tp{}});
  (void)functional::all_gather_coalesced(std::tuple{x, Tensor<int, 1>()}, 0, {mesh, dp{}, tp{}});
}

#ifdef mesh_of_two_axes_as_a_group  // says: cleave: the mesh has several axes; name those of the group: {mesh, tp{}}
void whole(const Mesh& mesh, const Matrix& x) { (void)functional::all_reduce(x, Sum{}, mesh); }
#endif

#ifdef misspelled_axis_of_a_group  // says: cleave: the mesh has no such axis
void axis_of(const Mesh& mesh, const Matrix& x) {
  (void)functional::all_gather(x, 0, {mesh, pt{}});
}
#endif

#ifdef axes_of_a_group_in_another_order  // says: cleave: name the axes of a group in the order of the mesh
void order(const Mesh& mesh, const Matrix& x) {
  (void)functional::all_gather(x, 0, {mesh, tp{}, dp{}});
}
#endif

#ifdef largest_complex_number  // says: cleave: complex numbers have no order
void largest(const World& world, const Tensor<std::complex<double>, 1>& x) {
  (void)functional::all_reduce(x, Max{}, world);
}
#endif

#ifdef average_of_integers  // says: cleave: averages of integers and bools are not defined
void average(const World& world, const Matrix& x, const Tensor<int, 1>& n) {
  (void)functional::all_reduce_coalesced(std::tuple{x, n}, Avg{}, world);
}
#endif

#ifdef scalars_gathered  // says: cleave: a scalar has no dimension to gather along
void gathered(const World& world, const Tensor<float, 0>& x) {
  (void)functional::all_gather(x, 0, world);
}
#endif

#ifdef scalar_scattered  // says: cleave: a scalar has no dimension to scatter along
void scattered(const World& world, const Tensor<float, 0>& x) {
  (void)functional::reduce_scatter(x, Sum{}, 0, world);
}
#endif

#ifdef scalar_split  // says: cleave: a scalar has no dimension to split
void split(const World& world, const Tensor<float, 0>& x) {
  (void)functional::all_to_all(x, 0, world);
}
#endif

#ifdef number_as_a_group  // says: cleave: this is not a group of ranks; pass the world, a communicator, a mesh of one axis, mesh[tp{}], {mesh, tp{}} or {world, {0, 2}}
void number(const Matrix& x) { (void)functional::all_reduce(x, Sum{}, 4); }
#endif

#ifdef mesh_and_number_as_a_group  // says: cleave: this is not a group of ranks
void axis_number(const Mesh& mesh, const Matrix& x) {
  (void)functional::all_gather(x, 0, {mesh, 1});
}
#endif

#ifdef list_without_world_as_a_group  // says: cleave: this is not a group of ranks
void list(const Matrix& x) { (void)functional::broadcast(x, 0, std::vector<int>{0, 1}); }
#endif

#ifdef reduction_that_is_none  // says: cleave: this is not a reduction; pass a type (Sum{}), a value (ReduceOp::sum), a name in quotes or premul_sum(factor)
void median(const World& world, const Matrix& x) { (void)functional::all_reduce(x, 5, world); }
#endif

#ifdef bits_of_floats  // says: cleave: reductions of bits require integers or bools
void bits(const World& world, const Matrix& x) {
  (void)functional::reduce_scatter(x, BitXor{}, 0, world);
}
#endif

#ifdef real_factor_of_integers  // says: cleave: the factor of premul_sum is of a wider kind than the elements (integer < real < complex)
void factor(const World& world, const Tensor<int, 1>& x) {
  (void)functional::all_reduce(x, functional::premul_sum(0.5), world);
}
#endif

#ifdef pairs_that_are_none  // says: cleave: permute takes a range of pairs {source, destination}
void pairs(const World& world, const Matrix& x) {
  (void)functional::permute(x, std::vector<int>{0, 1}, world);
}
#endif

#ifdef triples_of_ranks  // says: cleave: permute takes pairs {source, destination}
void triples(const World& world, const Matrix& x) {
  (void)functional::permute(x, std::vector<std::tuple<int, int, int>>{}, world);
}
#endif

#ifdef collective_of_a_vector  // says: cleave: functional collectives take a local Tensor or the result of another one
void vector(const World& world, const std::vector<float>& x) {
  (void)functional::all_reduce(x, Sum{}, world);
}
#endif
