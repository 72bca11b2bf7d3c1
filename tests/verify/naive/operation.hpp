// A second definition of every operation: loops over global arrays, without the library's kernels.
// There is one header per topic; an operation in the list that is missing here does
// not compile.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../numbers.hpp"

namespace cleave::testing {

using Arrays = std::vector<Numbers>;

/// The required values of an operand.
enum class Domain {
  any,
  positive,  ///< for operations not defined, or not linear, elsewhere
  classes,   ///< 0, 1, 2 or 3
  quarters,  ///< multiples of 1/4
  unit,      ///< mostly between -1 and 1
  above_one,
  chances,   ///< between 0 and 1
  dominant,  ///< of the last two dimensions, the diagonal exceeds the sum of a row
};

/// The naive definition of an operation, and its requirements on operands.
struct Naive {
  std::function<Numbers(const Arrays&)> result;
  std::vector<Domain> domain{};  ///< per operand; `any` for operands beyond its end
  bool needs_elements = false;   ///< arrays without elements are refused
  int indexed = -1;              ///< a dimension of the first operand that is indexed by classes
  bool has_zeros = false;        ///< its gradient is also tested at elements that are 0
  /// Extents of the letters, in the order of first appearance, if not the usual ones.
  std::vector<naive::Indices> extents{};
  /// Letters of the operands, equal for equal extents, if not those of the rule.
  std::vector<std::string> letters{};

  Domain domain_of(std::size_t operand) const {
    return operand < domain.size() ? domain[operand] : Domain::any;
  }
};

/// Applies f elementwise. Operands are aligned at their last dimension; extents of 1 are broadcast.
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

/// y = f(group) for every group of elements of x whose indices differ only in the dimensions of the
/// mask.
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

}  // namespace cleave::testing
