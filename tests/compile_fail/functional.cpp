// Invalid functional collectives.
#include <complex>
#include <tuple>

#include <cleave/comm/functional.hpp>
#include <cleave/mesh/functional_group.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};
struct pt : axis {};

using Mesh = DeviceMesh<Host, dp, tp>;
using Matrix = Tensor<float, 2>;

void control(const Mesh& mesh, const Matrix& x) {
  (void)functional::all_reduce(x, Sum{}, {mesh, tp{}});
  (void)functional::all_reduce(x, "sum", mesh[tp{}]);
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
