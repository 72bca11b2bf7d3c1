// Second derivatives of products, including factors that are exactly 0.
#include <complex>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "network.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

template <class T>
T conjugate(const T& a) {
  if constexpr (is_complex<T>) return std::conj(a);
  else return a;
}

/// Rows whose factors include no, one, two, three or only zeros.
template <class T>
Tensor<T, 2> factors() {
  const auto re = noise<2>({6, 4}, 1), im = noise<2>({6, 4}, 2);
  const Tensor<T, 2> a({6, 4});
  for (index_t i = 0; i < a.size(); ++i) {
    if constexpr (is_complex<T>) a.data()[i] = {re.data()[i], im.data()[i]};
    else a.data()[i] = re.data()[i];
  }
  const index_t zeros[][2] = {{1, 2}, {2, 0}, {2, 3}, {3, 0}, {3, 1},
                              {3, 3}, {4, 0}, {4, 1}, {4, 2}, {4, 3}};
  for (const auto& at : zeros) a(at[0], at[1]) = T(0);
  return a;
}

/// The gradient in a of sum(h · d/da sum(w · prod(a, dim<1>))), of real parts, by plain loops.
template <class T>
std::vector<T> expected_of(const Tensor<T, 2>& a, const Tensor<double, 1>& w,
                           const Tensor<double, 2>& h) {
  std::vector<T> result;
  for (index_t r = 0; r < a.extent(0); ++r)
    for (index_t k = 0; k < a.extent(1); ++k) {
      T total(0);
      for (index_t i = 0; i < a.extent(1); ++i) {
        if (i == k) continue;
        T product(1);
        for (index_t j = 0; j < a.extent(1); ++j)
          if (j != i && j != k) product *= a(r, j);
        total += T(w(r) * h(r, i)) * conjugate(product);
      }
      result.push_back(total);
    }
  return result;
}

template <class T, class X>
void check_second(const X& placed, const Tensor<T, 2>& a) {
  const auto w = noise<1>({6}, 3);
  const auto h = noise<2>({6, 4}, 4);
  const auto outer = requires_grad(placed);
  const auto inner = requires_grad(outer);
  const auto weights = distribute_tensor(w, placed.mesh(), Placements<Shard<0>, Replicate>{});
  const auto direction = distribute_tensor(h, placed.mesh(), placed.placements());
  backward(sum(real(prod(inner, dim<1>{})) * weights));
  backward(sum(real(grad(inner)) * direction));
  const auto found = grad(outer).full_tensor().clone();
  const auto expected = expected_of(a, w, h);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::fmax(worst, std::abs(found.data()[i] - expected[i]));
  CHECK(worst <= 1e-15);
}

}  // namespace

TEST_CASE("the second derivative of a product is right where factors are zero") {
  on_ranks({1, 2, 3, 4, 5}, [](World& world) {
    const int half = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / half, half});
    const auto real = factors<double>();
    check_second(distribute_tensor(real, mesh, Shard<0>{}, Shard<1>{}), real);
    check_second(distribute_tensor(real, mesh, Shard<1>{}, Shard<1>{}), real);
    const auto complex = factors<std::complex<double>>();
    check_second(distribute_tensor(complex, mesh, Replicate{}, Shard<1>{}), complex);
  });
}

TEST_CASE("the third derivative of a product is right where one factor is zero") {
  on_ranks({1, 2}, [](World& world) {
    Tensor<double, 1> a({4}, {0.5, 0.0, -2.0, 3.0});
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Shard<0>{}));
    const auto y = requires_grad(x);
    const auto z = requires_grad(y);
    backward(prod(z));
    backward(sum(grad(z)));
    backward(sum(grad(y)));
    std::vector<double> expected;  // 2 per pair of other factors, times the remaining one
    for (index_t k = 0; k < 4; ++k) {
      double total = 0;
      for (index_t l = 0; l < 4; ++l)
        if (l != k) total += 2 * a(l);
      expected.push_back(total);
    }
    check_close(grad(x).full_tensor(), expected, 1e-14);
  });
}
