// Functions of complex numbers, each in a kernel of its own whose code complex_code.py reads.
#include <complex>

#include <cleave/kernels/arithmetic.hpp>
#include <cleave/ops/pointwise_functors.hpp>

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
    kernel_of<Wide, Wide, Wide>(functors::Add<Wide>{}),
    kernel_of<Wide, Wide, Wide>(functors::Sub<Wide>{}),
    kernel_of<Wide, Wide, Wide>(functors::Mul<Wide>{}),
    kernel_of<Wide, Wide, Wide>(functors::Div<Wide>{}),
    kernel_of<Wide, Wide, Wide>(Folded<Sum>{}),
    kernel_of<Wide, Wide, Wide>(Folded<Product>{}),
    kernel_of<Wide, Wide>(functors::Neg<Wide>{}),
    kernel_of<Wide, Wide>(functors::Square<Wide>{}),
    kernel_of<double, Wide>(functors::Abs<Wide>{}),
    kernel_of<Wide, Wide>(functors::Exp<Wide>{}),
    kernel_of<Wide, Wide>(functors::Log<Wide>{}),
    kernel_of<Wide, Wide>(functors::Sqrt<Wide>{}),
    kernel_of<Wide, Wide>(functors::Tanh<Wide>{}),
    kernel_of<Wide, Wide>(functors::Sigmoid<Wide>{}),
    kernel_of<Wide, Wide>(Scaled{}),
    kernel_of<Wide, Wide>(Average{}),
    kernel_of<Wide, Narrow>(functors::Cast<Narrow, Wide>{}),
    kernel_of<Narrow, Wide>(functors::Cast<Wide, Narrow>{}),
};
