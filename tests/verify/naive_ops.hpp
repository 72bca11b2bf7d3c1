// What every operation means, written a second time: loops on global arrays, without the library's
// kernels. An operation in the list without an entry here does not compile.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <cleave/ops/list.hpp>

#include "numbers.hpp"

namespace cleave::testing {

using Arrays = std::vector<Numbers>;

/// What the values of an operand have to be like.
enum class Domain {
  any,
  positive,  ///< where the operation is not defined, or not linear, elsewhere
  classes,   ///< 0, 1, 2 or 3
};

/// An operation as the tests know it.
struct Naive {
  std::function<Numbers(const Arrays&)> result;
  std::vector<Domain> domain{};  ///< of each operand; any where it is shorter
  bool needs_elements = false;   ///< arrays without elements are refused
  bool has_zeros = false;        ///< its gradient is of interest where elements are 0

  Domain domain_of(std::size_t operand) const {
    return operand < domain.size() ? domain[operand] : Domain::any;
  }
};

/// f element by element; operands are aligned at their last dimension, extents of 1 repeat.
template <class F>
Naive by_element(F f, std::vector<Domain> domain = {}) {
  const auto result = [f](const Arrays& x) {
    std::size_t dims = 0;
    for (const Numbers& array : x) dims = std::max(dims, array.shape.size());
    naive::Indices shape(dims, 1);
    for (const Numbers& array : x)
      for (std::size_t d = 0; d < array.shape.size(); ++d) {
        index_t& extent = shape[d + dims - array.shape.size()];
        if (extent == 1) extent = array.shape[d];
      }
    Numbers y(shape);
    std::vector<Number64> at(x.size());
    for (const naive::Indices& index : naive::all_indices(shape)) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        naive::Indices own(index.end() - std::ptrdiff_t(x[i].shape.size()), index.end());
        for (std::size_t d = 0; d < own.size(); ++d)
          if (x[i].shape[d] == 1) own[d] = 0;
        at[i] = x[i].at(own);
      }
      y.at(index) = f(at);
    }
    return y;
  };
  return {result, std::move(domain)};
}

/// Calls f(group, y) for every group of elements of x that differ in the dimensions of the mask.
template <class F>
Naive by_group(unsigned mask, F f, bool needs_elements = false) {
  Naive naive{[mask, f](const Arrays& x) {
    naive::Indices kept;
    for (std::size_t d = 0; d < x[0].shape.size(); ++d)
      if (!(mask >> d & 1u)) kept.push_back(x[0].shape[d]);
    Numbers y(kept);
    std::vector<std::vector<Number64>> groups(y.values.size());
    for (const naive::Indices& index : naive::all_indices(x[0].shape)) {
      naive::Indices to;
      for (std::size_t d = 0; d < index.size(); ++d)
        if (!(mask >> d & 1u)) to.push_back(index[d]);
      groups[y.offset(to)].push_back(x[0].at(index));
    }
    for (std::size_t i = 0; i < groups.size(); ++i) y.values[i] = f(groups[i]);
    return y;
  }};
  naive.needs_elements = needs_elements;
  return naive;
}

using Elements = std::vector<Number64>;

inline double re(const Number64& value) { return value.real(); }

