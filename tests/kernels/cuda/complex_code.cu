// Functions of complex numbers, each in its own kernel, whose code complex_code.py reads.
#include <complex>

#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>

namespace {

using namespace cleave;
using Narrow = std::complex<float>;
using Wide = std::complex<double>;

struct Planted {
  __device__ Wide operator()(const Wide& a, const Wide& b) const { return a == b ? b : a; }
};
struct Scaled {
  __device__ Wide operator()(const Wide& a) const { return kernels::scaled(a, 3.5); }
};
struct Average {
  kernels::DividedBy<Wide> divide{7};
  __device__ Wide operator()(const Wide& a) const { return divide(a); }
};
template <class Op>
struct Folded {
  __device__ Wide operator()(const Wide& a, const Wide& b) const {
    return kernels::Fold<Op>::combine(a, b);
  }
};

template <class F, class R, class... T>
__global__ void apply(F f, R* out, const T*... in) {
  *out = f(*in...);
}

template <class R, class... T, class F>
void* kernel_of(F) {
  return reinterpret_cast<void*>(&apply<F, R, T...>);
}

}  // namespace

void* const compiled[] = {
    kernel_of<Wide, Wide, Wide>(Planted{}),
    kernel_of<Wide, Wide, Wide>(ops::Add{}),
    kernel_of<Wide, Wide, Wide>(ops::Sub{}),
    kernel_of<Wide, Wide, Wide>(ops::Mul{}),
    kernel_of<Wide, Wide, Wide>(ops::Div{}),
    kernel_of<Wide, Wide, Wide>(Folded<Sum>{}),
    kernel_of<Wide, Wide, Wide>(Folded<Product>{}),
    kernel_of<Wide, Wide>(ops::Neg{}),
    kernel_of<Wide, Wide>(ops::Square{}),
    kernel_of<double, Wide>(ops::Abs{}),
    kernel_of<Wide, Wide>(ops::Exp{}),
    kernel_of<Wide, Wide>(ops::Log{}),
    kernel_of<Wide, Wide>(ops::Sqrt{}),
    kernel_of<Wide, Wide>(ops::Tanh{}),
    kernel_of<Wide, Wide>(ops::Sigmoid{}),
    kernel_of<Wide, Wide>(Scaled{}),
    kernel_of<Wide, Wide>(Average{}),
    kernel_of<Wide, Narrow>(ops::Cast<Wide>{}),
    kernel_of<Narrow, Wide>(ops::Cast<Narrow>{}),
};
