// How each operation is called, said by the compile error of a call whose operands fit no overload:
// a number where a dimension is a type, an operand too many or too few.
//
// The first parameter of these overloads requires a conversion, so any overload that fits wins.
#pragma once

#include <cleave/ops/engine/call_op.hpp>

namespace cleave {

namespace detail {

/// Takes a tensor, by conversion.
struct AnyFirstOperand {
  template <AnyTensor X>
  AnyFirstOperand(const X&) {}
};

/// Takes anything, and may be left out.
struct AnyArgument {
  AnyArgument() = default;
  template <class X>
  AnyArgument(const X&) {}
};

}  // namespace detail

#define CLEAVE_USAGE(name, calls)                                                               \
  template <class... R>                                                                         \
  void name(detail::AnyFirstOperand, detail::AnyArgument = {}, detail::AnyArgument = {},        \
            detail::AnyArgument = {}, detail::AnyArgument = {}, detail::AnyArgument = {}) {     \
    static_assert(sizeof...(R) > 99, "cleave: these arguments do not fit; call it so: " calls); \
  }

CLEAVE_USAGE(abs, "abs(a)")
CLEAVE_USAGE(acos, "acos(a)")
CLEAVE_USAGE(acosh, "acosh(a)")
CLEAVE_USAGE(add, "add(a, b)")
CLEAVE_USAGE(addcdiv, "addcdiv(a, b, c), addcdiv(a, b, c, value)")
CLEAVE_USAGE(addcmul, "addcmul(a, b, c), addcmul(a, b, c, value)")
CLEAVE_USAGE(all, "all(x), all(x, dim<0>{})")
CLEAVE_USAGE(any, "any(x), any(x, dim<0>{})")
CLEAVE_USAGE(argmax, "argmax(x, dim<0>{})")
CLEAVE_USAGE(argmin, "argmin(x, dim<0>{})")
CLEAVE_USAGE(argsort, "argsort(x, dim<0>{}), argsort(x, dim<0>{}, order)")
CLEAVE_USAGE(asin, "asin(a)")
CLEAVE_USAGE(asinh, "asinh(a)")
CLEAVE_USAGE(atan, "atan(a)")
CLEAVE_USAGE(atan2, "atan2(a, b)")
CLEAVE_USAGE(atanh, "atanh(a)")
CLEAVE_USAGE(cast, "cast<double>(x)")
CLEAVE_USAGE(cat, "cat(dim<0>{}, x, y)")
CLEAVE_USAGE(ceil, "ceil(a)")
CLEAVE_USAGE(celu, "celu(a), celu(a, alpha)")
CLEAVE_USAGE(chunk, "chunk<2>(x, dim<0>{})")
CLEAVE_USAGE(clamp, "clamp(x, low, high)")
CLEAVE_USAGE(conj, "conj(a)")
CLEAVE_USAGE(cos, "cos(a)")
CLEAVE_USAGE(cosh, "cosh(a)")
CLEAVE_USAGE(count_nonzero, "count_nonzero(x), count_nonzero(x, dim<0>{})")
CLEAVE_USAGE(cross_entropy, "cross_entropy(logits, classes)")
CLEAVE_USAGE(cumsum, "cumsum(x, dim<0>{})")
CLEAVE_USAGE(diag, "diag(x)")
CLEAVE_USAGE(diagonal, "diagonal(x)")
CLEAVE_USAGE(div, "div(a, b)")
CLEAVE_USAGE(dot, "dot(x, y), dot(x, y, dim<0>{})")
CLEAVE_USAGE(dropout, "dropout(x, probability)")
CLEAVE_USAGE(elu, "elu(a), elu(a, alpha)")
CLEAVE_USAGE(embedding, "embedding(weight, indices)")
CLEAVE_USAGE(empty_like, "empty_like(x)")
CLEAVE_USAGE(equal, "equal(a, b)")
CLEAVE_USAGE(erf, "erf(a)")
CLEAVE_USAGE(erfc, "erfc(a)")
CLEAVE_USAGE(exp, "exp(a)")
CLEAVE_USAGE(exp2, "exp2(a)")
CLEAVE_USAGE(expand, "expand(x, dim<0>{}, extent)")
CLEAVE_USAGE(expm1, "expm1(a)")
CLEAVE_USAGE(flatten, "flatten(x), flatten(x, dim<0, 1>{})")
CLEAVE_USAGE(flip, "flip(x, dim<0>{})")
CLEAVE_USAGE(floor, "floor(a)")
CLEAVE_USAGE(fmod, "fmod(a, b)")
CLEAVE_USAGE(frac, "frac(a)")
CLEAVE_USAGE(full_like, "full_like(x, value)")
CLEAVE_USAGE(gather, "gather(x, dim<0>{}, indices)")
CLEAVE_USAGE(gelu, "gelu(a)")
CLEAVE_USAGE(gelu_tanh, "gelu_tanh(a)")
CLEAVE_USAGE(greater, "greater(a, b)")
CLEAVE_USAGE(greater_equal, "greater_equal(a, b)")
CLEAVE_USAGE(hardsigmoid, "hardsigmoid(a)")
CLEAVE_USAGE(hardswish, "hardswish(a)")
CLEAVE_USAGE(hardtanh, "hardtanh(a), hardtanh(a, low, high)")
CLEAVE_USAGE(hypot, "hypot(a, b)")
CLEAVE_USAGE(index_add, "index_add(x, dim<0>{}, indices, extent)")
CLEAVE_USAGE(index_get, "index_get(x, std::tie(i, j))")
CLEAVE_USAGE(index_put, "index_put(x, std::tie(i, j), values)")
CLEAVE_USAGE(index_select, "index_select(x, dim<0>{}, indices)")
CLEAVE_USAGE(isfinite, "isfinite(a)")
CLEAVE_USAGE(isinf, "isinf(a)")
CLEAVE_USAGE(isnan, "isnan(a)")
CLEAVE_USAGE(leaky_relu, "leaky_relu(a), leaky_relu(a, share)")
CLEAVE_USAGE(lerp, "lerp(a, b, weight)")
CLEAVE_USAGE(less, "less(a, b)")
CLEAVE_USAGE(less_equal, "less_equal(a, b)")
CLEAVE_USAGE(log, "log(a)")
CLEAVE_USAGE(log10, "log10(a)")
CLEAVE_USAGE(log1p, "log1p(a)")
CLEAVE_USAGE(log2, "log2(a)")
CLEAVE_USAGE(log_softmax, "log_softmax(x, dim<0>{})")
CLEAVE_USAGE(logaddexp, "logaddexp(a, b)")
CLEAVE_USAGE(logical_and, "logical_and(a, b)")
CLEAVE_USAGE(logical_not, "logical_not(a)")
CLEAVE_USAGE(logical_or, "logical_or(a, b)")
CLEAVE_USAGE(logical_xor, "logical_xor(a, b)")
CLEAVE_USAGE(logsigmoid, "logsigmoid(a)")
CLEAVE_USAGE(logsumexp, "logsumexp(x), logsumexp(x, dim<0>{})")
CLEAVE_USAGE(matmul, "matmul(x, w)")
CLEAVE_USAGE(max, "max(x), max(x, dim<0>{})")
CLEAVE_USAGE(maximum, "maximum(a, b)")
CLEAVE_USAGE(mean, "mean(x), mean(x, dim<0>{})")
CLEAVE_USAGE(min, "min(x), min(x, dim<0>{})")
CLEAVE_USAGE(minimum, "minimum(a, b)")
CLEAVE_USAGE(mish, "mish(a)")
CLEAVE_USAGE(mul, "mul(a, b)")
CLEAVE_USAGE(multinomial, "multinomial(weights, count)")
CLEAVE_USAGE(narrow, "narrow(x, dim<0>{}, begin, length)")
CLEAVE_USAGE(neg, "neg(a)")
CLEAVE_USAGE(norm, "norm(x), norm(x, dim<0>{})")
CLEAVE_USAGE(not_equal, "not_equal(a, b)")
CLEAVE_USAGE(one_hot, "one_hot(classes, count)")
CLEAVE_USAGE(ones_like, "ones_like(x)")
CLEAVE_USAGE(outer, "outer(a, b)")
CLEAVE_USAGE(pad, "pad(x, dim<0>{}, before, after), pad(x, dim<0>{}, before, after, value)")
CLEAVE_USAGE(permute, "permute(x, dim<1, 0>{})")
CLEAVE_USAGE(pow, "pow(a, b)")
CLEAVE_USAGE(prod, "prod(x), prod(x, dim<0>{})")
CLEAVE_USAGE(real, "real(a)")
CLEAVE_USAGE(reciprocal, "reciprocal(a)")
CLEAVE_USAGE(relu, "relu(a)")
CLEAVE_USAGE(relu6, "relu6(a)")
CLEAVE_USAGE(remainder, "remainder(a, b)")
CLEAVE_USAGE(reshape, "reshape(x, {4, 6})")
CLEAVE_USAGE(resolve, "resolve(x)")
CLEAVE_USAGE(roll, "roll(x, dim<0>{}, shift)")
CLEAVE_USAGE(round, "round(a)")
CLEAVE_USAGE(rsqrt, "rsqrt(a)")
CLEAVE_USAGE(scatter_add, "scatter_add(x, dim<0>{}, indices, extent)")
CLEAVE_USAGE(select, "select(x, dim<0>{}, index)")
CLEAVE_USAGE(selu, "selu(a)")
CLEAVE_USAGE(sigmoid, "sigmoid(a)")
CLEAVE_USAGE(sign, "sign(a)")
CLEAVE_USAGE(silu, "silu(a)")
CLEAVE_USAGE(sin, "sin(a)")
CLEAVE_USAGE(sinh, "sinh(a)")
CLEAVE_USAGE(slice, "slice(x, dim<0>{}, begin, end), slice(x, dim<0>{}, begin, end, step)")
CLEAVE_USAGE(softmax, "softmax(x, dim<0>{})")
CLEAVE_USAGE(softplus, "softplus(a), softplus(a, beta, threshold)")
CLEAVE_USAGE(softsign, "softsign(a)")
CLEAVE_USAGE(split, "split(x, dim<0>{}, length), split(x, dim<0>{}, {2, 4})")
CLEAVE_USAGE(sqrt, "sqrt(a)")
CLEAVE_USAGE(square, "square(a)")
CLEAVE_USAGE(squeeze, "squeeze(x, dim<0>{})")
CLEAVE_USAGE(stack, "stack(dim<0>{}, x, y)")
CLEAVE_USAGE(stddev, "stddev(x), stddev(x, dim<0>{})")
CLEAVE_USAGE(sub, "sub(a, b)")
CLEAVE_USAGE(sum, "sum(x), sum(x, dim<0>{})")
CLEAVE_USAGE(take_along_dim, "take_along_dim(x, indices, dim<0>{})")
CLEAVE_USAGE(tan, "tan(a)")
CLEAVE_USAGE(tanh, "tanh(a)")
CLEAVE_USAGE(tile, "tile(x, dim<0>{}, count)")
CLEAVE_USAGE(topk, "topk(x, dim<0>{}, count), topk(x, dim<0>{}, count, order)")
CLEAVE_USAGE(trace, "trace(x)")
CLEAVE_USAGE(transpose, "transpose(x), transpose(x, dim<0, 1>{})")
CLEAVE_USAGE(tril, "tril(x), tril(x, diagonal)")
CLEAVE_USAGE(triu, "triu(x), triu(x, diagonal)")
CLEAVE_USAGE(trunc, "trunc(a)")
CLEAVE_USAGE(unflatten, "unflatten(x, dim<0>{}, {2, 3})")
CLEAVE_USAGE(unsqueeze, "unsqueeze(x, dim<0>{})")
CLEAVE_USAGE(var, "var(x), var(x, dim<0>{})")
CLEAVE_USAGE(where, "where(condition, a, b)")
CLEAVE_USAGE(zeros_like, "zeros_like(x)")

#undef CLEAVE_USAGE

}  // namespace cleave
