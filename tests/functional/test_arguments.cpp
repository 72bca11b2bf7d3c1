// What functional collectives take: pairs in any range, results of other collectives, reductions of
// bits, and sums with a factor.
#include <array>
#include <complex>
#include <cstdint>
#include <forward_list>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/functional.hpp>

#include "errors.hpp"
#include "ranks.hpp"
#include "tensors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// Different bits on every rank and at every element.
template <class T>
T bits(int rank, index_t i) {
  return T((unsigned(rank) * 0x9e3779b9u + unsigned(i) * 0x85ebca6bu) >> 3);
}

template <class T>
T of_bits(ReduceOp op, T a, T b) {
  return op == ReduceOp::band ? T(a & b) : op == ReduceOp::bor ? T(a | b) : T(a ^ b);
}

template <class T>
void check_bits(World& world) {
  const int n = world.size();
  for (const index_t length : {index_t(0), index_t(n), index_t(3000 * n)}) {
    const Tensor<T, 1> here({length});
    for (index_t i = 0; i < length; ++i) here(i) = bits<T>(world.rank(), i);
    const auto x = here.to(TestDevice{});
    for (const ReduceOp op : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) {
      const auto all = functional::all_reduce(x, op, world).wait().to(Host{});
      const auto part = functional::reduce_scatter(x, op, 0, world).wait().to(Host{});
      const auto expected = [&](index_t i) {
        T value = bits<T>(0, i);
        for (int r = 1; r < n; ++r) value = of_bits(op, value, bits<T>(r, i));
        return value;
      };
      int wrong = 0;
      for (index_t i = 0; i < length; ++i) wrong += all(i) != expected(i);
      for (index_t i = 0; i < length / n; ++i)
        wrong += part(i) != expected(world.rank() * (length / n) + i);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE("bits of integers and bools are reduced by and, or and exclusive or") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    check_bits<bool>(world);
    check_bits<std::int8_t>(world);
    check_bits<std::int16_t>(world);
    check_bits<std::uint32_t>(world);
    check_bits<std::int64_t>(world);
  });
}

TEST_CASE("reductions of bits have types and names; floats have none") {
  on_ranks({1, 3}, [](World& world) {
    const Tensor<int, 1, TestDevice> x({2});
    x.fill_(1 << world.rank());
    const int all = (1 << world.size()) - 1;
    CHECK(functional::all_reduce(x, BitOr{}, world).wait().to(Host{})(1) == all);
    CHECK(functional::all_reduce(x, "BXOR", world).wait().to(Host{})(1) == all);
    CHECK(functional::all_reduce(x, "band", world).wait().to(Host{})(1) ==
          (world.size() == 1 ? 1 : 0));
    CHECK(functional::all_reduce(x, BitAnd{}, world).wait().to(Host{})(0) ==
          functional::all_reduce(x, BitXor{}, world).wait().to(Host{})(0) %
              (world.size() == 1 ? 2 : 1));
    const Tensor<float, 1, TestDevice> y({2});
    CHECK(error_of([&] { (void)functional::all_reduce(y, "bor", world); }) ==
          "functional::all_reduce: bor of float32 is not defined: reductions of bits require "
          "integers or bools");
  });
}

