// Floating-point arithmetic (sections 9.7.3 to 9.7.5). Approximations are computed exactly: their
// errors are bounded, not specified.
#include <bit>
#include <cfenv>
#include <cmath>
#include <type_traits>

#include "ptx_decode.hpp"
#include "ptx_numbers.hpp"

namespace ptx {
namespace {

using I = const Instruction&;

struct Add {
  template <class T>
  T operator()(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) {
    return a * b;
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) {
    return a / b;
  }
};
// The other operand where one is NaN; -0 is less than +0 (section 9.7.3.11).
struct Min {
  template <class T>
  T operator()(T a, T b) {
    if (a == b) return std::signbit(a) ? a : b;
    return std::fmin(a, b);
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) {
    if (a == b) return std::signbit(a) ? b : a;
    return std::fmax(a, b);
  }
};
template <class F>
struct OrNan {
  template <class T>
  T operator()(T a, T b) {
    return a != a || b != b ? T(NAN) : F{}(a, b);
  }
};
struct CopySign {
  template <class T>
  T operator()(T sign, T size) {
    return std::copysign(size, sign);
  }
};
struct Neg {
  template <class T>
  T operator()(T a) {
    return -a;
  }
};
struct Abs {
  template <class T>
  T operator()(T a) {
    return std::fabs(a);
  }
};
struct Sqrt {
  template <class T>
  T operator()(T a) {
    return std::sqrt(a);
  }
};
struct Rcp {
  template <class T>
  T operator()(T a) {
    return 1 / a;
  }
};
struct Rsqrt {
  template <class T>
  T operator()(T a) {
    return T(1 / std::sqrt(double(a)));
  }
};
struct Exp2 {
  template <class T>
  T operator()(T a) {
    return T(std::exp2(double(a)));
  }
};
struct Log2 {
  template <class T>
  T operator()(T a) {
    return T(std::log2(double(a)));
  }
};
struct Sin {
  template <class T>
  T operator()(T a) {
    return T(std::sin(double(a)));
  }
};
struct Cos {
  template <class T>
  T operator()(T a) {
    return T(std::cos(double(a)));
  }
};
struct Tanh {
  template <class T>
  T operator()(T a) {
    return T(std::tanh(double(a)));
  }
};

template <class T, class F>
void binary(Thread& t, I i) {
  t.set<T>(i.slot[0], F{}(t.get<T>(i.slot[1]), t.get<T>(i.slot[2])));
}
template <class T, class F>
void unary(Thread& t, I i) {
  t.set<T>(i.slot[0], F{}(t.get<T>(i.slot[1])));
}
template <class T>
void fma(Thread& t, I i) {
  t.set<T>(i.slot[0], std::fma(t.get<T>(i.slot[1]), t.get<T>(i.slot[2]), t.get<T>(i.slot[3])));
}

// The roundings .rz, .rm and .rp (section 9.7.3.1): F reads its operands between the two calls.
template <Handler F, int Rounding>
void directed(Thread& t, I i) {
  std::fesetround(Rounding);
  F(t, i);
  std::fesetround(FE_TONEAREST);
}
template <Handler F>
void add_directed(Handlers& h, const std::string& name, const std::string& type) {
  h[name + ".rz" + type] = directed<F, FE_TOWARDZERO>;
  h[name + ".rm" + type] = directed<F, FE_DOWNWARD>;
  h[name + ".rp" + type] = directed<F, FE_UPWARD>;
}

// .ftz: subnormal numbers, read or written, become zeros of their sign (section 9.7.3).
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.f, x) : x; }
template <class F>
void flushing(Thread& t, I i) {
  t.set(i.slot[0], flushed(F{}(flushed(t.get<float>(i.slot[1])))));
}
template <class F>
void flushing2(Thread& t, I i) {
  t.set(i.slot[0],
        flushed(F{}(flushed(t.get<float>(i.slot[1])), flushed(t.get<float>(i.slot[2])))));
}

// The gross approximations of 64-bit numbers (sections 9.7.3.14 and 9.7.3.18) ignore the lower half
// of the operand and leave zeros in that of the result.
template <class F>
void gross(Thread& t, I i) {
  const auto upper = [](double x) {
    if (std::fpclassify(x) == FP_SUBNORMAL) x = std::copysign(0., x);
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) >> 32 << 32);
  };
  t.set(i.slot[0], upper(F{}(upper(t.get<double>(i.slot[1])))));
}

