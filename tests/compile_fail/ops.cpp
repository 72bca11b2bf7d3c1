// Operands that an operation refuses, and communication that was ruled out.
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/quantize.hpp>
#include <cleave/ops/linear_algebra/cholesky.hpp>
#include <cleave/ops/linear_algebra/eigenvalues.hpp>
#include <cleave/ops/linear_algebra/least_squares.hpp>
#include <cleave/ops/linear_algebra/singular_values.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/transforms/cosine_sine.hpp>
#include <cleave/ops/transforms/fourier.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};

using Mesh = DeviceMesh<Host, dp, tp>;
using Line = DeviceMesh<Host, tp>;
using Rows = DTensor<float, 2, Mesh, Placements<Shard<0>, Replicate>>;
using Columns = DTensor<float, 2, Mesh, Placements<Replicate, Shard<1>>>;
using Cut = DTensor<float, 2, Mesh, Placements<Replicate, Shard<0>>>;

void control(const Rows& x, const Columns& w, const Cut& v) {
  matmul<explicit_communication>(x, w);
  matmul(x, v);
}

#ifdef arithmetic_of_8_bits  // says: cleave: floats of 8 bits are for storage
using Bytes = DTensor<float8_e4m3, 2, Mesh, Placements<Shard<0>, Replicate>>;
void bytes(const Bytes& x) { add(x, x); }
#endif

#ifdef partial_of_8_bits  // says: cleave: floats of 8 bits are for storage, and cannot be Partial
DTensor<float8_e4m3, 2, Mesh, Placements<Partial<Sum>, Replicate>> addends();
auto reduced() { return addends().full_tensor(); }
#endif

#ifdef quantized_to_16_bits  // says: cleave: quantize makes float8_e4m3 or float8_e5m2
void quantized(const Rows& x) { quantize<half>(x, 2.0f); }
#endif

#ifdef tensor_next_to_a_dtensor  // says: cleave: an operation mixes a Tensor with DTensors
void mixed(const Rows& x, const Tensor<float, 2>& w) { matmul(x, w); }
#endif

#ifdef meshes_of_different_types  // says: cleave: the operands of an operation are on meshes of different types
void meshes(const Rows& x, const DTensor<float, 2, Line, Placements<Replicate>>& w) {
  matmul(x, w);
}
#endif

#ifdef element_types_that_differ  // says: cleave: the operands of matmul have different element types
void types(const Rows& x, const DTensor<double, 2, Mesh, Placements<Replicate, Shard<1>>>& w) {
  matmul(x, w);
}
#endif

#ifdef number_for_a_matrix  // says: cleave: matmul requires at least one dimension
void number(const Rows& x, const DTensor<float, 0, Mesh, Placements<Replicate, Replicate>>& w) {
  matmul(x, w);
}
#endif

#ifdef wrong_number_of_placements_asked_for  // says: cleave: a requested result has exactly one placement per mesh axis
void asked(const Rows& x, const Columns& w) { matmul<Placements<Replicate>>(x, w); }
#endif

#ifdef partial_asked_for  // says: cleave: a result cannot be requested as Partial
void partial(const Rows& x, const Columns& w) { matmul<Placements<Partial<Sum>, Replicate>>(x, w); }
#endif

#ifdef communication_that_was_to_be_explicit  // says: cleave: explicit_communication: this operand would be redistributed
using Gathered = DTensor<float, 2, Mesh, Placements<Shard<0>, Shard<0>>>;
void moves(const Gathered& x, const Columns& w) { matmul<explicit_communication>(x, w); }
#endif

#ifdef transform_of_integers  // says: cleave: Fourier transforms take float, double and complex numbers of both; call cast<double>(x)
void integers(const Tensor<std::int64_t, 2>& x) { fft(x); }
#endif

#ifdef real_transform_of_complex_numbers  // says: cleave: rfft takes real numbers; call fft, or real(x) first
void complex(const Tensor<std::complex<double>, 2>& x) { rfft(x, dim<0, 1>{}); }
#endif

#ifdef dimension_transformed_twice  // says: cleave: dim names one or more dimensions, each once
void twice(const Tensor<double, 2>& x) { fft(x, dim<0, -2>{}); }
#endif

#ifdef cosine_transform_of_integers  // says: cleave: cosine and sine transforms take float and double; call cast<double>(x), or transform real(x) and imag(x)
void integers(const Tensor<std::int64_t, 2>& x) { dct(x); }
#endif

#ifdef dimension_transformed_twice_to_sines  // says: cleave: dim names one or more dimensions, each once
void twice(const Tensor<double, 2>& x) { dst(x, dim<0, -2>{}); }
#endif

#ifdef lapack_that_was_not_found  // says: cleave: LAPACK was not found when this was built: install the Debian package libopenblas-dev (Meson option blas)
void without(const Rows& x) { cholesky(x); }
#endif

#ifdef inverse_of_integers  // says: cleave: linear algebra takes float, double and complex numbers of both; call cast<double>(x)
void whole(const Tensor<std::int64_t, 2>& x) { inv(x); }
#endif

#ifdef singular_values_of_integers  // says: cleave: linear algebra takes float, double and complex numbers of both; call cast<double>(x)
void values(const Tensor<std::int32_t, 3>& x) { svd(x); }
#endif

#ifdef eigenvalues_of_a_vector  // says: cleave: linear algebra requires matrices, two dimensions or more
void vector(const Tensor<double, 1>& x) { eigh(x); }
#endif

#ifdef least_squares_of_two_types  // says: cleave: the matrices and the right-hand sides have different element types; cast one of them
void sides(const Tensor<double, 2>& a, const Tensor<float, 1>& b) { lstsq(a, b); }
#endif

#ifdef batches_of_right_hand_sides_alone  // says: cleave: right-hand sides are [.., n, k], or [.., n], with the batches of the matrices [.., n, n]
void batches(const Tensor<float, 2>& a, const Tensor<float, 3>& b) { solve(a, b); }
#endif
