// The communication of modules over tp, as text.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include <cleave/parallel.hpp>

namespace cleave::testing {

/// "2 all_gather, 2 reduce_scatter"; ", others" if there are calls of other kinds or over other
/// axes.
inline std::string calls(const CommTrace& trace) {
  std::string text;
  index_t listed = 0;
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                          CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    const index_t n = trace.count(kind, "tp");
    if (n > 0) text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + name_of(kind);
    listed += n;
  }
  return listed == trace.count() ? text : text + ", others";
}

/// Checks the communication of a module: forward, and backward from a gradient placed like its
/// result.
template <class M, class X>
void check_calls(World& world, const M& m, const X& x, const std::string& forward,
                 const std::string& back) {
  CommTrace trace(world);
  const auto y = requires_grad(m)(x);
  CHECK(calls(trace) == forward);
  trace.clear();
  backward(y, full_like(y, 1));
  CHECK(calls(trace) == back);
}

}  // namespace cleave::testing
