// An operation that the library does not have: a rule, a kernel, and it is placed like the others.
//
//     own_operation --ranks 4
//
// The weighted Gram matrix g = x^T diag(w) x of n observations of f features, for any placements of
// x and w.
#include <cmath>
#include <cstdio>

#include <cleave/cleave.hpp>

using namespace cleave;
using axes::dp;
using axes::tp;

struct WeightedGram {};

/// What is summed over (n), what is kept (f, g), and that the result is linear in w alone: the
/// library derives from it what every placement of the operands leads to.
template <>
struct cleave::sharding_rule<WeightedGram> {
  static constexpr const char* factors = "nf,ng,n->fg";
  static constexpr const char* partials = "R,R,sum->sum";
};

/// g[f, g] = sum over n of w[n] x[n, f] y[n, g], on what one rank has of them.
Tensor<double, 2> weighted_gram_kernel(const Tensor<double, 2>& x, const Tensor<double, 2>& y,
                                       const Tensor<double, 1>& w) {
  const Tensor<double, 2> g({x.extent(1), y.extent(1)});
  g.fill_(0);
  for (index_t n = 0; n < w.extent(0); ++n)
    for (index_t i = 0; i < g.extent(0); ++i)
      for (index_t j = 0; j < g.extent(1); ++j) g(i, j) += w(n) * x(n, i) * y(n, j);
  return g;
}

template <class X, class W>
auto weighted_gram(const X& x, const W& w) {
  return apply_op<WeightedGram>("weighted_gram", weighted_gram_kernel, x, x, w);
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
    const Tensor<double, 2> expected = weighted_gram_kernel(table, table, weights);

    // observations over both axes: every rank has an addend of g, one all-reduce adds them up
    const auto x = distribute_tensor(table, mesh, Shard<0>{}, Shard<0>{});
    const auto w = distribute_tensor(weights, mesh, Shard<0>{}, Shard<0>{});
    const auto g = weighted_gram(x, w);

    // observations over dp, features over tp: x is wanted with two placements at once, so that one
    // of its two appearances is gathered; the rule finds that out
    const auto y = distribute_tensor(table, mesh, Shard<0>{}, Shard<1>{});
    const auto v = distribute_tensor(weights, mesh, Shard<0>{}, Replicate{});
    const auto h = weighted_gram(y, v);

    double error = 0;
    const Tensor<double, 2> full_g = g.full_tensor(), full_h = h.full_tensor();
    for (index_t i = 0; i < 7; ++i)
      for (index_t j = 0; j < 7; ++j)
        error = std::fmax(error, std::fmax(std::fabs(full_g(i, j) - expected(i, j)),
                                           std::fabs(full_h(i, j) - expected(i, j))));
    if (world.rank() != 0) return;
    std::printf("x %s\nw %s\ng %s\n\n", to_string(x).c_str(), to_string(w).c_str(),
                to_string(g).c_str());
    std::printf("x %s\nw %s\ng %s\n\n", to_string(y).c_str(), to_string(v).c_str(),
                to_string(h).c_str());
    std::printf("largest difference from one rank's result: %s\n",
                error < 1e-9 ? "below 1e-9" : std::to_string(error).c_str());
  });
}
