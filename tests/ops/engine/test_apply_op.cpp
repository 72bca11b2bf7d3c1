// User-defined operations: a rule, a kernel, nothing else.
#include <array>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/engine/apply_op.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

struct BatchedProduct {};
struct RowSums {};

}  // namespace

template <>
struct cleave::sharding_rule<BatchedProduct> {
  static constexpr const char* factors = "bik,bkj->bij";
  static constexpr const char* partials = "sum,R->sum; R,sum->sum";
};

/// Every element is replaced by the sum of its row: rows must be whole.
template <>
struct cleave::sharding_rule<RowSums> {
  static constexpr const char* factors = "ij->ij";
  static constexpr const char* replicated = "j";
};

namespace {

using Extents2 = std::array<index_t, 2>;
using Extents3 = std::array<index_t, 3>;
using Cube = Tensor<double, 3, TestDevice>;

// Kernels that compute on the host, wherever their operands are stored.
Cube batched_product(const Cube& x, const Cube& y) {
  const Tensor<double, 3> a = x.to(Host{}), b = y.to(Host{});
  const Tensor<double, 3> c({a.extent(0), a.extent(1), b.extent(2)});
  c.fill_(0);
  for (index_t n = 0; n < a.extent(0); ++n)
    for (index_t i = 0; i < a.extent(1); ++i)
      for (index_t k = 0; k < a.extent(2); ++k)
        for (index_t j = 0; j < b.extent(2); ++j) c(n, i, j) += a(n, i, k) * b(n, k, j);
  return c.to(TestDevice{});
}

Tensor<double, 2, TestDevice> row_sums(const Tensor<double, 2, TestDevice>& operand) {
  const Tensor<double, 2> x = operand.to(Host{}), y(x.shape());
  for (index_t i = 0; i < x.extent(0); ++i) {
    double sum = 0;
    for (index_t j = 0; j < x.extent(1); ++j) sum += x(i, j);
    for (index_t j = 0; j < x.extent(1); ++j) y(i, j) = sum;
  }
  return y.to(TestDevice{});
}

}  // namespace

TEST_CASE("an operation of three dimensions follows from its rule") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Shard<2>, Partial<Sum>>([&](auto p) {
      each_placements<1, Replicate, Shard<0>, Shard<1>, Shard<2>, Partial<Sum>>([&](auto q) {
        const auto x = placed<double, decltype(p)>(mesh, Extents3{3, 2, 5}, 0);
        const auto y = placed<double, decltype(q)>(mesh, Extents3{3, 5, 4}, 1);
        const auto a = expected(x, 0), b = expected(y, 1);
        check_equal(apply_op<BatchedProduct>("bmm", batched_product, x, y),
                    array_of<double>({3, 2, 4}, [&](const naive::Indices& i) {
                      double sum = 0;
                      for (index_t k = 0; k < 5; ++k)
                        sum += a.at({i[0], i[1], k}) * b.at({i[0], k, i[2]});
                      return sum;
                    }));
      });
    });
  });
}

TEST_CASE("a factor that a kernel needs whole is gathered, or moved elsewhere") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      const auto x = placed<double, decltype(p)>(mesh, Extents2{5, 3}, 0);
      const auto a = expected(x, 0);
      const auto rows = array_of<double>({5, 3}, [&](const naive::Indices& i) {
        return a.at({i[0], 0}) + a.at({i[0], 1}) + a.at({i[0], 2});
      });
      check_equal(apply_op<RowSums>("row_sums", row_sums, x), rows);
      check_equal(apply_op<RowSums, Placements<Shard<1>>>("row_sums", row_sums, x), rows);
    });
  });
}

TEST_CASE("errors carry the name of the user's operation") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {1}, TestDevice{});
    const auto x = placed<double, Placements<Replicate>>(mesh, Extents3{3, 2, 5}, 0);
    const std::string text =
        error_of([&] { apply_op<BatchedProduct>("bmm", batched_product, x, x); });
    CHECK(text.find("bmm: the extents of 'k' in bik,bkj->bij differ: operand 1 has 2, "
                    "preceding operands have 5") == 0);
  });
}
