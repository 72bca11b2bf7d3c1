// Targets that repeat elements are refused by everything that writes, and left unchanged.
#include <array>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/initialisers.hpp>
#include <cleave/dtensor/random.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

using Pair = std::array<index_t, 2>;
constexpr const char* refusal = "the target repeats elements; clone it first";

}  // namespace

TEST_CASE("copies, fills and draws refuse tensors that repeat elements") {
  std::vector<double> memory(6, 7.0);
  const auto view = [&](const Pair& strides) {
    return Tensor<double, 2>::adopt(memory.data(), {3, 2}, strides);
  };
  const Tensor<double, 2> source({3, 2}, {1, 2, 3, 4, 5, 6});
  for (const Pair& strides : {Pair{0, 1}, Pair{1, 0}, Pair{0, 0}, Pair{1, 1}, Pair{1, 2}}) {
    const auto x = view(strides);
    RandomState state{5};
    const auto before = state;
    CHECK(contains(error_of([&] { x.copy_(source); }), refusal));
    CHECK(contains(error_of([&] { x.fill_(1); }), refusal));
    CHECK(contains(error_of([&] { constant_(x, 1); }), refusal));
    CHECK(contains(error_of([&] { uniform_(x, state); }), refusal));
    CHECK(contains(error_of([&] { normal_(x, state); }), refusal));
    CHECK(contains(error_of([&] { trunc_normal_(x, state); }), refusal));
    CHECK(contains(error_of([&] { bernoulli_(x, state); }), refusal));
    CHECK(contains(error_of([&] { xavier_uniform_(x, state); }), refusal));
    CHECK(contains(error_of([&] { orthogonal_(x, state); }), refusal));
    CHECK(memory == std::vector<double>(6, 7.0));
    CHECK(state == before);
  }
  view({1, 3}).copy_(source);  // columns are far enough apart
  CHECK(memory == std::vector<double>{1, 3, 5, 2, 4, 6});
  const auto last = Tensor<double, 2>::adopt(memory.data(), {1, 2}, {0, 1});
  last.fill_(9);  // a stride of 0 repeats nothing along an extent of 1
  CHECK(memory == std::vector<double>{9, 9, 5, 2, 4, 6});
  const auto interleaved = Tensor<double, 2>::adopt(memory.data(), {2, 2}, {3, 2});
  interleaved.copy_(Tensor<double, 2>({2, 2}, {10, 20, 30, 40}));  // offsets 0, 2, 3, 5
  CHECK(memory == std::vector<double>{10, 9, 20, 30, 4, 40});
}

TEST_CASE("a DTensor whose parts repeat elements is not drawn, with the tensor in the message") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    std::vector<double> row{1, 2, 3};
    const auto part = Tensor<double, 2>::adopt(row.data(), {2, 3}, {0, 1});
    const auto x = from_local(part, mesh, Shard<0>{});
    const auto refused = [&](const auto& f) {
      const std::string error = error_of(f);
      CHECK(contains(error, refusal));
      CHECK(contains(error, "dp=" + std::to_string(world.size())));
    };
    refused([&] { uniform_(x); });
    refused([&] { normal_(x); });
    refused([&] { kaiming_normal_(x); });
    refused([&] { orthogonal_(x); });
    CHECK(contains(error_of([&] { constant_(x, 1); }), refusal));
    CHECK(row == std::vector<double>{1, 2, 3});
  });
}
