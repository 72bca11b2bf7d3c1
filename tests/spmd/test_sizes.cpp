// Extents and sizes of traced values, and what is computed with them, against naive loops.
#include <array>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/spmd/traced_factories.hpp>

#include "each_placements.hpp"
#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace sizes {
namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

/// Runs the program of f on x, whose one output is y(i, j) for all indices of `extents`.
template <class F, class T, class Mesh, class P, class Y>
void check_elements(const F& f, const DTensor<T, 2, Mesh, P>& x, std::array<index_t, 2> extents,
                    const Y& y) {
  const spmd::Program program = spmd::expand(spmd::trace(f, arg_for(x)), spmd::schemas_of(x));
  INFO(to_string(program, x.mesh()));
  REQUIRE(!program.fault);
  spmd::Runner runner(program, x.mesh());
  const auto outputs = runner(spmd::inputs_of(x));
  REQUIRE(outputs.size() == 1);
  CHECK(outputs[0].shape == Shape(extents));
  const Box own =
      owned_box(outputs[0].layout, Shape(extents), x.mesh().extents(), x.mesh().coordinate());
  const View& local = outputs[0].local;
  const auto mine =
      Tensor<T, 2, TestDevice>::adopt(static_cast<T*>(local.data), to_array<2>(local.extents),
                                      to_array<2>(local.strides), outputs[0].storage)
          .clone()
          .to(Host{});
  const auto whole = x.full_tensor().to(Host{});
  for (index_t i = 0; i < mine.extent(0); ++i)
    for (index_t j = 0; j < mine.extent(1); ++j)
      CHECK(mine(i, j) == y(whole, own.begin[0] + i, own.begin[1] + j));
  CHECK(mine.size() == own.extents().product());
}

/// Calls f with an array of 7 x 5 under each placement, on 1 to 8 ranks.
template <class F>
void on_arrays(const F& f) {
  on_ranks({1, 2, 3, 8}, [&](World& world) {
    on_line(world, [&](const auto& mesh) {
      each_placements<1, R, S0, S1>([&](auto p) {
        f(irregular<double, decltype(p)>(mesh, std::array<index_t, 2>{7, 5}, 1));
      });
    });
  });
}

}  // namespace

TEST_CASE("extents and sizes of a value are numbers for other calls, also in arithmetic") {
  constexpr auto middle = [](const auto& x) {
    const index_t half = x.extent(0) / 2;
    return mul(slice(x, dim<0>{}, half - 1, half + 2), double(x.size() - x.extent(-1)));
  };
  static_assert(spmd::trace(middle, spmd::arg<double>("x", {7, 5})).values.back().shape[0] == 3);
  on_arrays([&](const auto& x) {
    check_elements(middle, x, {3, 5},
                   [](const auto& v, index_t i, index_t j) { return v(i + 2, j) * 30; });
  });
}

TEST_CASE("a dimension is repeated as often as another value is long") {
  on_arrays([](const auto& x) {
    check_elements(
        [](const auto& v) {
          const auto row = slice(v, dim<0>{}, 2, 3);
          return sub(expand(row, dim<0>{}, v.extent(0)), v);
        },
        x, {7, 5}, [](const auto& v, index_t i, index_t j) { return v(2, j) - v(i, j); });
  });
}

TEST_CASE("factories take the extents of a value, and are placed as their users require") {
  on_arrays([](const auto& x) {
    check_elements(
        [](const auto& v) {
          const auto places = arange<double>(v.extent(1), v.mesh());
          const auto more = full<double>({v.extent(0), v.extent(1)}, double(v.extent(0)), v.mesh());
          return add(mul(ones_like(v), places), more);
        },
        x, {7, 5}, [](const auto&, index_t, index_t j) { return double(j) + 7; });
  });
}

TEST_CASE("a view keeps the elements of sizes that were computed") {
  on_arrays([](const auto& x) {
    check_elements(
        [](const auto& v) { return reshape(flatten(v), {v.extent(1), v.size() / v.extent(1)}); }, x,
        {5, 7},
        [](const auto& v, index_t i, index_t j) { return v((i * 7 + j) / 5, (i * 7 + j) % 5); });
  });
}

TEST_CASE("the gradient of a slice is zero outside of it (slice_backward)") {
  on_arrays([](const auto& x) {
    check_elements(
        [](const auto& v) {
          const auto w = requires_grad(v);
          backward(sum(square(slice(w, dim<0>{}, 1, v.extent(0) - 1, 2))));
          return grad(w);
        },
        x, {7, 5},
        [](const auto& v, index_t i, index_t j) { return i % 2 == 1 ? 2 * v(i, j) : 0.0; });
  });
}

TEST_CASE("the gradient of a repeated dimension is the sum over it") {
  on_arrays([](const auto& x) {
    check_elements(
        [](const auto& v) {
          const auto w = requires_grad(slice(v, dim<0>{}, 3, 4));
          const auto repeated = expand(w, dim<0>{}, 4);
          backward(sum(mul(repeated, 0.5)));
          return grad(w);
        },
        x, {1, 5}, [](const auto&, index_t, index_t) { return 2.0; });
  });
}

}  // namespace sizes
