#include <string>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/ops/attention/attention.hpp>
#include <cleave/ops/attention/rotary_embedding.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "errors.hpp"

using namespace cleave;
using namespace cleave::spmd;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

struct OtherDevice {
  static constexpr const char* name = "other";
};

struct TracedStep {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto y = relu(matmul(x, w) * 2.0);
    return std::tuple(sum(y), argmax(y, dim<1>{}), mean(y, dim<0>{}), redistribute(y, Replicate{}));
  }
};

constexpr auto traced_step = [] {
  return trace(TracedStep{}, arg<double>("x", {4, 5}), arg<double>("w", {5, 6}));
};
constexpr auto step_graph = frozen(traced_step);

constexpr bool same_nodes(const auto& a, const auto& b) {
  if (a.nodes.size() != b.nodes.size() || a.values.size() != b.values.size()) return false;
  for (std::size_t n = 0; n < a.nodes.size(); ++n) {
    const Node &x = a.nodes[n], &y = b.nodes[n];
    if (x.op != y.op || x.operand != y.operand || x.first != y.first || x.like != y.like ||
        x.asks != y.asks || !(x.asked == y.asked) || x.attributes.bytes != y.attributes.bytes)
      return false;
  }
  for (std::size_t v = 0; v < a.values.size(); ++v) {
    const Value &x = a.values[v], &y = b.values[v];
    if (x.node != y.node || x.result != y.result || x.constant != y.constant ||
        x.dtype != y.dtype || !(x.shape == y.shape))
      return false;
  }
  for (std::size_t k = 0; k < a.outputs.size(); ++k)
    if (!(a.outputs[k] == b.outputs[k])) return false;
  return a.outputs.size() == b.outputs.size();
}

constexpr auto left_first = [] {
  Graph g;
  const Traced x = input(g, arg<float>("x", {3, 3}));
  const Traced a = exp(x);
  const Traced b = tanh(x);
  g.outputs.push_back({add(a, b).value()});
  return canonical(g);
};
constexpr auto right_first = [] {
  Graph g;
  const Traced x = input(g, arg<float>("x", {3, 3}));
  const Traced b = tanh(x);
  const Traced a = exp(x);
  g.outputs.push_back({add(a, b).value()});
  return canonical(g);
};
static_assert(same_nodes(left_first(), right_first()));

}  // namespace

TEST_CASE("a graph traced by the compiler is the one that the program traces") {
  CHECK(same_nodes(step_graph, traced_step()));
  CHECK(step_graph.inputs.size() == 2);
  CHECK(std::string(step_graph.inputs[1].name) == "w");
}

TEST_CASE("nodes come in the order in which outputs need them, whatever was called first") {
  CHECK(same_nodes(left_first(), right_first()));
  CHECK(std::string(left_first().nodes[0].name) == "exp");
}

TEST_CASE("nodes that no output needs are left out") {
  const Graph g = trace(
      [](const auto& x) {
        static_cast<void>(exp(x));
        return relu(x);
      },
      arg<float>("x", {3}));
  CHECK(g.nodes.size() == 1);
}

TEST_CASE("extents that do not fit are found by the trace") {
  const std::string text = error_of([] {
    static_cast<void>(trace([](const auto& x, const auto& w) { return matmul(x, w); },
                            arg<float>("x", {3, 4}), arg<float>("w", {5, 6})));
  });
  CHECK(text ==
        "matmul: the extents of 'k' in ik,kj->ij differ: operand 1 has 5, preceding operands have "
        "4 [shapes [3, 4] and [5, 6]]");
}

TEST_CASE("extents that no array has, and arguments on two devices, are found by the trace") {
  const auto same = [](const auto& x) { return x; };
  CHECK(contains(error_of([&] { static_cast<void>(trace(same, arg<float>("x", {4, -3}))); }),
                 "extent"));
  const auto repeated = [](const auto& x) { return expand(x, dim<0>{}, index_t(1) << 62); };
  CHECK(contains(error_of([&] { static_cast<void>(trace(repeated, arg<float>("x", {1, 6}))); }),
                 "does not fit in index_t"));
  CHECK(error_of([] {
          static_cast<void>(trace([](const auto& x, const auto& y) { return std::tuple(x, y); },
                                  arg<float>("x", {4}), arg<float, OtherDevice>("y", {4})));
        }) == "trace: argument 'y' is on the device other, those before it on host");
}

TEST_CASE("extents that only attention and rotary embeddings compare are found by the trace") {
  const auto attend = [](const auto& q, const auto& k) {
    return scaled_dot_product_attention(q, k, k);
  };
  const auto traced = [&](const auto& q, const auto& k) {
    return error_of([&] { static_cast<void>(trace(attend, q, k)); });
  };
  CHECK(traced(arg<float>("q", {3, 4}), arg<float>("k", {5, 4})).empty());
  CHECK(traced(arg<float>("q", {3, 4}), arg<float>("k", {5, 6})) ==
        "scaled_dot_product_attention: q, k and v must be [b.., g.., n, d], [b.., m, d] and "
        "[b.., m, e] [shapes [3, 4] and [5, 6] and [5, 6]]");
  CHECK(contains(traced(arg<float>("q", {3, 4}), arg<float>("k", {0, 4})),
                 "the number of keys must be positive"));
  const auto masked = [](const auto& q, const auto& k, const auto& mask) {
    return scaled_dot_product_attention(q, k, k, mask);
  };
  CHECK(contains(error_of([&] {
                   static_cast<void>(trace(masked, arg<float>("q", {3, 4}), arg<float>("k", {5, 4}),
                                           arg<bool>("mask", {3, 4})));
                 }),
                 "the mask does not broadcast to [.., n, m]"));
  CHECK(contains(error_of([] {
                   static_cast<void>(trace([](const auto& x) { return rotary_embedding(x); },
                                           arg<float>("x", {4, 3})));
                 }),
                 "rotary_embedding: the extent of the last dimension must be even, not 3"));
}
