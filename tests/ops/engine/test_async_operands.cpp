// Results of functional collectives as operands: operations wait for them.
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/functional.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/elementwise/where.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/cat.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Matrix = Tensor<double, 2>;

/// Whether two tensors have the same elements, by a loop.
template <class T, int Rank>
bool equal(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  if (a.shape() != b.shape()) return false;
  const auto x = a.clone(), y = b.clone();
  for (index_t i = 0; i < x.size(); ++i)
    if (x.data()[i] != y.data()[i]) return false;
  return true;
}

}  // namespace

TEST_CASE("an operation with a collective's result equals the same with the tensor") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    Matrix x({2, 3}), sum({2, 3});
    for (index_t i = 0; i < 2; ++i)
      for (index_t j = 0; j < 3; ++j) {
        x(i, j) = double(world.rank() * 7 + i * 3 + j + 1);
        sum(i, j) = 0;
        for (int r = 0; r < world.size(); ++r) sum(i, j) += double(r * 7 + i * 3 + j + 1);
      }
    const auto y = functional::all_reduce(x, Sum{}, world);
    static_assert(AnyTensor<std::remove_cvref_t<decltype(y)>>);
    const auto same = [&](const auto& f) { return equal(f(y), f(sum)); };

    // + and * by loops; the others as with the tensor, whose values other cases verify
    const Matrix total = x + functional::all_reduce(x, Sum{}, world);
    const Matrix scaled = 2.0 * y;
    bool right = true;
    for (index_t i = 0; i < 2; ++i)
      for (index_t j = 0; j < 3; ++j)
        right = right && total(i, j) == x(i, j) + sum(i, j) && scaled(i, j) == 2 * sum(i, j) &&
                y(i, j) == sum(i, j);
    CHECK(right);
    CHECK(y.extent(1) == 3);
    CHECK(y.size() == 6);
    CHECK(same([&](const auto& a) { return matmul(a, transpose(a)); }));
    CHECK(same([&](const auto& a) { return matmul(x, transpose(a)); }));
    CHECK(same([&](const auto& a) { return einsum("ij,ij->i"_ein, a, x); }));
    CHECK(same([&](const auto& a) { return softmax(a, dim<1>{}); }));
    CHECK(same([&](const auto& a) { return mean(a); }));
    CHECK(same([&](const auto& a) { return cleave::sum(a, dim<0>{}); }));
    CHECK(same([&](const auto& a) { return argmax(a, dim<1>{}); }));
    CHECK(same([&](const auto& a) { return cat(dim<0>{}, a, x, a); }));
    CHECK(same([&](const auto& a) { return slice(a, dim<1>{}, 1, 3); }));
    CHECK(same([&](const auto& a) { return where(a > 9.0, a, x); }));
    CHECK(same([&](const auto& a) { return cast<float>(a); }));
    CHECK(same([&](const auto& a) { return conj(a); }));
    CHECK(same([&](const auto& a) {
      const Matrix target({2, 3});
      target.fill_(1);
      add_(target, a);
      return target;
    }));
    const auto one = functional::all_reduce(mean(x), Max{}, world);
    CHECK(one.item() == mean(x).item() + 7.0 * (world.size() - 1 - world.rank()));
  });
}
