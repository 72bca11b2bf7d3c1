// Gradients through local tensors: placements stated by the caller, and those that are deduced.
#include <array>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>

#include "errors.hpp"
#include "network.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// The sum over rows of 2 x[i, :] · w, by plain loops: its derivatives in x and in w.
struct Expected {
  std::vector<double> x, w;

  Expected(const Tensor<double, 2>& a, const Tensor<double, 1>& b) : w(std::size_t(b.size())) {
    for (index_t i = 0; i < a.extent(0); ++i)
      for (index_t j = 0; j < a.extent(1); ++j) {
        x.push_back(2 * b(j));
        w[std::size_t(j)] += 2 * a(i, j);
      }
  }
};

}  // namespace

TEST_CASE("a rank's part of a sharded value has its own part of the gradient") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto a = noise<2>({5, 3}, 1);
    const auto b = noise<1>({3}, 2);
    const Expected expected(a, b);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Shard<0>{}));
    const auto w = requires_grad(distribute_tensor(b, mesh, Replicate{}));
    // every rank computes an addend of the gradient of w from its own rows
    const auto rows = to_local(x) * to_local(w, Partial<Sum>{}) * 2.0;
    CommTrace trace(world);
    backward(sum(from_local(rows, mesh, Shard<0>{})));
    CHECK(trace.count(CollectiveKind::all_reduce) == (world.size() > 1 ? 1 : 0));
    check_close(grad(x).full_tensor(), expected.x);
    check_close(grad(w).full_tensor(), expected.w);
  });
}

TEST_CASE("the result of a function of local tensors has the stated placements") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto a = noise<2>({7, 4}, 1);
    const auto b = noise<1>({4}, 2);
    const Expected expected(a, b);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Shard<0>{}));
    const auto w = requires_grad(distribute_tensor(b, mesh, Replicate{}));
    const auto twice = [](const auto& rows, const auto& weights) { return rows * weights * 2.0; };
    const auto y = local_map(twice, Placements<Shard<0>>{}, x, with_gradient(w, Partial<Sum>{}));
    std::vector<double> values;
    for (index_t i = 0; i < 7; ++i)
      for (index_t j = 0; j < 4; ++j) values.push_back(2 * a(i, j) * b(j));
    check_close(y.value().full_tensor(), values, 1e-15);
    backward(sum(y));
    check_close(grad(x).full_tensor(), expected.x);
    check_close(grad(w).full_tensor(), expected.w);
    // without gradients the function computes the same
    check_close(local_map(twice, Placements<Shard<0>>{}, x.value(), w.value()).full_tensor(),
                values, 1e-15);
  });
}

TEST_CASE("local addends make up a sum; each rank has the gradient of the whole") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto a = noise<2>({2, 3}, 1);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto local = requires_grad(a);
    const auto y = from_local(local, mesh, Replicate{});
    backward(sum(y * 3.0));
    check_close(grad(local), std::vector<double>(6, 3.0));
  });
}

TEST_CASE("a value gathered on every rank has the same gradient on every rank") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto a = noise<2>({5, 3}, 1), b = noise<2>({5, 3}, 2);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(a, mesh, Shard<0>{}));
    CommTrace trace(world);
    const auto loss = sum(full_tensor(x) * b);
    trace.clear();
    backward(loss);
    CHECK(trace.events().empty());  // every rank uses its own rows
    check_close(grad(x).full_tensor(), values_of(b), 1e-15);
  });
}

TEST_CASE("a tracked tensor becomes part of a global value with a given shape or with run_check") {
  on_ranks({1, 2, 3}, [](World& world) {
    const index_t n = world.size();
    const auto mesh = init_device_mesh<dp>(world, {n});
    const auto x = requires_grad(noise<2>({2, 3}, unsigned(world.rank())));
    const auto first = noise<2>({2, 3}, 0);
    CommTrace trace(world);
    const auto whole = from_local(x, mesh, {2, 3});
    const auto rows = from_local(x, mesh, Shard<0>{}, {2 * n, 3});
    CHECK(trace.events().empty());
    const auto equal = from_local(x, mesh, {.run_check = true});
    const auto again = from_local(x, mesh, Placements<Replicate>{}, {2, 3}, {.run_check = true});
    check_close(equal.value().to_local(), values_of(first), 0);
    check_close(again.value().to_local(), values_of(first), 0);
    backward(sum(equal * equal) + sum(again) + sum(whole) + sum(rows) * 3.0);
    std::vector<double> expected;  // replicas have the gradient of the value that replaced them
    for (const double v : values_of(first)) expected.push_back(2 * v + 5);
    check_close(grad(x), expected);
    if (n > 1)
      CHECK(contains(error_of([&] { (void)from_local(x, mesh, Shard<0>{}, {2 * n, 4}); }),
                     "this rank owns"));
  });
}

TEST_CASE("the gradient of a distributed tensor is whole on the ranks that passed the array") {
  on_ranks({2, 3, 4}, [](World& world) {
    const int n = world.size(), last = n - 1;
    std::vector<int> members;
    for (int r = 0; r < last; ++r) members.push_back(r);
    const auto mesh = init_device_mesh<dp>(world, {last}, members);
    const bool has_array = world.rank() == 0 || world.rank() == last;
    const auto x = requires_grad(has_array ? noise<2>({5, 3}, 1) : Tensor<double, 2>({1, 2}));
    const auto y = distribute_tensor(x, mesh, Shard<0>{});
    const auto z = distribute_tensor(x, mesh);
    static_assert(std::is_same_v<decltype(z.value().placements()), Placements<Replicate>>);
    CHECK(distribute_tensor(y, mesh, Shard<-2>{}).slot() == y.slot());  // distributed already
    backward(sum(y * 2.0) + sum(z));
    // the tensors of other members were ignored, the last rank is outside the mesh
    if (world.rank() == 0) check_close(grad(x), std::vector<double>(15, 3.0));
    else check_close(grad(x), std::vector<double>(std::size_t(x.value().size()), 0.0));
  });
}
