// The compiler finds data parallelism, tensor parallelism and both where sizes favour them, and
// knows the peak memory of a step.
#include <array>
#include <cstddef>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/spmd/find_schemas.hpp>
#include <cleave/spmd/frozen.hpp>
#include <cleave/spmd/trace_function.hpp>

using namespace cleave;
using namespace cleave::spmd;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

/// Two layers of x [rows, width], with `hidden` values between them.
template <index_t rows, index_t width, index_t hidden>
constexpr auto two_layers = frozen([] {
  return trace([](const auto& x, const auto& up,
                  const auto& down) { return matmul(relu(matmul(x, up)), down); },
               arg<float>("x", {rows, width}), arg<float>("up", {width, hidden}),
               arg<float>("down", {hidden, width}));
});

template <class G>
constexpr bool finds(const G& graph, const Shape& mesh, const std::array<Layout, 3>& schemas) {
  const FoundSchemas found = find_schemas(graph, mesh, {.requests = false});
  bool same = found.is_exact && found.fits;
  for (std::size_t i = 0; i < schemas.size(); ++i) same = same && found.schemas[i] == schemas[i];
  return same;
}

const auto four_ranks = [] { return Shape(std::array<index_t, 1>{4}); };
const auto four_by_two = [] { return Shape(std::array<index_t, 2>{4, 2}); };

// clang evaluates a fortieth of what g++ does before it stops (-fconstexpr-steps).
#if !defined(__clang__)
// many rows: data parallelism
static_assert(finds(two_layers<65536, 64, 64>, four_ranks(),
                    {schema(S0{}), schema(R{}), schema(R{})}));
// large weights: tensor parallelism
static_assert(finds(two_layers<64, 4096, 16384>, four_ranks(),
                    {schema(R{}), schema(S1{}), schema(S0{})}));
// both
static_assert(finds(two_layers<4096, 4096, 16384>, four_by_two(),
                    {schema(R{}, S0{}), schema(S1{}, R{}), schema(S0{}, R{})}));

// a step's memory: [16, 64] of x, [64, 256] of both weights; a block for [16, 256] hidden values,
// which relu overwrites, and [16, 64] addends; the [16, 64] sums that the all-reduce receives
constexpr std::array step_schemas{schema(S0{}, R{}), schema(R{}, S1{}), schema(R{}, S0{})};
static_assert(peak_bytes(expand(two_layers<64, 64, 512>, step_schemas), four_by_two()) ==
              4 * (16 * 64 + 2 * 64 * 256 + 16 * 256 + 16 * 64 + 16 * 64));
#endif

}  // namespace

TEST_CASE("sizes decide for data parallelism, tensor parallelism or both") {
  CHECK(finds(two_layers<65536, 64, 64>, four_ranks(), {schema(S0{}), schema(R{}), schema(R{})}));
  CHECK(
      finds(two_layers<64, 4096, 16384>, four_ranks(), {schema(R{}), schema(S1{}), schema(S0{})}));
  CHECK(finds(two_layers<4096, 4096, 16384>, four_by_two(),
              {schema(R{}, S0{}), schema(S1{}, R{}), schema(S0{}, R{})}));
}