inline Naive naive_of(ops::Add) {
  return by_element([](const Elements& x) { return x[0] + x[1]; });
}
inline Naive naive_of(ops::Sub) {
  return by_element([](const Elements& x) { return x[0] - x[1]; });
}
inline Naive naive_of(ops::Mul) {
  return by_element([](const Elements& x) { return x[0] * x[1]; });
}
inline Naive naive_of(ops::Div) {
  return by_element([](const Elements& x) { return x[0] / x[1]; },
                    {Domain::any, Domain::positive});
}
inline Naive naive_of(ops::Maximum) {
  return by_element([](const Elements& x) { return re(x[0]) > re(x[1]) ? x[0] : x[1]; });
}
inline Naive naive_of(ops::Minimum) {
  return by_element([](const Elements& x) { return re(x[0]) < re(x[1]) ? x[0] : x[1]; });
}
inline Naive naive_of(ops::ShareOfLarger) {
  return by_element([](const Elements& x) {
    return Number64(re(x[0]) > re(x[1]) ? 1 : re(x[0]) < re(x[1]) ? 0 : 0.5);
  });
}
inline Naive naive_of(ops::Equals) {
  return by_element([](const Elements& x) { return Number64(x[0] == x[1] ? 1 : 0); });
}
inline Naive naive_of(ops::Neg) {
  return by_element([](const Elements& x) { return -x[0]; });
}
inline Naive naive_of(ops::Square) {
  return by_element([](const Elements& x) { return x[0] * x[0]; });
}
inline Naive naive_of(ops::Abs) {
  return by_element([](const Elements& x) { return Number64(std::abs(x[0])); });
}
inline Naive naive_of(ops::Sign) {
  return by_element([](const Elements& x) {
    return x[0] == Number64(0) ? Number64(0) : x[0] / std::abs(x[0]);
  });
}
inline Naive naive_of(ops::Conj) {
  return by_element([](const Elements& x) { return std::conj(x[0]); });
}
inline Naive naive_of(ops::Real) {
  return by_element([](const Elements& x) { return Number64(x[0].real()); });
}
inline Naive naive_of(ops::Relu) {
  return by_element([](const Elements& x) { return Number64(std::fmax(re(x[0]), 0)); });
}
inline Naive naive_of(ops::Exp) {
  return by_element([](const Elements& x) { return std::exp(x[0]); });
}
inline Naive naive_of(ops::Log) {
  return by_element([](const Elements& x) { return std::log(x[0]); }, {Domain::positive});
}
inline Naive naive_of(ops::Sqrt) {
  return by_element([](const Elements& x) { return std::sqrt(x[0]); }, {Domain::positive});
}
inline Naive naive_of(ops::Tanh) {
  return by_element([](const Elements& x) { return std::tanh(x[0]); });
}
inline Naive naive_of(ops::Sigmoid) {
  return by_element([](const Elements& x) { return 1.0 / (1.0 + std::exp(-x[0])); });
}
inline Naive naive_of(ops::IsZero) {
  return by_element([](const Elements& x) { return Number64(x[0] == Number64(0) ? 1 : 0); });
}
inline Naive naive_of(ops::OrOne) {
  return by_element([](const Elements& x) { return x[0] == Number64(0) ? Number64(1) : x[0]; });
}
inline Naive naive_of(ops::ProductOfOthers) {
  return by_element([](const Elements& x) {
    if (x[2] == Number64(0)) return x[1] / x[0];
    return x[2] == Number64(1) && x[0] == Number64(0) ? x[1] : Number64(0);
  }, {Domain::positive, Domain::any, Domain::classes});
}
inline Naive naive_of(ops::Where) {
  return by_element([](const Elements& x) { return x[0] != Number64(0) ? x[1] : x[2]; });
}
inline Naive naive_of(ops::WherePositive) {
  return by_element([](const Elements& x) { return re(x[0]) > 0 ? x[1] : Number64(0); });
}
template <class To>
Naive naive_of(ops::Cast<To>) {
  return by_element([](const Elements& x) { return x[0]; });
}
/// The functor of the list.
template <class F>
Naive naive_of(const ops::Map<F>&) {
  return by_element([](const Elements& x) { return x[0] * x[1] + x[0]; });
}

