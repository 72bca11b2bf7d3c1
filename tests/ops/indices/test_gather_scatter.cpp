// Gathering by index, largest elements, diagonals: communication and refused arguments.
#include <limits>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/cleave.hpp>
#include <cleave/grad.hpp>

#include "device.hpp"
#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

Tensor<double, 2> table() { return Tensor<double, 2>({2, 4}, {3, 1, 3, 2, 0, -1, 5, 4}); }

}  // namespace

TEST_CASE("topk gives values in order, lower indices first, and their gradient") {
  const auto x = requires_grad(table().to(TestDevice{}));
  const auto [values, indices] = topk(x, dim<1>{}, 3);
  CHECK(to_string(values.value().to(Host{})) ==
        to_string(Tensor<double, 2>({2, 3}, {3, 3, 2, 5, 4, 0})));
  CHECK(to_string(indices.to(Host{})) == to_string(Tensor<index_t, 2>({2, 3}, {0, 2, 3, 2, 3, 0})));
  backward(sum(values * values));
  CHECK(to_string(grad(x).to(Host{})) ==
        to_string(Tensor<double, 2>({2, 4}, {6, 0, 6, 4, 0, 0, 10, 8})));
  const auto least = std::get<1>(topk(table().to(TestDevice{}), dim<0>{}, 1, Order::ascending));
  CHECK(to_string(least.to(Host{})) == to_string(Tensor<index_t, 2>({1, 4}, {1, 1, 0, 0})));
}

TEST_CASE("NaNs count as largest") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto x = Tensor<double, 1>({5}, {1, nan, 7, nan, -2}).to(TestDevice{});
  CHECK(to_string(argsort(x, dim<0>{}).to(Host{})) ==
        to_string(Tensor<index_t, 1>({5}, {4, 0, 2, 1, 3})));
  CHECK(to_string(argsort(x, dim<0>{}, Order::descending).to(Host{})) ==
        to_string(Tensor<index_t, 1>({5}, {1, 3, 2, 0, 4})));
}

TEST_CASE("a table sharded along another dimension is read without communication") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2});
    const auto rows = distribute_tensor(table(), mesh, Shard<0>{});
    const auto columns = distribute_tensor(table(), mesh, Shard<1>{});
    const Tensor<index_t, 2> index({2, 2}, {3, 0, 2, 2});
    const auto by_rows = distribute_tensor(index, mesh, Shard<0>{});
    const auto whole = distribute_tensor(index, mesh, Replicate{});
    const auto transposed = transpose(distribute_tensor(table(), mesh, Replicate{}));
    CommTrace trace(world);
    const auto y = gather(rows, dim<1>{}, by_rows);
    const auto z = take_along_dim(columns, whole, dim<1>{});
    const auto [values, places] = topk(rows, dim<1>{}, 2);
    const auto d = diagonal(matmul(rows, transposed));
    CHECK(trace.events().empty());
    static_assert(decltype(y)::layout[0].shards(0) && decltype(places)::layout[0].shards(0));
    static_assert(decltype(z)::layout[0] == Placement::partial(ReduceOp::sum));
    static_assert(decltype(d)::layout[0].shards(0));
    const Tensor<double, 2> expected({2, 2}, {2, 3, 5, 5});
    CHECK(to_string(y.full_tensor()) == to_string(expected));
    CHECK(to_string(z.full_tensor()) == to_string(expected));
    CHECK(to_string(d.full_tensor()) == to_string(Tensor<double, 1>({2}, {23, 42})));
    CHECK(cleave::trace(diag(d)).item() == 65);
    CommTrace moved(world);
    const auto of_columns = topk(columns, dim<1>{}, 2);
    CHECK(moved.events().size() == 1);
    CHECK(to_string(std::get<0>(of_columns).full_tensor()) ==
          to_string(Tensor<double, 2>({2, 2}, {3, 3, 5, 4})));
    CHECK(to_string(values.full_tensor()) == to_string(std::get<0>(of_columns).full_tensor()));
  });
}

TEST_CASE("gradients of gathered elements lie as the operand") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2});
    const auto x = requires_grad(distribute_tensor(table(), mesh, Shard<1>{}));
    const auto index =
        distribute_tensor(Tensor<index_t, 2>({2, 3}, {3, 0, 3, 2, 2, 2}), mesh, Replicate{});
    backward(sum(gather(x, dim<1>{}, index)));
    const auto dx = grad(x);
    static_assert(decltype(dx)::layout[0].shards(1));
    CHECK(to_string(dx.full_tensor()) ==
          to_string(Tensor<double, 2>({2, 4}, {1, 0, 0, 2, 0, 0, 3, 0})));
  });
}

TEST_CASE("indices out of range and extents that do not fit are refused") {
  const auto says = [](const std::string& part, const auto& f) {
    CHECK(contains(error_of(f), part));
  };
  const Tensor<int, 2> beyond({2, 1}, {0, 4}), before({2, 1}, {-1, 0});
  says("gather: index 4 is not in [0, 4)", [&] { gather(table(), dim<1>{}, beyond); });
  says("gather: index -1 is not in [0, 4)", [&] { gather(table(), dim<1>{}, before); });
  says("scatter_add: index 4 is not in [0, 3)",
       [&] { scatter_add(Tensor<double, 2>({2, 1}), dim<1>{}, beyond, 3); });
  says("scatter_add: the extent is negative: -1",
       [&] { scatter_add(Tensor<double, 2>({2, 1}), dim<1>{}, before, -1); });
  says("topk: the count must be between 0 and 4, the extent of dimension 1, not 5",
       [] { topk(table(), dim<1>{}, 5); });
  says("diagonal: the matrix is not square [shapes [2, 4]]", [] { diagonal(table()); });
}
