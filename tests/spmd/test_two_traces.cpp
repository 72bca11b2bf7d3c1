// Values of another trace, or of one that has ended, are refused where they are used.
#include <optional>
#include <string>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "errors.hpp"

using namespace cleave;
using namespace cleave::spmd;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// Traces `f(y)` of an argument y [3] inside the trace of a function of x [4] and w [2, 2], where
/// the result of relu(x) is also at hand: `f(y, x, relu(x))`.
template <class F>
std::string error_inside(const F& f) {
  return error_of([&] {
    static_cast<void>(trace(
        [&](const auto& x, const auto&) {
          const auto positive = relu(x);
          static_cast<void>(
              trace([&](const auto& y) { return f(y, x, positive); }, arg<float>("y", {3})));
          return positive;
        },
        arg<float>("x", {4}), arg<float>("w", {2, 2})));
  });
}

}  // namespace

TEST_CASE("an operation on values of two traces is an error that names both") {
  CHECK(contains(error_inside([](const auto& y, const auto& x, const auto&) { return add(y, x); }),
                 "add: the operands belong to two traces: argument 'y' [3] of the trace of (y) and "
                 "argument 'x' [4] of the trace of (x, w); pass the value as an argument of the "
                 "traced function [shapes [3] and [4]]"));
  CHECK(contains(error_inside([](const auto& y, const auto&, const auto& positive) {
                   return mul(positive, relu(y));
                 }),
                 "mul: the operands belong to two traces: result of relu [4] of the trace of (x, "
                 "w) and result of relu [3] of the trace of (y)"));
}

TEST_CASE("values of one trace are used in a nested one that has its own arguments") {
  CHECK(error_inside([](const auto& y, const auto&, const auto&) { return add(y, y); }).empty());
  CHECK(error_inside([](const auto& y, const auto& x, const auto& positive) {
          static_cast<void>(add(x, positive));  // recorded in the trace that is still open
          return y;
        }).empty());
}

TEST_CASE("a function that returns a value of another trace is refused") {
  CHECK(contains(error_inside([](const auto& y, const auto&, const auto& positive) {
                   return std::tuple(y, positive);
                 }),
                 "trace: output 1 of the function is result of relu [4] of the trace of (x, w), "
                 "not a value of its own trace [shapes [4]]"));
}

TEST_CASE("a value that is used after its trace has ended is refused, also in another trace") {
  std::optional<Traced<float, 2>> kept;
  const auto keep = [&] {
    return trace(
        [&](const auto& x) {
          kept = relu(x);
          return x;
        },
        arg<float>("x", {4, 5}));
  };
  static_cast<void>(keep());
  const std::string ended =
      "trace: a traced float32 value with 2 dimensions is used after its trace has ended; return "
      "it from the traced function";
  CHECK(contains(error_of([&] { static_cast<void>(kept->shape()); }), ended));
  CHECK(contains(error_of([&] { static_cast<void>(add(*kept, 1.0f)); }), ended));
  CHECK(contains(error_of([&] { static_cast<void>(resolve(*kept)); }), ended));
  CHECK(contains(error_of([&] {
                   static_cast<void>(trace([&](const auto& y) { return add(y, *kept); },
                                           arg<float>("y", {4, 5})));
                 }),
                 ended));
  CHECK(contains(error_of([&] {
                   static_cast<void>(
                       trace([&](const auto&) { return *kept; }, arg<float>("y", {4, 5})));
                 }),
                 ended));
}

TEST_CASE("a trace that ends by an exception leaves the outer one usable") {
  const Graph graph = trace(
      [](const auto& x) {
        CHECK(!error_of([&] {
                 static_cast<void>(
                     trace([&](const auto& y) { return add(y, x); }, arg<float>("y", {4})));
               }).empty());
        return add(x, x);
      },
      arg<float>("x", {4}));
  CHECK(graph.nodes.size() == 1);
}