template <class By, unsigned Mask>
Naive naive_of(ops::Reduce<By, Mask>) {
  constexpr ReduceOp op = By::value;
  constexpr bool chooses = op == ReduceOp::max || op == ReduceOp::min;
  Naive naive = by_group(Mask, [](const Elements& group) {
    if (chooses) {
      Number64 best = group.at(0);
      for (const Number64& x : group)
        if (op == ReduceOp::max ? re(x) > re(best) : re(x) < re(best)) best = x;
      return best;
    }
    Number64 result = op == ReduceOp::product ? 1 : 0;
    for (const Number64& x : group) result = op == ReduceOp::product ? result * x : result + x;
    return result;
  }, chooses);
  naive.has_zeros = op == ReduceOp::product;
  return naive;
}
template <unsigned Mask>
Naive naive_of(ops::Mean<Mask>) {
  return by_group(Mask, [](const Elements& group) {
    Number64 sum = 0;
    for (const Number64& x : group) sum += x;
    return sum / double(group.size());
  });
}
template <class By, int D>
Naive naive_of(ops::ArgReduce<By, D>) {
  return by_group(1u << D, [](const Elements& group) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < group.size(); ++i)
      if (By::value == ReduceOp::max ? re(group[i]) > re(group[best])
                                     : re(group[i]) < re(group[best]))
        best = i;
    return Number64(double(best));
  }, true);
}
template <class By, int D>
Naive naive_of(ops::ArgReduceWhole<By, D>) {
  return naive_of(ops::ArgReduce<By, D>{});
}

inline Naive naive_of(ops::Matmul) {
  return {[](const Arrays& x) {
    Numbers y({x[0].shape[0], x[1].shape[1]});
    for (index_t i = 0; i < y.shape[0]; ++i)
      for (index_t j = 0; j < y.shape[1]; ++j)
        for (index_t k = 0; k < x[0].shape[1]; ++k)
          y.at({i, j}) += x[0].at({i, k}) * x[1].at({k, j});
    return y;
  }};
}
/// exp(x) over the sum of exp(x) along a dimension of a matrix, or the logarithm of that.
inline Naive naive_softmax(std::size_t along, bool logarithm) {
  Naive naive{[along, logarithm](const Arrays& x) {
    Numbers y(x[0].shape);
    for (const naive::Indices& index : naive::all_indices(y.shape)) {
      naive::Indices other = index;
      double largest = re(x[0].at(index)), sum = 0;
      for (other[along] = 0; other[along] < y.shape[along]; ++other[along])
        largest = std::fmax(largest, re(x[0].at(other)));
      for (other[along] = 0; other[along] < y.shape[along]; ++other[along])
        sum += std::exp(re(x[0].at(other)) - largest);
      const double share = re(x[0].at(index)) - largest - std::log(sum);
      y.at(index) = logarithm ? share : std::exp(share);
    }
    return y;
  }};
  naive.needs_elements = true;
  return naive;
}
template <int D>
Naive naive_of(ops::LogSoftmax<D>) {
  return naive_softmax(std::size_t(D), true);
}
template <int D>
Naive naive_of(ops::Softmax<D>) {
  return naive_softmax(std::size_t(D), false);
}
template <class T>
Naive naive_of(ops::OneHot<T>) {
  return {[](const Arrays& x) {
    Numbers y({x[0].shape[0], 4});
    for (index_t i = 0; i < y.shape[0]; ++i) y.at({i, index_t(re(x[0].at({i})))}) = 1;
    return y;
  }, {Domain::classes}};
}
template <int... D>
Naive naive_of(ops::Permute<D...>) {
  return {[](const Arrays& x) {
    Numbers y({x[0].shape[std::size_t(D)]...});
    for (const naive::Indices& index : naive::all_indices(x[0].shape))
      y.at({index[std::size_t(D)]...}) = x[0].at(index);
    return y;
  }};
}
/// unsqueeze(x, dim<1>{}) of a matrix; or [a] along the columns of a second array [a, b].
template <unsigned Mask>
Naive naive_of(ops::BroadcastDims<Mask>) {
  static_assert(Mask == 2);
  return {[](const Arrays& x) {
    if (x.size() == 1) {
      Numbers y({x[0].shape[0], 1, x[0].shape[1]});
      y.values = x[0].values;
      return y;
    }
    Numbers y(x[1].shape);
    for (const naive::Indices& index : naive::all_indices(y.shape))
      y.at(index) = x[0].at({index[0]});
    return y;
  }};
}
inline Naive naive_of(ops::Redistribute) {
  return {[](const Arrays& x) { return x[0]; }};
}

}  // namespace cleave::testing