// Sums and products of two 16-bit numbers, in double precision, are rounded once: 53 >= 2 * 11 + 2.
template <class S, class F, int Count>
void short_binary(Thread& t, I i) {
  S a[Count], b[Count], r[Count];
  std::memcpy(a, t.slots + i.slot[1], sizeof a);
  std::memcpy(b, t.slots + i.slot[2], sizeof b);
  for (int k = 0; k < Count; ++k) r[k] = S::nearest(F{}(a[k].value(), b[k].value()));
  t.slots[i.slot[0]] = 0;
  std::memcpy(t.slots + i.slot[0], r, sizeof r);
}
template <class S, class F, int Count>
void short_unary(Thread& t, I i) {
  S a[Count];
  std::memcpy(a, t.slots + i.slot[1], sizeof a);
  for (S& each : a) each = S::nearest(F{}(each.value()));
  t.slots[i.slot[0]] = 0;
  std::memcpy(t.slots + i.slot[0], a, sizeof a);
}
template <class S, int Count>
void short_fma(Thread& t, I i) {
  S a[Count], b[Count], c[Count];
  std::memcpy(a, t.slots + i.slot[1], sizeof a);
  std::memcpy(b, t.slots + i.slot[2], sizeof b);
  std::memcpy(c, t.slots + i.slot[3], sizeof c);
  for (int k = 0; k < Count; ++k)
    a[k] = S::nearest(fused_to_odd(a[k].value(), b[k].value(), c[k].value()));
  t.slots[i.slot[0]] = 0;
  std::memcpy(t.slots + i.slot[0], a, sizeof a);
}

template <class T>
void add_type(Handlers& h, const std::string& s) {
  h["add" + s] = binary<T, Add>;
  h["sub" + s] = binary<T, Sub>;
  h["mul" + s] = binary<T, Mul>;
  h["div" + s] = binary<T, Div>;
  h["min" + s] = binary<T, Min>;
  h["max" + s] = binary<T, Max>;
  h["copysign" + s] = binary<T, CopySign>;
  h["neg" + s] = unary<T, Neg>;
  h["abs" + s] = unary<T, Abs>;
  h["sqrt" + s] = unary<T, Sqrt>;
  h["rcp" + s] = unary<T, Rcp>;
  h["fma" + s] = h["mad" + s] = fma<T>;
  add_directed<binary<T, Add>>(h, "add", s);
  add_directed<binary<T, Mul>>(h, "mul", s);
  add_directed<fma<T>>(h, "fma", s);
}
template <class S, int Count>
void add_short(Handlers& h, const std::string& s) {
  h["add" + s] = short_binary<S, Add, Count>;
  h["sub" + s] = short_binary<S, Sub, Count>;
  h["mul" + s] = short_binary<S, Mul, Count>;
  h["min" + s] = short_binary<S, Min, Count>;
  h["max" + s] = short_binary<S, Max, Count>;
  h["min.NaN" + s] = short_binary<S, OrNan<Min>, Count>;
  h["max.NaN" + s] = short_binary<S, OrNan<Max>, Count>;
  h["neg" + s] = short_unary<S, Neg, Count>;
  h["abs" + s] = short_unary<S, Abs, Count>;
  h["fma" + s] = short_fma<S, Count>;
}
template <class F>
void add_approximation(Handlers& h, const std::string& name) {
  h[name + ".approx.f32"] = unary<float, F>;
  h[name + ".approx.ftz.f32"] = flushing<F>;
}

}  // namespace

void add_floats(Handlers& h) {
  add_type<float>(h, ".f32");
  add_type<double>(h, ".f64");
  h["min.NaN.f32"] = binary<float, OrNan<Min>>;
  h["max.NaN.f32"] = binary<float, OrNan<Max>>;
  add_short<Half, 1>(h, ".f16");
  add_short<Half, 2>(h, ".f16x2");
  add_short<BFloat, 1>(h, ".bf16");
  add_short<BFloat, 2>(h, ".bf16x2");
  add_approximation<Sqrt>(h, "sqrt");
  add_approximation<Rcp>(h, "rcp");
  add_approximation<Rsqrt>(h, "rsqrt");
  add_approximation<Exp2>(h, "ex2");
  add_approximation<Log2>(h, "lg2");
  add_approximation<Sin>(h, "sin");
  add_approximation<Cos>(h, "cos");
  h["tanh.approx.f32"] = unary<float, Tanh>;
  h["div.approx.f32"] = h["div.full.f32"] = binary<float, Div>;
  h["div.approx.ftz.f32"] = h["div.full.ftz.f32"] = flushing2<Div>;
  h["rsqrt.approx.f64"] = unary<double, Rsqrt>;
  h["rsqrt.approx.ftz.f64"] = gross<Rsqrt>;
  h["rcp.approx.ftz.f64"] = gross<Rcp>;
}

}  // namespace ptx
