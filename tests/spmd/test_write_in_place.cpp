// Values that are computed in the memory of the input that they replace.
#include <array>
#include <cstddef>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/spmd/passes/write_in_place.hpp>

#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// The number of values that are computed in the memory of inputs.
template <class F>
int in_place(const F& f) {
  const spmd::Program program =
      spmd::expand(spmd::trace(f, spmd::arg<double>("x", {6, 6}), spmd::arg<double>("y", {6, 6})),
                   std::array{spmd::schema(Replicate{}), spmd::schema(Replicate{})});
  REQUIRE(!program.fault);
  int count = 0;
  for (const int input : spmd::write_in_place(program, spmd::fuse_elementwise(program)))
    count += input >= 0;
  return count;
}

}  // namespace

TEST_CASE("a value is computed in the memory of the input that it replaces if nothing reads that") {
  CHECK(in_place([](const auto& x, const auto& y) {
          add_(mul_(x, 2.0), y);
          return sum(x);
        }) == 1);
  CHECK(in_place([](const auto& x, const auto& y) {  // a kernel that does not read it
          const auto z = matmul(transpose(y), y);
          matmul(out(x), y, z);
          return std::tuple<>{};
        }) == 1);
  CHECK(in_place([](const auto& x, const auto& y) {  // read together with a view
          map_([](double a, double b) { return a + b; }, x, add(transpose(x), y));
          return std::tuple<>{};
        }) == 0);
  CHECK(in_place([](const auto& x,
                    const auto& y) {  // x is read after its new value is computed, y is not
          const auto a = matmul(x, y), b = matmul(y, x);
          mul(out(x), b, 2.0);
          mul(out(y), a, 2.0);
          return std::tuple<>{};
        }) == 1);
}

TEST_CASE("inputs that share memory are written after everything else has read them") {
  on_ranks({1, 2}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const std::array<index_t, 2> shape{6, 4};
      const auto x = irregular<double, Placements<Shard<0>>>(mesh, shape, 1);
      const auto y = irregular<double, Placements<Shard<0>>>(mesh, shape, 2);
      const auto step = [](const auto& a, const auto& b, const auto& c) {
        add_(a, b);
        return mul(c, 2.0);
      };
      const spmd::Program program = spmd::expand(
          spmd::trace(step, arg_for(x), arg_for(y), arg_for(x)), spmd::schemas_of(x, y, x));
      spmd::Runner runner(program, mesh);
      using Y = std::remove_const_t<decltype(x)>;
      const auto local = [](const auto& of) {
        const auto host = of.to_local().clone().to(Host{});
        return std::vector<double>(host.data(), host.data() + host.size());
      };
      for (int run = 0; run < 2; ++run) {
        const std::vector<double> old = local(x), added = local(y);
        const auto [twice] = runner.template run<Y>(x, y, x);  // c is a
        const std::vector<double> now = local(x), doubled = local(twice);
        for (std::size_t i = 0; i < old.size(); ++i) {
          CHECK(now[i] == old[i] + added[i]);
          CHECK(doubled[i] == 2 * old[i]);
        }
      }
    });
  });
}
