// Calls with other arguments than a function takes.
#include <variant>
#include <vector>

#include <cleave/cleave.hpp>
#include <cleave/grad.hpp>

using namespace cleave;

struct dp : axis {};

using Mesh = DeviceMesh<Host, dp>;
using Rows = DTensor<float, 2, Mesh, Placements<Shard<0>>>;
using Local = Tensor<float, 2>;

void control(const Mesh& mesh, const Local& x, const Rows& y) {
  matmul(x, x);
  softmax(x, dim<-1>{});
  sum<exact>(x, dim<0>{});
  narrow(y, dim<1>{}, 0, 1);
  reshape(x, {3, 4});
  dropout(y, 0.5f);
  clamp(x, 0, 1);
  const auto rows = Shard<0>{};
  zeros<float>({6, 5}, mesh, rows).redistribute(rows);
  zeros<float>({1, 1, 1, 1, 1, 1, 1, 1}, mesh, rows);
  from_local(x, mesh, rows);
  backward(sum(requires_grad(y)));
  const int n = 3;
  Local({n, 4});
  Tensor<float, 1>({n}, {1, 2, 3});
}

// The same struct of tensors and functions of the same names as a program of a user may have them.
namespace own {
struct Array {
  Local elements;
};
double norm(const Array&, double p) { return p; }
template <class X>
auto softmax(const X& x, double temperature) {
  return cleave::softmax(x / temperature, dim<0>{});
}
double functions(const Array& a) {
  softmax(a.elements, 2.0);
  return norm(a, 2);
}
}  // namespace own

#ifdef three_operands_of_matmul  // says within 5 kB: cleave: these arguments do not fit; call it so: matmul(x, w)
void three(const Rows& x) { matmul(x, x, x); }
#endif

#ifdef one_operand_of_matmul  // says within 5 kB: cleave: these arguments do not fit; call it so: matmul(x, w)
void one(const Local& x) { matmul(x); }
#endif

#ifdef two_operands_of_exp  // says within 5 kB: cleave: these arguments do not fit; call it so: exp(a)
void two(const Tracked<Rows>& x) { exp(x, x); }
#endif

#ifdef dimension_as_a_number  // says within 5 kB: cleave: these arguments do not fit; call it so: softmax(x, dim<0>{})
void number(const Rows& x) { softmax(x, 1); }
#endif

#ifdef dimensions_as_numbers  // says within 5 kB: cleave: these arguments do not fit; call it so: transpose(x), transpose(x, dim<0, 1>{})
void numbers(const Local& x) { transpose(x, 0, 1); }
#endif

#ifdef dimension_first  // says within 5 kB: cleave: these arguments do not fit; call it so: cat(dim<0>{}, x, y)
void first(const Local& x) { cat(x, x, dim<0>{}); }
#endif

#ifdef reduced_dimension_as_a_number  // says within 5 kB: cleave: dimensions are types: write dim<0>{}, as in sum(x, dim<0>{})
void reduced(const Rows& x) { sum(x, 0); }
#endif

#ifdef too_many_extents  // says within 5 kB: cleave: a tensor has 0 to 8 dimensions
void extents(const Mesh& mesh) { zeros<float>({1, 1, 1, 1, 1, 1, 1, 1, 1}, mesh, Shard<0>{}); }
#endif

#ifdef more_extents_than_dimensions  // says within 5 kB: cleave: a Tensor<T, Rank> takes Rank extents: Tensor<float, 2> x({3, 4})
void more() { Local({3, 4, 5}); }
#endif

#ifdef fewer_extents_than_dimensions  // says within 5 kB: cleave: a Tensor<T, Rank> takes Rank extents: Tensor<float, 2> x({3, 4})
void fewer() { Local({3}); }
#endif

#ifdef vector_from_local  // says within 5 kB: cleave: from_local takes a Tensor: make a Tensor of the elements first
void from(const Mesh& mesh, const std::vector<float>& v) { from_local(v, mesh, Shard<0>{}); }
#endif

#ifdef vector_distributed  // says within 5 kB: cleave: distribute_tensor takes a Tensor: make a Tensor of the elements first
void distribute(const Mesh& mesh, std::vector<float>& v) { distribute_tensor(v, mesh, Shard<0>{}); }
#endif

#ifdef placement_chosen_at_run_time  // says within 5 kB: cleave: redistribute takes placements: Shard<dim>{} or Replicate{}; they are types, so a program that chooses at run time branches between calls
void chosen(const Rows& x, std::variant<Shard<0>, Replicate> p) { x.redistribute(p); }
#endif

#ifdef placement_as_a_value  // says within 5 kB: cleave: redistribute takes placements: Shard<dim>{} or Replicate{}; they are types, so a program that chooses at run time branches between calls
void value(const Rows& x, Placement p) { x.redistribute(p); }
#endif

#ifdef placement_of_a_factory_as_a_value  // says within 5 kB: cleave: a factory takes placements: Shard<dim>{} or Replicate{}; they are types, so a program that chooses at run time branches between calls
void made(const Mesh& mesh, Placement p) { zeros<float>({6, 5}, mesh, p); }
#endif

#ifdef backward_of_what_does_not_track  // says within 5 kB: cleave: the value does not track gradients: compute it from values that requires_grad(x) returns
void untracked(const Rows& x) { backward(sum(x)); }
#endif

#ifdef gradient_of_what_does_not_track  // says within 5 kB: cleave: the value does not track gradients: compute it from values that requires_grad(x) returns
void gradient(const Local& x) { grad(x); }
#endif
