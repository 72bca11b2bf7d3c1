// Element types, dimensions and rules that operations refuse.
#include <complex>
#include <cstdint>

#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/engine/apply_op.hpp>
#include <cleave/ops/indices/one_hot.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/redistribution/reduce_partials.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};

using Mesh = DeviceMesh<Host, dp, tp>;
template <class T>
using Matrix = DTensor<T, 2, Mesh, Placements<Shard<0>, Replicate>>;
using Rows = Matrix<float>;
using Sums = DTensor<float, 2, Mesh, Placements<Shard<0>, Partial<Sum>>>;

void control(const Rows& x, const Sums& p) {
  (x + 1) * x - cast<float>(p);
  argmax(sum(abs(x), dim<1>{}), dim<0>{});
  one_hot<float>(argmin(x, dim<-1>{}), 3);
  permute(x, dim<1, 0>{});
  reduce_partials(p, p);
  add(out(add_(x, 1)), x, p.redistribute(Shard<0>{}, Replicate{}));
  softmax(out(x), x, dim<1>{});
}

#ifdef sum_in_place_of_a_shard  // says: cleave: the target and the result of an operation have different placements
void placed(const Rows& x, const Sums& p) { add(out(x), p, p); }
#endif

#ifdef place_that_is_kept_by_no_operation  // says: cleave: the target and the result of an operation have different placements
using Whole = DTensor<float, 2, Mesh, Placements<Replicate, Replicate>>;
void narrowed(const Whole& x, const Rows& y) { add_(x, y); }
#endif

#ifdef result_of_another_type  // says: cleave: the target and the result of an operation have different element types
void typed(const Matrix<double>& y, const Rows& x) { add(out(y), x, x); }
#endif

#ifdef target_that_would_grow  // says: cleave: the target and the result of an operation have different numbers of dimensions
void grown(const Tensor<float, 1>& x, const Tensor<float, 2>& y) { add_(x, y); }
#endif

#ifdef local_target_of_a_distributed_result  // says: cleave: an operation mixes a Tensor with DTensors
void local(const Tensor<float, 2>& y, const Rows& x) { add(out(y), x, x); }
#endif

#ifdef exponential_of_integers_in_place  // says: cleave: this function is defined on real and complex numbers; cast first
void whole(const Matrix<std::int64_t>& x) { exp_(x); }
#endif

#ifdef argmax_into_a_tensor  // says: cleave: the target and the result of an operation have different numbers of dimensions
void largest(const Matrix<std::int64_t>& y, const Rows& x) {
  call_op(out(y), ops::ArgReduce<Max, 1>{}, x.redistribute(Replicate{}, Replicate{}));
}
#endif

#ifdef function_with_a_target_placed_otherwise  // says: cleave: the target and the result of an operation have different placements
void sums(const DTensor<float, 1, Mesh, Placements<Replicate, Replicate>>& y, const Rows& x) {
  sum(out(y), x, dim<1>{});
}
#endif

#ifdef function_with_a_target_of_another_type  // says: cleave: the target and the result of an operation have different element types
void smooth(const Matrix<double>& y, const Matrix<float>& x) { softmax(out(y), x, dim<0>{}); }
#endif

#ifdef function_of_several_results_with_a_target  // says: cleave: an operation that writes to a target must have one result
void halves(const Tensor<float, 2>& y, const Tensor<float, 2>& x) { chunk<2>(out(y), x, dim<0>{}); }
#endif

#ifdef placements_of_a_target  // says: cleave: the result of a call that writes to a target has the placements of the target
void asked(const Rows& y, const Rows& x) { exp<Placements<Shard<0>, Replicate>>(out(y), x); }
#endif

#ifdef tensor_added_to_a_dtensor  // says: cleave: an operation mixes a Tensor with DTensors
auto mixed(const Rows& x, const Tensor<float, 2>& y) { return x + y; }
#endif

#ifdef sum_of_different_types  // says: cleave: the operands have different element types; cast one of them
auto types(const Rows& x, const Matrix<double>& y) { return x + y; }
#endif

#ifdef real_number_next_to_integers  // says: cleave: the number next to a tensor is of a wider kind
auto kind(const Matrix<std::int32_t>& x) { return x * 0.5; }
#endif

#ifdef largest_complex_number  // says: cleave: complex numbers have no order
auto order(const Matrix<std::complex<float>>& x) { return max(x); }
#endif

#ifdef logarithm_of_integers  // says: cleave: this function is defined on real and complex numbers; cast first
auto integers(const Matrix<std::int32_t>& x) { return log(x); }
#endif

#ifdef mean_of_integers  // says: cleave: mean requires a floating-point element type; cast first
auto integers(const Matrix<std::int32_t>& x) { return mean(x); }
#endif

#ifdef condition_that_is_no_bool  // says: cleave: the condition of where must be a tensor of bool
auto condition(const Rows& x) { return where(x, x, x); }
#endif

#ifdef complex_cast_to_real  // says: cleave: complex elements cannot be cast to real ones; use abs
auto real(const Matrix<std::complex<float>>& x) { return cast<float>(x); }
#endif

#ifdef dimension_beyond_the_rank  // says: cleave: the tensor has no such dimension
auto beyond(const Rows& x) { return sum(x, dim<2>{}); }
#endif

#ifdef dimension_named_twice  // says: cleave: dim names one or more dimensions, each once
auto twice(const Rows& x) { return sum(x, dim<1, -1>{}); }
#endif

#ifdef order_that_is_no_permutation  // says: cleave: permute must name every dimension once
auto order(const Rows& x) { return permute(x, dim<1, 1>{}); }
#endif

#ifdef classes_that_are_no_integers  // says: cleave: one_hot requires integer classes
auto classes(const Rows& x) { return one_hot<float>(x, 3); }
#endif

#ifdef partials_on_different_axes  // says: cleave: reduce_partials requires operands that are Partial with the same operation on the same axes
auto axes(const Sums& x, const Rows& y) { return reduce_partials(x, y); }
#endif

#ifdef something_else_asked_for  // says: cleave: an operation can be asked for Placements<..> of its result, once, and for explicit_communication
auto asked(const Rows& x) { return relu<Shard<0>>(x); }
#endif

struct Odd {};
#ifdef rule_with_an_upper_case_factor  // says: cleave: the factors of a sharding_rule read like
template <>
struct cleave::sharding_rule<Odd> {
  static constexpr const char* factors = "iJ->i";
};
auto rule = rule_of<Odd>;
#endif

#ifdef rule_that_reads_half_a_pair  // says: cleave: the reads of a sharding_rule are pairs of letters of its factors
template <>
struct cleave::sharding_rule<Odd> {
  static constexpr const char* factors = "ij->ik";
  static constexpr const char* reads = "j";
};
auto rule = rule_of<Odd>;
#endif

#ifdef rule_with_another_number_of_operands  // says: cleave: the call and the sharding_rule have different numbers of operands
template <>
struct cleave::sharding_rule<Odd> {
  static constexpr const char* factors = "ij,ij->ij";
};
auto odd(const Rows& x) {
  return apply_op<Odd>("odd", [](const Tensor<float, 2>& a) { return a; }, x);
}
#endif

#ifdef merged_dimensions_without_regrouping  // says: cleave: an operation whose factors have parentheses states its regrouping
struct Merge {
  static constexpr const char* name = "merge";
  static constexpr const char* factors = "ab->(ab)";
  static Shape extents() { return Shape::filled(1, 12); }
  static void kernel(const auto&, const Task&, const auto&, const auto&) {}
};
void merged(const Rows& x) { call_op(Merge{}, x); }
#endif