TEST_CASE("a premultiplied sum adds each rank's elements times its factor") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const int n = world.size();
    const auto check = [&]<class T>(T, const auto& factor_of) {
      for (const bool strided : {false, true}) {
        const Extents3 extents{2 * n, 2, 5};
        const auto x = cells<T>(world.rank(), extents, strided);
        const auto op = functional::premul_sum(factor_of(world.rank()));
        const auto sum = [&](index_t i, index_t j, index_t k) {
          using A = accumulator_t<T>;
          A value = A(T(A(cell<T>(0, i, j, k)) * A(factor_of(0))));
          for (int r = 1; r < n; ++r) value += A(T(A(cell<T>(r, i, j, k)) * A(factor_of(r))));
          return T(value);
        };
        CHECK(difference(*functional::all_reduce(x, op, world), extents, sum) == "");
        CHECK(difference(*functional::reduce_scatter(x, op, 0, world), {2, 2, 5},
                         [&](index_t i, index_t j, index_t k) {
                           return sum(2 * world.rank() + i, j, k);
                         }) == "");
        CHECK(unmodified(x, world.rank()));
      }
    };
    check(float{}, [](int r) { return 0.5 + r; });
    check(double{}, [](int) { return 3; });
    check(half{}, [](int) { return 0.25f; });
    check(std::int16_t{}, [](int r) { return r - 1; });
    check(std::complex<float>{}, [](int) { return 0.5f; });
    const Tensor<float, 1, TestDevice> y({2});
    CHECK(error_of([&] { (void)functional::all_reduce(y, "premul_sum", world); }) ==
          "functional::all_reduce: premul_sum requires a factor: pass "
          "functional::premul_sum(factor)");
  });
}

TEST_CASE("permute takes pairs in any range") {
  on_ranks({2, 3, 4}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    const Tensor<float, 1, TestDevice> x({3});
    x.fill_(float(1 + rank));
    const auto first = [](const auto& y) { return y.wait().to(Host{})(0); };

    std::vector<std::pair<int, int>> ring;
    for (int r = 0; r < n; ++r) ring.emplace_back(r, (r + 1) % n);
    const float before = float(1 + (rank + n - 1) % n);
    CHECK(first(functional::permute(x, ring, world)) == before);
    CHECK(first(functional::permute(x, std::span<const std::pair<int, int>>(ring), world)) ==
          before);
    const std::vector<functional::Hop> hops{{0, 1}};
    const float one = rank == 1 ? 1.f : 0.f;
    CHECK(first(functional::permute(x, hops, world)) == one);
    const std::array<std::array<index_t, 2>, 1> arrays{{{0, 1}}};
    CHECK(first(functional::permute(x, arrays, world)) == one);
    const std::tuple<int, long> tuples[] = {{0, 1}};
    CHECK(first(functional::permute(x, tuples, world)) == one);
    CHECK(first(functional::permute(x, std::map<int, int>{{0, 1}}, world)) == one);
    std::forward_list<std::pair<unsigned, unsigned>> forward{{0, 1}};
    CHECK(first(functional::permute(x, forward, world)) == one);
    CHECK(first(functional::permute(x, {{0, 1}}, world)) == one);
    CHECK(first(functional::permute(x, {}, world)) == 0);
    const std::vector<std::pair<index_t, index_t>> far{{0, index_t(1) << 32}};
    CHECK(contains(error_of([&] { (void)functional::permute(x, far, world); }),
                   "is outside of the group of"));
  });
}

TEST_CASE("collectives take the results of others, which they wait for") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const int n = world.size();
    const Tensor<float, 1, TestDevice> x({2});
    x.fill_(float(world.rank()));
    const auto summed = functional::all_reduce(functional::all_gather(x, 0, world), Sum{}, world);
    CHECK(summed.extent(0) == 2 * n);
    CHECK(summed.size() == 2 * n);
    for (int r = 0; r < n; ++r) CHECK(summed.wait().to(Host{})(2 * r) == float(n * r));
    const auto part = functional::reduce_scatter(summed, Max{}, 0, world);
    CHECK(part.wait().to(Host{})(1) == float(n * world.rank()));
    const auto moved = functional::all_to_all(functional::broadcast(summed, 0, world), 0, world);
    CHECK(moved.wait().to(Host{})(0) == float(n * world.rank()));
    const auto same = functional::permute(functional::all_reduce(x, Sum{}, world), {}, world);
    CHECK(same.wait().to(Host{})(0) == 0);
    const auto later = functional::all_reduce(x, Sum{}, world);
    const auto both = functional::all_reduce_coalesced(std::tie(later, x), Sum{}, world);
    CHECK(std::get<0>(*both).to(Host{})(0) == float(n * n * (n - 1) / 2));
    CHECK(std::get<1>(*both).to(Host{})(0) == float(n * (n - 1) / 2));
  });
}
