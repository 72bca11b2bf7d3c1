// Gradients of stencils against differences of naive loops, which are exact here: elements are
// small integers, and the stencils are of degree two at most.
#include <cleave/grad.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "../ops/naive_stencils.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;

namespace {

struct Product : Stencil {
  constexpr auto operator()(const auto& u, const auto& c) const {
    return u(0, 0) * u(0, 1) + 2 * c(-1, 0) * u(1, -1) - c(0, 0) * c(0, 0) +
           double(u.index(0)) * u(0, 0);
  }
};
struct Pair : Stencil {
  constexpr auto operator()(const auto& u, const auto& c) const {
    return std::tuple{u(1, 0) * c(0, 0), u(0, -2) - 3 * c(0, 1)};
  }
};

using Elements = std::vector<double>;

/// The sum of w * result, by naive loops; of all results, with weights that differ.
template <class S>
double naive_loss(const S& stencil, const Indices& shape, const std::array<Elements, 2>& fields,
                  const BeyondAll& beyond, const Elements& w) {
  const auto total = [&](const auto& of, double factor) {
    const auto y = naive_results<double>(of, shape, fields, beyond, {0, 0}, shape);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += factor * w[i] * y[i];
    return sum;
  };
  if constexpr (std::is_same_v<S, Pair>)
    return total([&](const auto&... f) { return std::get<0>(stencil(f...)); }, 1) +
           total([&](const auto&... f) { return std::get<1>(stencil(f...)); }, 2);
  else return total(stencil, 1);
}

template <class S, class E, class X>
auto loss_of(const S& stencil, const E& of, const X& u, const X& c, const auto& w) {
  if constexpr (std::is_same_v<S, Pair>) {
    const auto [a, b] = apply(stencil, u, c, of);
    return sum(a * w) + sum(b * w * 2.0);
  } else {
    return sum(apply(stencil, u, c, of) * w);
  }
}

template <class S, class E>
void check_gradients(World& world, const S& stencil, const E& of, index_t rows, index_t columns) {
  const index_t extents[] = {rows, columns};
  const Indices shape{rows, columns};
  const auto u = numbered<double>(extents, 1), c = numbered<double>(extents, 2),
             w = numbered<double>(extents, 3);
  std::array<Elements, 2> fields{elements_of(u), elements_of(c)}, expected = fields;
  const BeyondAll beyond = beyond_all(of, 2);
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < fields[k].size(); ++i) {
      const double x = fields[k][i];
      fields[k][i] = x + 1;
      const double above = naive_loss(stencil, shape, fields, beyond, elements_of(w));
      fields[k][i] = x - 1;
      expected[k][i] = (above - naive_loss(stencil, shape, fields, beyond, elements_of(w))) / 2;
      fields[k][i] = x;
    }
  const auto check = [&](const auto& mesh, auto... p) {
    const auto place = [&](const auto& t) { return distribute_tensor(t, mesh, p...); };
    const auto x = requires_grad(place(u)), y = requires_grad(place(c));
    backward(loss_of(stencil, of, x, y, place(w)));
    for (const auto& [found, k] : {std::pair{grad(x), 0}, std::pair{grad(y), 1}}) {
      const auto whole = found.full_tensor();
      for (index_t i = 0; i < whole.size(); ++i)
        CHECK(whole.data()[i] == expected[std::size_t(k)][std::size_t(i)]);
    }
  };
  const auto line = init_device_mesh<tp>(world, {world.size()});
  check(line, Shard<0>{});
  check(line, Shard<1>{});
  if (world.size() % 2 == 0)
    check(init_device_mesh<dp, tp>(world, {2, world.size() / 2}), Shard<0>{}, Shard<1>{});
}

}  // namespace

TEST_CASE("gradients of stencils are those of naive loops on any mesh") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto check = [&](const auto& stencil) {
      check_gradients(world, stencil, edges(periodic), 5, 4);
      check_gradients(world, stencil, edges(zero, periodic), 4, 3);
      check_gradients(world, stencil, edges(sides(dirichlet(2.0), zero), dirichlet(by_position)), 5,
                      6);
    };
    check(Product{});
    check(Weighted{});
    check(Pair{});
    check_gradients(world, Pair{}, edges(periodic), 2, 1);
  });
}

TEST_CASE("repeated steps have the gradient of single ones") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto w = numbered<double>({7, 5}, 2);
    const auto of = edges(periodic);
    const auto u = requires_grad(distribute_tensor(numbered<double>({7, 5}, 1), mesh, Shard<0>{}));
    backward(sum(apply(repeat<3>(Heat{}), u, of) * distribute_tensor(w, mesh, Shard<0>{})));
    std::array<Elements, 1> expected{elements_of(w)};  // Heat is symmetric
    for (int step = 0; step < 3; ++step)
      expected[0] =
          naive_results<double>(Heat{}, {7, 5}, expected, beyond_all(of, 2), {0, 0}, {7, 5});
    CHECK(elements_of(grad(u).full_tensor()) == expected[0]);
  });
}

TEST_CASE("stencils of local tensors and numbers have gradients") {
  const auto x = requires_grad(numbered<double>({3, 4}));
  backward(sum(apply(Source{}, x, 2.0, edges(zero))));
  CHECK(same_bits(grad(x), {0, 2, 2, 2, 0, 2, 2, 2, 0, 2, 2, 2}));
}

}  // namespace stencil_tests
