// Gradients that would be silently wrong.
#include <cleave/functional.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/elementwise/in_place.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};

using Mesh = DeviceMesh<Host, dp>;
using Rows = DTensor<double, 2, Mesh, Placements<Shard<0>>>;
using Whole = DTensor<double, 2, Mesh, Placements<Replicate>>;

void control(const Tracked<Rows>& x, const Tracked<Whole>& w) {
  to_local(x);
  to_local(w, Partial<Sum>{});
  backward(sum(x * w));
  sub_(x.value(), 1);
}

#ifdef leaf_in_place  // says: cleave: an operation in place cannot change a value that tracks gradients
void leaf(const Tracked<Rows>& x) { add_(x, 1); }
#endif

#ifdef tracked_value_into_another  // says: cleave: an operation in place cannot change a value that tracks gradients
void into(Rows& y, const Tracked<Rows>& x) { y += x; }
#endif

#ifdef gradient_of_a_replicated_value_left_open  // says: cleave: to_local: state the placements of the gradient
auto left_open(const Tracked<Whole>& w) { return to_local(w); }
#endif

#ifdef gradient_that_does_not_add_up  // says: cleave: to_local: a gradient adds up; it may be Shard, Replicate, Partial<Sum> or Partial<Avg>
auto extreme(const Tracked<Whole>& w) { return to_local(w, Partial<Max>{}); }
#endif

#ifdef local_function_of_a_replicated_value  // says: cleave: to_local: state the placements of the gradient
auto mapped(const Tracked<Rows>& x, const Tracked<Whole>& w) {
  return local_map([](const auto& a, const auto& b) { return a * b; }, Placements<Shard<0>>{}, x,
                   w);
}
#endif

#ifdef backward_of_a_matrix  // says: cleave: backward requires a scalar
void matrix(const Tracked<Rows>& x) { backward(x * x); }
#endif

#ifdef gradient_of_integers  // says: cleave: requires_grad requires real or complex elements
auto integers(const Tensor<index_t, 1>& x) { return requires_grad(x); }
#endif

#ifdef tracked_on_another_mesh  // says: cleave: the operands of an operation are on meshes of different types
using Column = DTensor<double, 2, DeviceMesh<Host, tp>, Placements<Shard<0>>>;
auto meshes(const Tracked<Rows>& x, const Column& y) { return x * y; }
#endif

#ifdef collective_of_a_tracked_tensor  // says: cleave: functional collectives take a local Tensor or the result of another one; redistribute a DTensor, and pass value() of a tensor that tracks gradients: gradients do not pass through functional collectives
auto collective(const World& world, const Tracked<Tensor<float, 1>>& x) {
  return functional::all_reduce(x, Sum{}, world);
}
#endif

struct Shifted : Stencil {
  constexpr auto operator()(const auto& u) const { return u(0, 0) * u(0, 1); }
};

#ifdef stencil_of_a_tracked_value_in_place  // says: cleave: an operation in place cannot change a value that tracks gradients
void in_place(const Tensor<float, 2>& y, const Tracked<Tensor<float, 2>>& x) {
  apply(out(y), Shifted{}, x, edges(zero));
}
#endif
