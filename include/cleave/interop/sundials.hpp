// DTensors as vectors of SUNDIALS, whose integrators and solvers (CVODE, IDA, ARKODE, KINSOL) then
// run on them. Needs SUNDIALS 6 with double precision (Debian: libsundials-dev).
//
//     SUNContext context;
//     SUNContext_Create(nullptr, &context);
//     N_Vector y = sun::nvector(u, context);             // the memory of u
//     CVodeInit(cvode, rhs, 0, y);                            // rhs: sun::tensor<Field>(y)
//
// Norms and products are exact sums (docs/exact_sums.md), and everything else is computed per
// element: an integrator takes the same steps, and gives the same bits, on any mesh.
#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <sundials/sundials_nvector.h>

#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/reductions/exact_reductions.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0::sun {

namespace detail {

/// The functions of vectors that are X: every rank of the mesh calls each of them.
template <class X>
struct Functions {
  static X& of(N_Vector v) { return *static_cast<X*>(v->content); }
  static double* data(N_Vector v) { return of(v).to_local().data(); }
  static index_t local_size(N_Vector v) { return of(v).to_local().size(); }

  static N_Vector wrap(X x, N_Vector like, SUNContext context) {
    const N_Vector v = N_VNewEmpty(context);
    if (v == nullptr || (like != nullptr && N_VCopyOps(like, v) != 0))
      throw Error("sun::nvector", "SUNDIALS has no memory for a vector", x.context());
    v->content = new X(std::move(x));
    return v;
  }
  /// A vector of uninitialised elements, placed as another one.
  static N_Vector clone(N_Vector v) {
    const X& x = of(v);
    return wrap(X::unchecked(typename X::local_type(x.to_local().shape()), x.mesh(), x.shape(),
                             x.actual_layout()),
                v, v->sunctx);
  }
  static void destroy(N_Vector v) {
    if (v == nullptr) return;
    delete static_cast<X*>(v->content);
    v->content = nullptr;
    N_VFreeEmpty(v);
  }

  /// z(i) = f(operands(i)..)
  template <class F, class... V>
  static void each(const F& f, N_Vector z, V... operands) {
    double* const to = data(z);
    const index_t n = local_size(z);
    [&](const auto*... from) {
      for (index_t i = 0; i < n; ++i) to[i] = f(from[i]...);
    }(static_cast<const double*>(data(operands))...);
  }
  /// A temporary array of f(operands(i)..).
  template <class F, class... V>
  static X made(const F& f, N_Vector like, V... operands) {
    const std::unique_ptr<_generic_N_Vector, void (*)(N_Vector)> z(clone(like), destroy);
    each(f, z.get(), operands...);
    return of(z.get());
  }
  /// The root of the sum of squares over `count` elements.
  static double root_of_squares(const X& x, double count) {
    return std::sqrt(dot<exact>(x, x).item() / count);
  }
  static bool any(const X& indicators) {
    return indicators.size() > 0 && max(indicators).item() != 0;
  }

  static double constrained(double c, double x) {  // CVODE's guide: ±2 strict, ±1 not
    const bool holds = c == 2 ? x > 0 : c == 1 ? x >= 0 : c == -1 ? x <= 0 : c == -2 ? x < 0 : true;
    return holds ? 0 : 1;
  }

