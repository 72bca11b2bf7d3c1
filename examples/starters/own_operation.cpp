// An operation that the library does not have, as one struct: it is placed, differentiated and
// traced like the library's operations.
//
//     own_operation --ranks 4
//
// The weighted Gram matrix y = x^T diag(w) x of n observations of f features, for any placements
// of x and w.
#include <cmath>
#include <cstdio>

#include <cleave/cleave.hpp>
#include <cleave/grad.hpp>
#include <cleave/spmd/trace_function.hpp>

using namespace cleave;
using axes::dp;
using axes::tp;

/// y[f, g] = sum over n of w[n] a[n, f] b[n, g]. The rule states that n is summed over, that f and
/// g are kept, and that the result is linear in w alone; the result of every placement follows.
struct WeightedGram {
  static constexpr const char* name = "weighted_gram";
  static constexpr const char* factors = "nf,ng,n->fg";
  static constexpr const char* partials = "R,R,sum->sum";

  /// One rank's contribution, on views of its shards: any extents, any strides, possibly empty.
  static void kernel(const auto&, const Task&, const auto& y, const auto& a, const auto& b,
                     const auto& w) {
    const auto at = [](const auto& matrix, index_t i, index_t j) -> auto& {
      return matrix.data[i * matrix.strides[0] + j * matrix.strides[1]];
    };
    for (index_t i = 0; i < y.extents[0]; ++i)
      for (index_t j = 0; j < y.extents[1]; ++j) at(y, i, j) = 0;
    for (index_t n = 0; n < w.extents[0]; ++n)
      for (index_t i = 0; i < y.extents[0]; ++i)
        for (index_t j = 0; j < y.extents[1]; ++j)
          at(y, i, j) += w.data[n * w.strides[0]] * at(a, n, i) * at(b, n, j);
  }

  // dL/da = diag(w) b g^T, dL/db = diag(w) a g, dL/dw[n] = sum over f of (a g)[n, f] b[n, f]
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto& b,
                                 const auto& w) {
    return unsqueeze(w, dim<1>{}) * matmul(b, transpose(g));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto&,
                                 const auto& w) {
    return unsqueeze(w, dim<1>{}) * matmul(a, g);
  }
  static constexpr auto gradient(wrt<2>, const auto& g, const auto&, const auto& a, const auto& b,
                                 const auto&) {
    return sum(matmul(a, g) * b, dim<1>{});
  }
};

template <class X, class W>
constexpr auto weighted_gram(const X& x, const W& w) {
  return call_op(WeightedGram{}, x, x, w);
}

/// A function of tensors of any kind: local, distributed, tracked, traced.
template <class X, class W>
constexpr auto spread(const X& x, const W& w) {
  return sum(square(weighted_gram(x, w)));
}

/// The gradient of spread in w, on local or on distributed tensors.
template <class X, class W>
auto slope(const X& x, const W& w) {
  const auto tracked = requires_grad(w);
  backward(spread(x, tracked));
  return grad(tracked);
}

double largest_difference(const auto& found, const auto& expected) {
  double error = 0;
  for (index_t i = 0; i < expected.size(); ++i)
    error = std::fmax(error, std::fabs(found.data()[i] - expected.data()[i]) /
                                 (1 + std::fabs(expected.data()[i])));
  return error;
}

int main(int argc, char** argv) {
  return run(argc, argv, [](World& world) {
    if (world.size() % 2 != 0) throw Error("own_operation", "start an even number of ranks");
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2});

    Tensor<double, 2> table({101, 7});
    Tensor<double, 1> weights({101});
    for (index_t n = 0; n < 101; ++n) {
      weights(n) = 1.0 / double(1 + n);
      for (index_t f = 0; f < 7; ++f) table(n, f) = double((3 * n + 5 * f) % 11);
    }
    const auto expected = weighted_gram(table, weights);  // on one rank
    const auto expected_slope = slope(table, weights);

    // observations over both axes: every rank has an addend of y, one all-reduce adds them up
    const auto x = distribute_tensor(table, mesh, Shard<0>{}, Shard<0>{});
    const auto w = distribute_tensor(weights, mesh, Shard<0>{}, Shard<0>{});
    const auto y = weighted_gram(x, w);

    // observations over dp, features over tp: x is needed under two placements at once, so the
    // solver gathers one of its two uses
    const auto x2 = distribute_tensor(table, mesh, Shard<0>{}, Shard<1>{});
    const auto w2 = distribute_tensor(weights, mesh, Shard<0>{}, Replicate{});
    const auto y2 = weighted_gram(x2, w2);

    const auto g = slope(x, w);
    const auto g2 = slope(x2, w2);
    const double error = std::fmax(std::fmax(largest_difference(y.full_tensor(), expected),
                                             largest_difference(y2.full_tensor(), expected)),
                                   std::fmax(largest_difference(g.full_tensor(), expected_slope),
                                             largest_difference(g2.full_tensor(), expected_slope)));

    // the same function as a program: its operations and the extents of their results
    const spmd::Graph program =
        spmd::trace([](const auto& a, const auto& b) { return spread(a, b); },
                    spmd::arg<double>("x", {101, 7}), spmd::arg<double>("w", {101}));

    if (world.rank() != 0) return;
    std::printf("x %s\nw %s\ny %s\ng %s\n\n", to_string(x).c_str(), to_string(w).c_str(),
                to_string(y).c_str(), to_string(g).c_str());
    std::printf("x %s\nw %s\ny %s\ng %s\n\n", to_string(x2).c_str(), to_string(w2).c_str(),
                to_string(y2).c_str(), to_string(g2).c_str());
    std::printf("traced:");
    for (const spmd::Node& node : program.nodes)
      std::printf(" %s%s", node.name,
                  to_string(program.values[std::size_t(node.first)].shape).c_str());
    std::printf("\nlargest difference from one rank's results: %s\n",
                error < 1e-9 ? "below 1e-9" : std::to_string(error).c_str());
  });
}
