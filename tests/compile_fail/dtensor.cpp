// Invalid distributed tensors: the mesh has other axes, the tensor has other dimensions, or the
// placement cannot be requested by users.
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/interop/hdf5.hpp>
#include <cleave/interop/netcdf.hpp>
#include <cleave/interop/scalapack.hpp>
#include <cleave/interop/scalapack_solvers.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};

using Mesh = DeviceMesh<Host, dp, tp>;
using Local = Tensor<float, 2>;
using Rows = DTensor<float, 2, Mesh, Placements<Shard<0>, Replicate>>;

void control(const Local& local, const Mesh& mesh, const Rows& x) {
  distribute_tensor(local, mesh, Shard<0>{}, Replicate{});
  zeros<float>({6, 5}, mesh, Replicate{}, Shard<-1>{});
  x.redistribute(Replicate{}, Shard<1>{});
  distribute_tensor(local, mesh);
  distribute_tensor(x, mesh, Shard<-2>{}, Replicate{});
  zeros<float>({6, 5}, mesh, Cuts<0>{0, 6}, Shard<0>{});
}

#ifdef too_few_placements  // says: cleave: distribute_tensor takes exactly one placement per mesh axis
void few(const Local& local, const Mesh& mesh) { distribute_tensor(local, mesh, Shard<0>{}); }
#endif

#ifdef distribute_a_distributed_tensor  // says: cleave: distribute_tensor: the tensor is distributed already, on another kind of mesh or under other placements; call redistribute
auto again(const Rows& x, const Mesh& mesh) {
  return distribute_tensor(x, mesh, Replicate{}, Replicate{});
}
#endif

#ifdef distribute_a_distributed_tensor_without_placements  // says: cleave: distribute_tensor: the tensor is distributed already, on another kind of mesh or under other placements; call redistribute
auto whole_again(const Rows& x, const Mesh& mesh) { return distribute_tensor(x, mesh); }
#endif

#ifdef empty_placements  // says: cleave: distribute_tensor takes exactly one placement per mesh axis
auto none(const Local& local, const Mesh& mesh) {
  return distribute_tensor(local, mesh, Placements<>{});
}
#endif

#ifdef asynchronous_move_to_another_mesh  // says: cleave: redistribute_async stays on the mesh of the tensor; to another mesh, call redistribute
void move(const Rows& x, const DeviceMesh<Host, dp>& mesh) {
  x.redistribute_async(mesh, Shard<0>{});
}
#endif

#ifdef too_many_placements  // says: cleave: redistribute takes exactly one placement per mesh axis
void many(const Rows& x) { x.redistribute(Shard<0>{}, Replicate{}, Replicate{}); }
#endif

#ifdef wrong_number_of_placements_for_a_factory  // says: cleave: a factory takes exactly one placement per mesh axis
void factory(const Mesh& mesh) { zeros<float>({6, 5}, mesh, Replicate{}); }
#endif

#ifdef shard_beyond_the_rank  // says: cleave: a placement names a dimension that the tensor does not have
void beyond(const Rows& x) { x.redistribute(Shard<2>{}, Replicate{}); }
#endif

#ifdef partial_as_a_target  // says: cleave: a DTensor cannot be redistributed to Partial; operations make partials, redistribute resolves them
void partial(const Rows& x) { x.redistribute(Partial<Sum>{}, Replicate{}); }
#endif

#ifdef partial_of_a_whole_tensor  // says: cleave: a tensor cannot be distributed as Partial; operations make partials
void whole(const Local& local, const Mesh& mesh) {
  distribute_tensor(local, mesh, Partial<Sum>{}, Replicate{});
}
#endif

#ifdef placement_that_is_none  // says: cleave: redistribute takes placements: Shard<dim>{} or Replicate{}
void nonsense(const Rows& x) { x.redistribute(0, 1); }
#endif

#ifdef box_of_a_block_cyclic_part  // says: cleave: the part of a BlockCyclic tensor is no box: use each_local_box, or redistribute the tensor to Shard first
Box box_of(const DTensor<float, 2, Mesh, Placements<BlockCyclic<0, 2>, Replicate>>& x) {
  return x.local_box();
}
#endif

#ifdef cuts_of_what_an_axis_before_leaves  // says: cleave: Cuts<dim> must be on the first axis that shards the dimension: its points are global indices
auto nested(const Mesh& mesh) { return zeros<float>({6, 5}, mesh, Shard<0>{}, Cuts<-2>{0, 6}); }
#endif

#ifdef scalapack_that_was_not_found  // says: cleave: ScaLAPACK was not found when this was built: install the Debian package libscalapack-openmpi-dev (Meson option scalapack)
void without(const Rows& x) { scalapack::descriptor(x); }
#endif

#ifdef scalapack_right_hand_sides_of_another_type  // says: cleave: the matrices and the right-hand sides have different element types; cast one of them
auto other_type(const Rows& a, const DTensor<double, 1, Mesh, Placements<Shard<0>, Replicate>>& b) {
  return scalapack::solve(a, b);
}
#endif

#ifdef scalapack_of_integers  // says: cleave: ScaLAPACK takes float, double and complex numbers of both; call cast<double>(x)
auto integers(const DTensor<int, 2, Mesh, Placements<Shard<0>, Replicate>>& a) {
  return scalapack::det(a);
}
#endif

#ifdef hdf5_that_was_not_found  // says: cleave: HDF5 was not found when this was built: install the Debian package libhdf5-openmpi-dev (Meson option hdf5)
void without(const Mesh& mesh) { hdf5::create("x.h5", mesh); }
#endif

#ifdef netcdf_that_was_not_found  // says: cleave: NetCDF with MPI was not found when this was built: install the Debian package libnetcdf-mpi-dev (Meson option netcdf)
void without(const Mesh& mesh) { netcdf::create("x.nc", mesh); }
#endif

#ifdef netcdf_of_complex_numbers  // says: cleave: NetCDF has integers, float and double: write complex numbers as two variables, bool as std::int8_t, half and bfloat16 as float
void complex_numbers() { detail::require_netcdf_type<std::complex<float>>(); }
#endif
