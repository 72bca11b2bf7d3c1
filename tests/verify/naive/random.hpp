#pragma once

#include <cstdint>

#include <cleave/core/philox.hpp>

#include "../list/random.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// The first uniform number of an element, in the first draw of seed 0.
inline double uniform_at(std::uint32_t index) {
  const Philox::Counter bits = Philox::bits({index, 0, 0, 0}, {0, 0});
  return std::ldexp(double((std::uint64_t(bits[0]) << 32 | bits[1]) >> 11), -53);
}

inline Naive naive_of(ops::Dropout) {
  return {[](const Arrays& x) {
    Numbers y = x[0];
    for (std::size_t i = 0; i < y.values.size(); ++i)
      y.values[i] = uniform_at(std::uint32_t(i)) < 0.25 ? Number64(0) : y.values[i] / 0.75;
    return y;
  }};
}

/// Draws two categories per row: each time, that with the smallest exponential number among the
/// rest.
inline Naive naive_of(ops::Multinomial) {
  return {[](const Arrays& x) {
            const index_t rows = x[0].shape[0], categories = x[0].shape[1];
            Numbers y({rows, 2});
            for (index_t i = 0; i < rows; ++i) {
              index_t before = -1;
              for (index_t k = 0; k < 2; ++k) {
                index_t best = -1;
                double least = 0;
                for (index_t j = 0; j < categories; ++j) {
                  const double u = 1 - uniform_at(std::uint32_t(i * categories + j));
                  const double time = -std::log(u) / re(x[0].at({i, j}));
                  if (j == before || (best >= 0 && time >= least)) continue;
                  best = j;
                  least = time;
                }
                y.at({i, k}) = double(before = best);
              }
            }
            return y;
          },
          {Domain::positive}};
}

}  // namespace cleave::testing
