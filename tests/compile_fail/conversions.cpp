// Tensors where a variable of another type, a number, a truth value or an element is expected.
#include <variant>

#include <cleave/cleave.hpp>
#include <cleave/grad.hpp>
#include <cleave/spmd.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};

using Mesh = DeviceMesh<Host, dp>;
using Rows = DTensor<float, 2, Mesh, Placements<Shard<0>>>;
using Whole = DTensor<float, 2, Mesh, Placements<Replicate>>;
using Local = Tensor<float, 2>;

void control(Rows& y, const Rows& x, const Whole& w, const Local& local, const Tracked<Rows>& t) {
  y = x;
  y = w.redistribute(y.placements());
  Rows copy = x;
  const DTensor deduced = w;
  std::variant<Rows, Whole> either = w;
  either = x;
  const Local part = x.to_local(), whole = x.full_tensor();
  const double d = sum(x).item() + local(0, 1) + x.to_local()(0, 1);
  if (any(x > 3).item() && !all(local > 3).item()) copy = y;
  copy = t.value();
  static_cast<void>(d + part(0, 0) + whole(0, 0));
}
static_assert(!std::is_constructible_v<std::string, Rows>);
static_assert(!std::is_convertible_v<Rows, Mesh> && !std::is_convertible_v<Local, Box>);
static_assert(std::is_copy_assignable_v<Rows> && std::is_nothrow_move_constructible_v<Local>);
static_assert(sizeof(Tracked<Local>) == sizeof(Local) + sizeof(void*));

#ifdef variable_of_other_placements  // says within 5 kB: cleave: the variable has other placements or another mesh, which are parts of its type: call x.redistribute(y.placements())
void placements(Rows& y, const Whole& x) { y = x; }
#endif

#ifdef typed_variable_of_other_placements  // says within 5 kB: cleave: the variable has other placements or another mesh, which are parts of its type: call x.redistribute(y.placements())
void typed(const Whole& x) { DTensor<float, 2, Mesh, Placements<Shard<0>>> y = x; }
#endif

#ifdef function_of_other_placements  // says within 5 kB: cleave: the variable has other placements or another mesh
void takes(const Rows&);
void argument(const Whole& x) { takes(x); }
#endif

#ifdef tracked_variable_of_other_placements  // says within 5 kB: cleave: the variable has other placements or another mesh
void tracked(Tracked<Rows>& y, const Tracked<Whole>& x) { y = x; }
#endif

#ifdef variable_with_other_dimensions  // says within 5 kB: cleave: the variable has another number of dimensions
void dimensions(Local& y, const Local& x) { y = sum(x, dim<0>{}); }
#endif

#ifdef variable_of_other_elements  // says within 5 kB: cleave: the variable has another element type: convert with cast<T>(x)
void elements(Local& y, const Tensor<double, 2>& x) { y = x; }
#endif

#ifdef local_variable  // says within 5 kB: cleave: a DTensor is not a Tensor: call to_local() for this rank's part, full_tensor() for the whole array
void local(const Rows& x) { Tensor<float, 2> t = x; }
#endif

#ifdef local_variable_assigned  // says within 5 kB: cleave: a DTensor is not a Tensor: call to_local() for this rank's part, full_tensor() for the whole array
void assigned(Local& t, const Rows& x) { t = x; }
#endif

#ifdef distributed_variable  // says within 5 kB: cleave: a Tensor is not a DTensor: place it with distribute_tensor or from_local
void distributed(Rows& y, const Local& x) { y = x; }
#endif

#ifdef variable_that_does_not_track  // says within 5 kB: cleave: a value that tracks gradients is not a plain one: call value()
void plain(Rows& y, const Tracked<Rows>& x) { y = x; }
#endif

#ifdef variable_that_tracks  // says within 5 kB: cleave: this value does not track gradients: call requires_grad(x)
void tracks(Tracked<Whole>& y, const Rows& x) { y = x; }
#endif

#ifdef traced_value_as_a_tensor  // says within 5 kB: cleave: a traced value has no elements
void traced(Local& y, const Traced<float, 2>& x) { y = x; }
#endif

#ifdef distributed_scalar_as_a_number  // says within 5 kB: cleave: a tensor is not a number or a truth value: call item()
void number(const Rows& x) { double d = sum(x); }
#endif

#ifdef distributed_scalar_as_a_condition  // says within 5 kB: cleave: a tensor is not a number or a truth value: call item()
void condition(const Rows& x) {
  if (sum(x) > 3) return;
}
#endif

#ifdef local_scalar_as_a_number  // says within 5 kB: cleave: a tensor is not a number or a truth value: call item()
double local_number(const Local& x) { return sum(x); }
#endif

#ifdef local_scalar_as_a_condition  // says within 5 kB: cleave: a tensor is not a number or a truth value: call item()
void local_condition(const Local& x) {
  while (sum(x) > 3) x.fill_(0);
}
#endif

#ifdef tracked_scalar_as_a_number  // says within 5 kB: cleave: a tensor is not a number or a truth value: call item()
void tracked_number(const Tracked<Rows>& x) { float f = sum(x); }
#endif

#ifdef element_of_a_dtensor  // says within 5 kB: cleave: elements of distributed, tracked and traced tensors have no indices: index to_local() or full_tensor(), take a part with slice or select, or call item()
float element(const Rows& x) { return x(0, 1); }
#endif

#ifdef row_of_a_dtensor  // says within 5 kB: cleave: elements of distributed, tracked and traced tensors have no indices
void row(const Rows& x) { x[0]; }
#endif

#ifdef element_written_to  // says within 5 kB: cleave: elements of distributed, tracked and traced tensors have no indices
void written(const Tracked<Local>& x) { x(0, 1) = 2; }
#endif

#ifdef too_many_indices  // says within 5 kB: cleave: an element of a Tensor has one index per dimension: x(i, j)
float indices(const Local& x) { return x(0, 1, 2); }
#endif

#ifdef row_of_a_tensor  // says within 5 kB: cleave: write x(i, j) for an element of a Tensor, x.select(0, i) for a row
void local_row(const Local& x) { x[0]; }
#endif