  static void fill(N_Vector_Ops ops) {
    using V = N_Vector;
    ops->nvgetvectorid = [](V) { return SUNDIALS_NVEC_CUSTOM; };
    ops->nvclone = clone;
    ops->nvdestroy = destroy;
    ops->nvgetarraypointer = data;
    ops->nvgetlength = [](V v) { return sunindextype(of(v).size()); };
    ops->nvlinearsum = [](double a, V x, double b, V y, V z) {
      each([=](double p, double q) { return a * p + b * q; }, z, x, y);
    };
    ops->nvconst = [](double c, V z) { each([=] { return c; }, z); };
    ops->nvprod = [](V x, V y, V z) { each([](double p, double q) { return p * q; }, z, x, y); };
    ops->nvdiv = [](V x, V y, V z) { each([](double p, double q) { return p / q; }, z, x, y); };
    ops->nvscale = [](double c, V x, V z) { each([=](double p) { return c * p; }, z, x); };
    ops->nvabs = [](V x, V z) { each([](double p) { return std::abs(p); }, z, x); };
    ops->nvinv = [](V x, V z) { each([](double p) { return 1 / p; }, z, x); };
    ops->nvaddconst = [](V x, double b, V z) { each([=](double p) { return p + b; }, z, x); };
    ops->nvcompare = [](double c, V x, V z) {
      each([=](double p) { return std::abs(p) >= c ? 1.0 : 0.0; }, z, x);
    };
    ops->nvdotprod = [](V x, V y) { return dot<exact>(of(x), of(y)).item(); };
    ops->nvmaxnorm = [](V x) { return of(x).size() == 0 ? 0.0 : max(abs(of(x))).item(); };
    ops->nvmin = [](V x) { return min(of(x)).item(); };
    ops->nvl1norm = [](V x) { return sum<exact>(abs(of(x))).item(); };
    ops->nvwl2norm = [](V x, V w) {
      return root_of_squares(made([](double p, double q) { return p * q; }, x, x, w), 1);
    };
    ops->nvwrmsnorm = [](V x, V w) {
      return root_of_squares(made([](double p, double q) { return p * q; }, x, x, w),
                             double(of(x).size()));
    };
    ops->nvwrmsnormmask = [](V x, V w, V mask) {
      const auto masked = [](double p, double q, double m) { return m > 0 ? p * q : 0; };
      return root_of_squares(made(masked, x, x, w, mask), double(of(x).size()));
    };
    ops->nvinvtest = [](V x, V z) -> booleantype {
      const X zeros = made([](double p) { return p == 0 ? 1.0 : 0.0; }, x, x);
      const index_t n = local_size(x);
      for (index_t i = 0; i < n; ++i)
        if (data(x)[i] != 0) data(z)[i] = 1 / data(x)[i];
      return any(zeros) ? SUNFALSE : SUNTRUE;
    };
    ops->nvconstrmask = [](V c, V x, V m) -> booleantype {
      each(constrained, m, c, x);
      return any(of(m)) ? SUNFALSE : SUNTRUE;
    };
    ops->nvminquotient = [](V x, V y) {
      const auto quotient = [](double p, double q) { return q != 0 ? p / q : SUN_BIG_REAL; };
      return min(made(quotient, x, x, y)).item();
    };
  }
};

}  // namespace detail

/// A vector of SUNDIALS with the elements of a DTensor, without a copy; N_VDestroy frees the
/// vector. Its clones are placed as x.
///
/// Functions of SUNDIALS that take it are collective: every rank of the mesh calls them, with its
/// own context. An exception of a failing rank passes through SUNDIALS' functions, after which its
/// objects can only be destroyed. There is no communicator in the vector: norms use the mesh of x.
///
/// @throws Error if the local elements of x are not contiguous
template <class X>
N_Vector nvector(const X& x, SUNContext context) {
  static_assert(is_dtensor<X> && std::is_same_v<typename X::value_type, double> &&
                    std::is_same_v<typename X::device_type, Host>,
                "cleave: sun::nvector takes DTensors of double on the host");
  static_assert(std::is_same_v<realtype, double>,
                "cleave: this SUNDIALS was built for another precision than double");
  static_assert(!X::layout.has_partial(),
                "cleave: sun::nvector: the elements are partial sums; redistribute first");
  if (!x.to_local().contiguous())
    throw Error("sun::nvector", "the local elements are not contiguous", x.context());
  const N_Vector v = detail::Functions<X>::wrap(x, nullptr, context);
  detail::Functions<X>::fill(v->ops);
  return v;
}

/// The DTensor of such a vector, or of a clone: shares its elements.
/// @pre the vector was made of an X, or is a clone of one that was
template <class X>
const X& tensor(N_Vector v) {
  return detail::Functions<X>::of(v);
}

}  // namespace cleave::inline v0::sun
