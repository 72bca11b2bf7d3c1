#pragma once

#include <cleave/ops/list/products.hpp>

#include "operation.hpp"

namespace cleave::testing {

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

}  // namespace cleave::testing
